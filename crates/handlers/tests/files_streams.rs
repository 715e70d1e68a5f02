//! Standard input and output, and a full disk. Each test runs itself again as a child process, and an environment
//! variable selects the inner half. The child writes its findings to a file and exits before the harness prints.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::files_rig::{Shot, data, names, read, room, size, write};
use vramp_handlers::registry;
use vramp_handlers::{sink, source};
use vramp_plan::Format;
use vramp_plan::catalog::{SettingValues, SourceProbe, Value};

const INNER: &str = "VRAMP_TEST_LEAVES_ITS_FINDINGS_IN";

/// In the child process, does the inner half and never returns.
fn inner(work: impl FnOnce() -> String) {
    if let Some(path) = std::env::var_os(INNER) {
        fs::write(path, work()).expect("findings can be left");
        std::process::exit(0);
    }
}

/// The command that runs this test as a child process.
fn again(test: &str, findings: &Path, shell: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} exec \"$0\" --exact files_streams::{test} --nocapture")]);
    command.arg(std::env::current_exe().expect("this test has a file")).env(INNER, findings);
    command
}

fn clip(count: u64) -> Vec<Shot> {
    (0..count).map(|n| Shot::made(Format::I420, size(64, 48), n)).collect()
}

#[test]
fn a_y4m_stream_goes_on_where_probing_has_left_it() {
    inner(|| {
        let mut settings = SettingValues::default();
        settings.set("path", Value::Text("-".to_owned()));
        let probed = registry().probe(&source::y4m::ENTRY, &settings).expect("a header");
        let again = registry().probe(&source::y4m::ENTRY, &settings).expect("the header again");
        assert_eq!(probed, again);
        let (shots, end) = read(&source::y4m::ENTRY, &[("path", "-")]);
        format!(
            "{end:?} {:?}",
            shots.iter().map(|shot| shot.bare().into_iter().map(u64::from).sum::<u64>()).collect::<Vec<_>>()
        )
    });
    let room = room("stdin");
    let findings = room.join("findings");
    let whole = fs::read(data("i420.y4m")).unwrap();
    let (expected, _) = read(&source::y4m::ENTRY, &[("path", &data("i420.y4m"))]);
    let sums: Vec<u64> = expected.iter().map(|shot| shot.bare().into_iter().map(u64::from).sum()).collect();
    for (cut, ending) in [(0, "Ok(())"), (4, "4 of its 27 bytes are missing")] {
        let mut command = again("a_y4m_stream_goes_on_where_probing_has_left_it", &findings, "");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&whole[..whole.len() - cut]).unwrap();
        assert!(child.wait().unwrap().success());
        let found = fs::read_to_string(&findings).unwrap();
        assert!(found.contains(ending), "{found}");
        assert!(found.ends_with(&format!("{:?}", &sums[..3 - usize::from(cut > 0)])), "{found} instead of {sums:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_an_error_and_no_panic() {
    inner(|| format!("{:?}", write(&sink::y4m::ENTRY, &[("path", "-")], &clip(200))));
    let room = room("broken-pipe");
    let findings = room.join("findings");
    let mut command = again("a_reader_that_goes_away_is_an_error_and_no_panic", &findings, "");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    // The harness prints first; then come frames, more than a pipe holds.
    child.stdout.take().unwrap().read_exact(&mut [0; 5000]).unwrap();
    assert!(child.wait().unwrap().success());
    let found = fs::read_to_string(&findings).unwrap();
    assert!(found.contains("standard output, frame ") && found.contains("the reader has closed the stream"), "{found}");
}

#[test]
fn what_goes_to_standard_output_is_what_goes_to_a_file() {
    inner(|| format!("{:?}", write(&sink::y4m::ENTRY, &[("path", "-")], &clip(5))));
    let room = room("stdout");
    let path = room.join("a.y4m").display().to_string();
    write(&sink::y4m::ENTRY, &[("path", &path)], &clip(5)).unwrap();
    let command = &mut again("what_goes_to_standard_output_is_what_goes_to_a_file", &room.join("findings"), "");
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(fs::read_to_string(room.join("findings")).unwrap(), "Ok(())");
    assert!(output.stdout.ends_with(&fs::read(&path).unwrap()), "{} bytes", output.stdout.len());
}

/// A limit on the file size imitates a full disk: writing stops in the middle of a frame.
#[test]
fn a_full_disk_leaves_whole_frames_under_the_name_and_nothing_else() {
    inner(|| {
        let found = std::env::var_os(INNER).expect("the inner process has it");
        let room = Path::new(&found).parent().expect("a directory").join("out");
        let given = |name: &str| room.join(name).display().to_string();
        let y4m = write(&sink::y4m::ENTRY, &[("path", &given("a.y4m"))], &clip(10));
        let raw = write(&sink::raw::ENTRY, &[("path", &given("a.raw"))], &clip(10));
        let noise = [Shot::made(Format::Rgba8, size(100, 100), 1)];
        let png = write(&sink::png::ENTRY, &[("path", &given("a.png"))], &noise);
        [y4m, raw, png].map(Result::unwrap_err).join("\n")
    });
    let room = room("full-disk");
    fs::create_dir(room.join("out")).unwrap();
    fs::write(room.join("out/a.png"), "old").unwrap();
    // 40 blocks of 512 bytes: four frames of 4608 bytes, and a part of the fifth. Without the trap, a signal would end
    // the process.
    let limit = "trap '' XFSZ; ulimit -f 40;";
    let test = "a_full_disk_leaves_whole_frames_under_the_name_and_nothing_else";
    let output = again(test, &room.join("findings"), limit).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = fs::read_to_string(room.join("findings")).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[0].contains("a.y4m`, frame 4, byte 20480: "), "{found}");
    assert!(lines[1].contains("a.raw`, frame 4, byte 20480: ") && lines[1].contains("(18432 bytes)"), "{found}");
    assert!(lines[2].contains("a.png`, frame 0, byte 20480: "), "{found}");
    assert_eq!(names(&room.join("out")), ["a.png", "a.raw", "a.y4m"]);
    assert_eq!(fs::read_to_string(room.join("out/a.png")).unwrap(), "old");
    assert_eq!(fs::metadata(room.join("out/a.raw")).unwrap().len(), 4 * 4608);
    let (shots, end) = read(&source::y4m::ENTRY, &[("path", &room.join("out/a.y4m").display().to_string())]);
    assert_eq!((shots.len(), end), (4, Ok(())));
}
