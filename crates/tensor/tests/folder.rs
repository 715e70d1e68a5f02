//! Folders of tensors: they survive restarts, stay within their quota, and tolerate broken files and other processes.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use vramp_tensor::{DType, FileError, Heading, Listing, Shape, TensorBytes, TensorFile, TensorFolder};

/// A folder for one test, removed afterwards.
struct Own(PathBuf);

impl Own {
    fn new(name: &str) -> Own {
        let path = std::env::temp_dir().join(format!("vramp-folder-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Own(path)
    }

    fn open(&self, quota_bytes: u64) -> TensorFolder {
        TensorFolder::open(&self.0, quota_bytes).unwrap()
    }

    /// Its files, without the lock.
    fn files(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().path());
        found.filter(|path| !path.ends_with("lock")).collect()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stored<'a>(name: &'a str, bytes: &'a [u8]) -> TensorBytes<'a> {
    TensorBytes { name, dtype: DType::U8, shape: Shape::new(&[bytes.len()]).unwrap(), bytes }
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.kept.iter().map(|kept| kept.name.as_str()).collect()
}

fn got(folder: &TensorFolder, name: &str) -> Option<Vec<u8>> {
    Some(folder.get(name).unwrap()?.tensor(name).unwrap().read().unwrap())
}

/// The size of a file with a tensor of this many values and a name of one letter.
fn file_bytes(values: u64) -> u64 {
    let mark = "0".repeat(32);
    let tensor = format!("\"a\":{{\"dtype\":\"U8\",\"shape\":[{values}],\"data_offsets\":[0,{values}]}}");
    let header = format!("{{\"__metadata__\":{{\"put\":\"{mark}\"}},{tensor}}}").len() as u64;
    8 + header.next_multiple_of(8) + values
}

#[test]
fn tensors_survive_a_restart_whatever_they_are_called() {
    let own = Own::new("restart");
    let long = "layer/".repeat(80);
    let all = ["a", "A", "a_b", "../a", "/etc/passwd", "..", "", ".", "con", "界/面 \0\n", &long, &format!("{long}A")];
    {
        let folder = own.open(1 << 20);
        for (at, name) in all.iter().enumerate() {
            folder.put(&stored(name, &[at as u8; 3])).unwrap();
        }
    }
    let folder = own.open(1 << 20);
    for (at, name) in all.iter().enumerate() {
        assert_eq!(got(&folder, name), Some(vec![at as u8; 3]), "{name:?}");
    }
    let listing = folder.list().unwrap();
    assert_eq!((names(&listing), listing.corrupt.len()), (all.to_vec(), 0), "in the order of their use");
    assert_eq!(own.files().len(), all.len(), "and nowhere else");
    for name in all {
        assert!(folder.remove(name).unwrap() && !folder.remove(name).unwrap());
        assert_eq!(got(&folder, name), None);
    }
    assert!(own.files().is_empty());
}

#[test]
fn the_least_recently_used_goes_first_and_uses_survive_a_restart() {
    let own = Own::new("lru");
    let quota_bytes = 3 * file_bytes(100);
    {
        let folder = own.open(quota_bytes);
        for name in ["a", "b", "c"] {
            assert!(folder.put(&stored(name, &[1; 100])).unwrap().evicted.is_empty());
        }
        assert!(got(&folder, "a").is_some());
    }
    let folder = own.open(quota_bytes);
    assert_eq!(names(&folder.list().unwrap()), ["b", "c", "a"], "listing does not count as a use");
    let opened = folder.get("b").unwrap().unwrap();
    assert_eq!(folder.put(&stored("d", &[4; 100])).unwrap().evicted, ["c"]);
    assert_eq!(folder.put(&stored("e", &[5; 200])).unwrap().evicted, ["a", "b"]);
    assert_eq!(names(&folder.list().unwrap()), ["d", "e"]);
    assert_eq!(opened.tensor("b").unwrap().read().unwrap(), [1; 100], "an open file stays valid");
}

#[test]
fn a_replaced_tensor_counts_once_and_is_the_last_used() {
    let own = Own::new("replaced");
    let folder = own.open(2 * file_bytes(100));
    folder.put(&stored("a", &[1; 100])).unwrap();
    folder.put(&stored("b", &[2; 100])).unwrap();
    for value in 3..9 {
        let put = folder.put(&stored("a", &[value; 100])).unwrap();
        assert_eq!((put.evicted.len(), put.file_bytes), (0, file_bytes(100)));
    }
    let listing = folder.list().unwrap();
    assert_eq!((names(&listing), listing.file_bytes), (vec!["b", "a"], 2 * file_bytes(100)));
}

#[test]
fn a_tensor_larger_than_the_quota_is_refused_with_the_numbers_and_evicts_nothing() {
    let own = Own::new("larger");
    let folder = own.open(file_bytes(100));
    folder.put(&stored("a", &[1; 100])).unwrap();
    let refused = folder.put(&stored("b", &[1; 101])).unwrap_err().to_string();
    let wanted = format!(
        "the file of `b` needs {} bytes, and the quota of the folder `{}` is {}; raise the quota",
        file_bytes(101),
        own.0.display(),
        file_bytes(100)
    );
    assert_eq!(refused, wanted);
    let wrong = TensorBytes { shape: Shape::new(&[3]).unwrap(), ..stored("b", &[1; 2]) };
    assert!(matches!(folder.put(&wrong), Err(FileError::WrongSize { wants: 3, has: 2, .. })));
    assert_eq!(names(&folder.list().unwrap()), ["a"]);
    assert_eq!(own.files().len(), 1);
}

#[test]
fn a_smaller_quota_counts_from_the_next_put_on() {
    let own = Own::new("smaller");
    let before = own.open(1 << 20);
    for name in ["a", "b", "c"] {
        before.put(&stored(name, &[1; 100])).unwrap();
    }
    let folder = own.open(file_bytes(100));
    assert_eq!(folder.list().unwrap().kept.len(), 3, "opening removes nothing");
    assert_eq!(folder.put(&stored("d", &[1; 100])).unwrap().evicted, ["a", "b", "c"]);
}

#[test]
fn a_clock_that_is_set_back_does_not_turn_the_order_round() {
    let own = Own::new("clock");
    let folder = own.open(1 << 20);
    folder.put(&stored("a", &[1])).unwrap();
    let tomorrow = SystemTime::now() + Duration::from_secs(86400);
    fs::File::options().append(true).open(&own.files()[0]).unwrap().set_modified(tomorrow).unwrap();
    let folder = own.open(1 << 20);
    folder.put(&stored("b", &[1])).unwrap();
    assert_eq!(names(&folder.list().unwrap()), ["a", "b"]);
    assert!(got(&folder, "a").is_some());
    assert_eq!(names(&folder.list().unwrap()), ["b", "a"]);
}

#[test]
fn broken_files_are_reported_skipped_replaced_and_removed() {
    let own = Own::new("broken");
    let folder = own.open(1 << 20);
    for name in ["cut", "empty", "swapped", "whole", "text"] {
        folder.put(&stored(name, &[7; 50])).unwrap();
    }
    let place = |name: &str| own.0.join(format!("t-{name}.safetensors"));
    let whole = fs::read(place("whole")).unwrap();
    fs::write(place("cut"), &whole[..whole.len() - 1]).unwrap();
    fs::write(place("empty"), []).unwrap();
    fs::write(place("text"), "not a tensor at all").unwrap();
    fs::copy(place("whole"), place("swapped")).unwrap();
    TensorFile::write(place("several"), &[stored("x", &[1]), stored("y", &[2])]).unwrap();
    fs::write(own.0.join("notes.txt"), "not ours").unwrap();

    let listing = folder.list().unwrap();
    assert_eq!(names(&listing), ["whole"]);
    let mut broken: Vec<_> = listing.corrupt.iter().filter_map(|corrupt| corrupt.name.as_deref()).collect();
    broken.sort_unstable();
    assert_eq!(broken, ["cut", "empty", "several", "swapped", "text"]);
    assert!(matches!(folder.get("cut"), Err(FileError::Malformed { .. })));
    assert!(matches!(folder.get("swapped"), Err(FileError::OtherTensor { .. })));

    folder.put(&stored("cut", &[8; 50])).unwrap();
    assert_eq!(got(&folder, "cut"), Some(vec![8; 50]), "a put mends it");
    assert!(folder.remove("swapped").unwrap());
    assert_eq!(folder.remove_corrupt().unwrap().len(), 3);
    let listing = folder.list().unwrap();
    assert_eq!((listing.kept.len(), listing.corrupt.len()), (2, 0));
    assert!(own.0.join("notes.txt").exists(), "what is not ours is left alone");
}

#[test]
fn what_a_put_never_finished_is_gone_after_the_next_open() {
    let own = Own::new("unfinished");
    own.open(1 << 20).put(&stored("a", &[1])).unwrap();
    fs::write(own.0.join(".unfinished-put-1-1"), [0; 100]).unwrap();
    own.open(1 << 20);
    assert_eq!(own.files().len(), 1);
}

#[test]
fn an_export_into_the_folder_is_not_tidied_away_by_a_put() {
    let own = Own::new("export");
    let folder = own.open(1 << 20);
    let path = own.0.join("export.safetensors");
    let heading = Heading { name: "x", dtype: DType::U8, shape: Shape::new(&[2]).unwrap() };
    let written = TensorFile::write_each(&path, &[heading], |_| {
        // The file has been created by now.
        folder.put(&stored("a", &[1]))?;
        own.open(1 << 20);
        Ok::<_, FileError>(vec![1, 2].into())
    });
    assert!(written.is_ok(), "{written:?}");
    assert_eq!(TensorFile::open(&path).unwrap().tensor("x").unwrap().read().unwrap(), [1, 2]);
    assert_eq!((own.files().len(), got(&folder, "a")), (2, Some(vec![1])), "and nothing unfinished is left");
}

#[test]
fn leftovers_that_cannot_be_removed_do_not_block_opening_and_putting() {
    let own = Own::new("stuck");
    let folder = own.open(1 << 20);
    for name in [".unfinished-x", ".unfinished-put-x"] {
        fs::create_dir_all(own.0.join(name)).unwrap();
    }
    folder.put(&stored("a", &[1])).unwrap();
    assert_eq!(got(&own.open(1 << 20), "a"), Some(vec![1]));
}

#[test]
fn a_directory_under_an_aside_name_is_left_alone_and_blocks_no_eviction() {
    let own = Own::new("aside_directory");
    let folder = own.open(2 * file_bytes(100));
    let directories = ["a", "q"].map(|name| own.0.join(format!(".aside-t-{name}.safetensors")));
    for name in ["a", "b"] {
        folder.put(&stored(name, &[1; 100])).unwrap();
    }
    for directory in &directories {
        fs::create_dir(directory).unwrap();
    }
    assert_eq!(folder.put(&stored("c", &[1; 100])).unwrap().evicted, ["a"]);
    assert_eq!(folder.put(&stored("q", &[1; 100])).unwrap().evicted, ["b"]);
    assert!(directories.iter().all(|directory| directory.is_dir()));
    assert_eq!(names(&own.open(1 << 20).list().unwrap()), ["c", "q"]);
    assert_eq!(own.files().len(), 4, "and nothing is left aside");
}

#[test]
fn a_file_that_cannot_get_its_name_evicts_no_tensor() {
    let own = Own::new("no_name");
    let folder = own.open(2 * file_bytes(100));
    folder.put(&stored("a", &[1; 100])).unwrap();
    folder.put(&stored("b", &[2; 100])).unwrap();
    // No file can be renamed onto this.
    fs::create_dir_all(own.0.join("t-c.safetensors/inside")).unwrap();
    let failed = folder.put(&stored("c", &[3; 100])).unwrap_err();
    assert!(matches!(failed, FileError::System { act: "written", .. }), "{failed}");
    let listing = folder.list().unwrap();
    assert_eq!((names(&listing), listing.file_bytes), (vec!["a", "b"], 2 * file_bytes(100)));
    assert_eq!((got(&folder, "a"), got(&folder, "b")), (Some(vec![1; 100]), Some(vec![2; 100])));
    assert_eq!(own.files().len(), 3, "and nothing unfinished is left");
    assert_eq!(folder.put(&stored("d", &[4; 100])).unwrap().evicted, ["a"], "uses are as they were");
}

#[test]
fn what_was_set_aside_by_a_process_that_was_killed_is_there_again() {
    let own = Own::new("aside");
    let folder = own.open(1 << 20);
    folder.put(&stored("a", &[1; 9])).unwrap();
    folder.put(&stored("b", &[2; 9])).unwrap();
    // As after a kill between making room and the rename, and as after a kill after the rename.
    let (file, other) = (own.0.join("t-a.safetensors"), own.0.join(".aside-t-a.safetensors"));
    fs::rename(&file, &other).unwrap();
    fs::write(own.0.join(".aside-t-b.safetensors"), "older").unwrap();
    let again = own.open(1 << 20);
    assert_eq!((got(&again, "a"), got(&again, "b")), (Some(vec![1; 9]), Some(vec![2; 9])));
    assert_eq!(own.files().len(), 2);
    fs::rename(&file, &other).unwrap();
    folder.put(&stored("c", &[3; 9])).unwrap();
    assert_eq!(got(&folder, "a"), Some(vec![1; 9]), "the next writer restores it too");
}

#[test]
fn what_was_set_aside_by_a_process_that_was_killed_can_be_removed() {
    let own = Own::new("aside_removed");
    let folder = own.open(1 << 20);
    let (file, other) = (own.0.join("t-a.safetensors"), own.0.join(".aside-t-a.safetensors"));
    folder.put(&stored("a", &[1; 9])).unwrap();
    fs::rename(&file, &other).unwrap();
    assert!(folder.remove("a").unwrap());
    folder.put(&stored("b", &[2; 9])).unwrap();
    assert_eq!(names(&folder.list().unwrap()), ["b"], "and it does not come back");
    fs::write(&other, "broken").unwrap();
    assert_eq!(folder.remove_corrupt().unwrap().len(), 1);
    assert_eq!(own.files().len(), 1);
}

#[test]
fn what_a_put_evicted_when_it_was_killed_comes_back_until_the_next_put() {
    let own = Own::new("aside_quota");
    let quota_bytes = 2 * file_bytes(100);
    let folder = own.open(quota_bytes);
    for name in ["a", "b"] {
        folder.put(&stored(name, &[1; 100])).unwrap();
    }
    // As after a kill after the rename, before the evicted file is removed.
    let evicted = fs::read(own.0.join("t-a.safetensors")).unwrap();
    assert_eq!(folder.put(&stored("c", &[1; 100])).unwrap().evicted, ["a"]);
    fs::write(own.0.join(".aside-t-a.safetensors"), evicted).unwrap();
    let again = own.open(quota_bytes);
    assert_eq!(
        again.list().unwrap().file_bytes,
        3 * file_bytes(100),
        "it is unknown whether the new file got its name"
    );
    again.put(&stored("c", &[2; 100])).unwrap();
    assert_eq!(again.list().unwrap().file_bytes, quota_bytes);
}

#[test]
fn threads_share_a_folder() {
    let own = Own::new("threads");
    let (one, two) = (own.open(6 * file_bytes(500)), own.open(6 * file_bytes(500)));
    std::thread::scope(|scope| {
        for at in 0..4_u8 {
            let folder = if at % 2 == 0 { &one } else { &two };
            scope.spawn(move || fill(folder, at));
        }
    });
    check(&one);
}

// ---- processes

const ROUNDS: usize = 15;

/// Puts and gets tensors that other threads or processes put and get too. Every result must be exactly one of the puts.
fn fill(folder: &TensorFolder, own: u8) {
    for round in 0..ROUNDS {
        let name = ["a", "b", "c", "d", "e", "f", "g", "h"][(round * 3 + usize::from(own)) % 8];
        folder.put(&stored(name, &[own; 500])).unwrap();
        let name = ["h", "a", "c", "e"][round % 4];
        if let Some(bytes) = got(folder, name) {
            assert!(
                bytes.len() == 500 && bytes.iter().all(|byte| *byte == bytes[0]),
                "{name} is half one and half another"
            );
        }
        println!("put {round}");
    }
}

fn check(folder: &TensorFolder) {
    let listing = folder.list().unwrap();
    assert_eq!((listing.corrupt.len(), listing.kept.len()), (0, 6), "{:?}", listing.corrupt);
    assert_eq!(listing.file_bytes, folder.quota_bytes());
}

/// This test again, in a process of its own.
fn again(test: &str, folder: &Path, own: u8) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([&format!("folder::{test}"), "--exact", "--nocapture"])
        .env("VRAMP_TEST_FOLDER", folder)
        .env("VRAMP_TEST_OWN", own.to_string());
    child.stdout(Stdio::piped()).spawn().unwrap()
}

/// True in such a child process, after its work is done.
fn was_child(quota_bytes: u64) -> bool {
    let Ok(path) = std::env::var("VRAMP_TEST_FOLDER") else { return false };
    fill(&TensorFolder::open(path, quota_bytes).unwrap(), std::env::var("VRAMP_TEST_OWN").unwrap().parse().unwrap());
    true
}

#[test]
fn processes_share_a_folder() {
    let quota_bytes = 6 * file_bytes(500);
    if was_child(quota_bytes) {
        return;
    }
    let own = Own::new("processes");
    let children: Vec<Child> = (1..4).map(|at| again("processes_share_a_folder", &own.0, at)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let lines = String::from_utf8(output.stdout).unwrap();
        assert_eq!(lines.matches("put ").count(), ROUNDS, "it did its work: {lines}");
    }
    check(&own.open(quota_bytes));
}

#[test]
fn a_process_that_is_killed_leaves_a_whole_folder() {
    let quota_bytes = 6 * file_bytes(500);
    if was_child(quota_bytes) {
        return;
    }
    let own = Own::new("killed");
    let folder = own.open(quota_bytes);
    for round in 1..6 {
        let mut child = again("a_process_that_is_killed_leaves_a_whole_folder", &own.0, round);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let puts = lines.filter(|line| line.contains("put ")).take(usize::from(round)).count();
        assert_eq!(puts, usize::from(round));
        child.kill().unwrap();
        child.wait().unwrap();
        // Its lock is released, and its unfinished files are removed.
        let again = own.open(quota_bytes);
        let listing = again.list().unwrap();
        assert!(listing.corrupt.is_empty() && !listing.kept.is_empty(), "{listing:?}");
        assert!(own.files().iter().all(|path| path.extension().is_some_and(|end| end == "safetensors")));
        folder.put(&stored("mine", &[round; 9])).unwrap();
        assert_eq!(got(&again, "mine"), Some(vec![round; 9]));
    }
}

// ---- against a list

#[derive(Debug, Clone)]
enum Act {
    Put(usize, usize),
    Get(usize),
    Remove(usize),
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let name = 0..5_usize;
    prop_oneof![
        4 => (name.clone(), 0..400_usize).prop_map(|(name, bytes)| Act::Put(name, bytes)),
        3 => name.clone().prop_map(Act::Get),
        1 => name.prop_map(Act::Remove),
        1 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_folder_does_what_a_list_does(acts in proptest::collection::vec(act(), 1..25)) {
        const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
        let quota_bytes = 900;
        let own = Own::new("list");
        let mut folder = own.open(quota_bytes);
        // Least recently used first.
        let mut list: Vec<(usize, usize)> = Vec::new();
        let size = |(_, bytes): &(usize, usize)| file_bytes(*bytes as u64);
        for act in acts {
            match act {
                Act::Put(name, bytes) => {
                    let put = folder.put(&stored(NAMES[name], &vec![name as u8; bytes])).unwrap();
                    list.retain(|(other, _)| *other != name);
                    let mut evicted = Vec::new();
                    while list.iter().map(size).sum::<u64>() + put.file_bytes > quota_bytes {
                        evicted.push(NAMES[list.remove(0).0]);
                    }
                    list.push((name, bytes));
                    prop_assert_eq!(put.evicted, evicted);
                }
                Act::Get(name) => {
                    let at = list.iter().position(|(other, _)| *other == name);
                    let wanted = at.map(|at| list.remove(at));
                    list.extend(wanted);
                    prop_assert_eq!(got(&folder, NAMES[name]), wanted.map(|(name, bytes)| vec![name as u8; bytes]));
                }
                Act::Remove(name) => {
                    let before = list.len();
                    list.retain(|(other, _)| *other != name);
                    prop_assert_eq!(folder.remove(NAMES[name]).unwrap(), list.len() < before);
                }
                Act::Reopen => folder = own.open(quota_bytes),
            }
            let listing = folder.list().unwrap();
            prop_assert_eq!(names(&listing), list.iter().map(|(name, _)| NAMES[*name]).collect::<Vec<_>>());
            prop_assert_eq!(listing.file_bytes, list.iter().map(size).sum::<u64>());
        }
    }
}
