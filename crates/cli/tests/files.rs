//! A run never overwrites its own files, whatever their names and however the run ends.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{Run, command, dir, ends_with, finish, json, vramp_in};

#[derive(Debug, Clone, Copy)]
enum Stream {
    /// Empty for input, captured by the test for output.
    Usual,
    /// A file in the directory; output is appended to it, so that its content survives.
    File(&'static str),
}
use Stream::Usual;

fn run(dir: &Path, args: &[&str], input: Stream, output: Stream) -> Run {
    let mut command = command(args);
    command.current_dir(dir);
    if let Stream::File(name) = input {
        command.stdin(File::open(dir.join(name)).unwrap());
    }
    if let Stream::File(name) = output {
        command.stdout(OpenOptions::new().append(true).create(true).open(dir.join(name)).unwrap());
    }
    finish(command)
}

/// The contents of a directory: targets of links and bytes of files.
fn content(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (name, kind) = (entry.file_name().into_string().unwrap(), entry.file_type().unwrap());
        let bytes = if kind.is_symlink() {
            fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
        } else if kind.is_file() {
            fs::read(entry.path()).unwrap()
        } else {
            Vec::new()
        };
        all.insert(name, bytes);
    }
    all
}

/// A directory with a clip, images, links to them, and files that handlers load.
fn stage(test: &str) -> std::path::PathBuf {
    let dir = dir(test);
    let clip: Vec<u8> =
        b"YUV4MPEG2 W4 H4 F30:1 Cmono\n".iter().chain(&b"FRAME\n0123456789abcdef".repeat(5)).copied().collect();
    fs::write(dir.join("s.y4m"), clip).unwrap();
    ends_with(0, vramp_in(&dir, &["run", "pattern size=8x8 frames=12 ! png path=a-%d.png", "--cpu", "-q"]));
    fs::copy(dir.join("a-0.png"), dir.join("logo.png")).unwrap();
    fs::write(dir.join("look.cube"), "LUT_1D_SIZE 2\n0 0 0\n1 1 1\n").unwrap();
    fs::write(dir.join("glow.wgsl"), "fn pixel(c: vec4f) -> vec4f { return c; }\n").unwrap();
    fs::write(dir.join("font.ttf"), "a font").unwrap();
    fs::write(dir.join("run.vramp"), "pattern size=8x8 frames=2 ! raw path=run.vramp\n").unwrap();
    fs::write(dir.join("run2.vramp"), "pattern size=8x8 frames=2 ! null\n").unwrap();
    fs::create_dir(dir.join("sub")).unwrap();
    symlink("s.y4m", dir.join("link.y4m")).unwrap();
    symlink("link.y4m", dir.join("far.y4m")).unwrap();
    symlink(".", dir.join("here")).unwrap();
    symlink("new.y4m", dir.join("dangling.y4m")).unwrap();
    symlink("logo.png", dir.join("m-3.png")).unwrap();
    fs::hard_link(dir.join("s.y4m"), dir.join("hard.y4m")).unwrap();
    dir
}

/// A pipeline, its options, its standard input and output, and a part of the expected error.
type Row = (&'static str, &'static [&'static str], Stream, Stream, &'static str);

const S: Stream = Stream::File("s.y4m");
const OUT: Stream = Stream::File("out.txt");

const SAME: &[Row] = &[
    // A source and a sink.
    ("y4m path=s.y4m ! invert ! y4m path=s.y4m", &[], Usual, Usual, "y4m1 would overwrite `s.y4m`, which y4m0 reads"),
    ("y4m path=s.y4m ! y4m path=./s.y4m", &[], Usual, Usual, "`./s.y4m` leads there"),
    ("y4m path=sub/../s.y4m ! y4m path=s.y4m", &[], Usual, Usual, "y4m0 reads"),
    ("y4m path=here/s.y4m ! y4m path=s.y4m", &[], Usual, Usual, "y4m0 reads"),
    ("y4m path=s.y4m ! y4m path=here/here/./s.y4m", &[], Usual, Usual, "y4m0 reads"),
    ("y4m path=s.y4m ! y4m path=link.y4m", &[], Usual, Usual, "`link.y4m` leads there"),
    ("y4m path=far.y4m ! y4m path=s.y4m", &[], Usual, Usual, "y4m0 reads"),
    ("y4m path=far.y4m ! y4m path=link.y4m", &[], Usual, Usual, "y4m0 reads"),
    ("y4m path=s.y4m ! y4m path=hard.y4m", &[], Usual, Usual, "`hard.y4m` leads there"),
    ("y4m path=s.y4m ! raw path=s.y4m", &[], Usual, Usual, "raw0 would overwrite"),
    ("y4m path=s.y4m ! y4m path=s.y4m partial=replace", &[], Usual, Usual, "y4m0 reads"),
    // Standard streams that are files.
    ("y4m path=s.y4m ! y4m path=-", &[], Usual, S, "standard output leads there"),
    ("y4m path=s.y4m ! y4m path=/dev/stdout", &[], Usual, S, "`/dev/stdout` leads there"),
    ("y4m path=- ! y4m path=s.y4m", &[], S, Usual, "the file of standard input"),
    ("y4m path=- ! y4m path=-", &[], S, Stream::File("hard.y4m"), "the file of standard input"),
    ("y4m path=/dev/stdin ! y4m path=link.y4m", &[], S, Usual, "y4m0 reads"),
    ("y4m path=s.y4m ! null", &["--json"], Usual, S, "--json would overwrite `s.y4m`"),
    // Pictures.
    ("image path=a-*.png ! png path=a-%d.png", &[], Usual, Usual, "which image0 reads: `a-%d.png` leads there"),
    ("image path=a-?.png ! png path=a-7.png", &[], Usual, Usual, "png0 would overwrite `a-7.png`"),
    ("image path=a-3.png ! png path=./a-%01d.png", &[], Usual, Usual, "`a-3.png`, which image0 reads"),
    ("image path=a-10.png ! jpeg path=a-%02d.png", &[], Usual, Usual, "jpeg0 would overwrite `a-10.png`"),
    ("image path=logo.png ! png path=m-%d.png", &[], Usual, Usual, "`m-%d.png` leads there"),
    // Files that handlers load, and the program's own files.
    ("pattern ! overlay path=logo.png ! png path=logo.png", &[], Usual, Usual, "which overlay0 reads"),
    ("pattern ! lut path=look.cube ! raw path=here/look.cube", &[], Usual, Usual, "which lut0 reads"),
    ("pattern ! wgsl path=glow.wgsl ! raw path=./glow.wgsl", &[], Usual, Usual, "which wgsl0 reads"),
    ("pattern ! text hi font=font.ttf ! raw path=font.ttf", &[], Usual, Usual, "which text0 reads"),
    ("run.vramp", &[], Usual, Usual, "raw0 would overwrite `run.vramp`, which holds the pipeline"),
    ("-", &[], Stream::File("run.vramp"), Usual, "which holds the pipeline: `run.vramp` leads there"),
    ("run2.vramp", &["--trace", "here/run2.vramp"], Usual, Usual, "--trace would overwrite"),
    ("y4m path=s.y4m ! null", &["--trace", "hard.y4m"], Usual, Usual, "--trace would overwrite `s.y4m`"),
    // Two writers.
    (
        "pattern name=p ! raw path=o.raw; p. ! raw path=o.raw",
        &[],
        Usual,
        Usual,
        "raw0 and raw1 would both write to `o.raw`",
    ),
    ("pattern name=p ! raw path=o.raw; p. ! y4m path=sub/../o.raw", &[], Usual, Usual, "both lead there"),
    ("pattern name=p ! y4m path=new.y4m; p. ! y4m path=dangling.y4m", &[], Usual, Usual, "both lead there"),
    ("pattern name=p ! png path=k%d.png; p. ! png path=k%01d.png", &[], Usual, Usual, "both write to `k0.png`"),
    ("pattern name=p ! png path=k%02d.png; p. ! jpeg path=here/k%d.png", &[], Usual, Usual, "k10.png`"),
    ("pattern name=p ! png path=k%d.png; p. ! raw path=k7.png", &[], Usual, Usual, "both write to `k7.png`"),
    ("pattern name=p ! png path=m-%d.png; p. ! raw path=logo.png", &[], Usual, Usual, "both write to `m-3.png`"),
    ("pattern name=p ! y4m path=-; p. ! raw path=/dev/stdout", &[], Usual, Usual, "standard output"),
    ("pattern ! y4m path=t.json", &["--trace", "./t.json"], Usual, Usual, "y4m0 and --trace would both write"),
    ("pattern ! raw path=/dev/stdout", &["--json"], Usual, Usual, "raw0 and --json would both write"),
    ("pattern ! raw path=/dev/fd/1", &["--json"], Usual, Usual, "raw0 and --json"),
    ("pattern ! raw path=out.txt", &["--json"], Usual, OUT, "raw0 and --json would both write to `out.txt`"),
    ("pattern ! y4m path=-", &["--trace", "/dev/stdout"], Usual, Usual, "y4m0 and --trace"),
    ("pattern ! null", &["--trace", "/dev/stdout", "--json"], Usual, Usual, "--trace and --json would both write"),
];

#[test]
fn a_file_that_is_named_twice_is_refused_and_nothing_is_changed() {
    assert!(SAME.len() >= 20);
    let dir = stage("named_twice");
    fs::write(dir.join("out.txt"), "").unwrap();
    let before = content(&dir);
    for (pipeline, options, input, output, words) in SAME {
        // Some names exist only on Linux.
        if !cfg!(target_os = "linux") && pipeline.contains("/dev/fd") {
            continue;
        }
        let args = [&["run", pipeline, "--cpu", "--frames=20"][..], options].concat();
        let run = run(&dir, &args, *input, *output);
        assert_eq!(run.code, 2, "{pipeline}\n{}", run.err);
        assert!(run.err.contains(words), "{pipeline}: {}", run.err);
        assert!(content(&dir) == before, "{pipeline}: a file has changed");
    }
}

#[test]
fn the_remedy_is_shown_at_the_position_of_the_setting() {
    let dir = stage("clash_place");
    let run = ends_with(2, vramp_in(&dir, &["run", "y4m s.y4m ! y4m path=./s.y4m", "--cpu"]));
    assert_eq!(
        run.err.trim_end(),
        "error: y4m1 would overwrite `s.y4m`, which y4m0 reads: `./s.y4m` leads there\n \
         --> pipeline:1:22\n  \
           |\n\
         1 | y4m s.y4m ! y4m path=./s.y4m\n  \
           |                      ^^^^^^^ expected a file that is not used elsewhere in this run\n  \
           |\n  \
           = help: write to another file, such as `./s-out.y4m`"
    );
    let run = ends_with(2, vramp_in(&dir, &["run", "image a-*.png ! png a-%d.png", "--cpu"]));
    assert!(run.err.contains("help: write to another directory, such as `out/a-%d.png`"), "{}", run.err);
}

#[test]
fn files_of_their_own_and_what_can_be_shared_are_not_refused() {
    let dir = stage("not_the_same");
    let fine: &[(&str, &[&str], Stream, Stream)] = &[
        ("y4m path=s.y4m ! y4m path=t.y4m", &["--trace", "t.json", "--json"], Usual, Usual),
        ("y4m path=- ! y4m path=-", &[], S, Usual),
        ("y4m path=s.y4m ! y4m path=-", &[], Usual, OUT),
        ("y4m path=s.y4m ! null", &["--json"], Usual, OUT),
        ("y4m path=s.y4m name=s ! null; s. ! raw path=/dev/null; s. ! raw path=/dev/null", &["--json"], Usual, Usual),
        ("y4m path=s.y4m ! raw path=/dev/null", &["--trace", "/dev/null"], Usual, Usual),
        ("y4m path=s.y4m name=s ! y4m path=u.y4m; y4m path=s.y4m ! y4m path=v.y4m", &[], Usual, Usual),
        ("image path=a-*.png ! png path=sub/a-%d.png", &[], Usual, Usual),
        ("image path=a-*.png name=a ! png path=b-%d.png; a. ! png path=b-%d.x.png", &[], Usual, Usual),
        ("image path=a-1?.png name=a ! png path=a-%03d.png", &[], Usual, Usual),
        ("image path=a-1.png name=a ! png path=k0%d.png; a. ! png path=k%d.png", &[], Usual, Usual),
        ("image path=a-1.png ! png path=a-%%d.png", &[], Usual, Usual),
    ];
    for (pipeline, options, input, output) in fine {
        let args = [&["run", pipeline, "--cpu", "-q"][..], options].concat();
        ends_with(0, run(&dir, &args, *input, *output));
    }
    // A verification writes nothing.
    ends_with(0, vramp_in(&dir, &["run", "y4m s.y4m ! invert ! y4m path=s.y4m", "--cpu", "--verify"]));
}

#[test]
fn a_pipe_that_would_be_fed_with_its_own_frames_is_refused() {
    let dir = dir("own_pipe");
    assert!(Command::new("mkfifo").arg(dir.join("p")).status().unwrap().success());
    let pipeline = "raw path=p size=4x4 format=gray8 ! raw path=./p";
    let run = ends_with(2, vramp_in(&dir, &["run", pipeline, "--cpu"]));
    assert!(run.err.contains("raw1 would write into `p`, which raw0 reads"), "{}", run.err);
}

#[test]
fn the_picture_and_the_timeline_of_the_demo_are_two_files() {
    let dir = dir("demo_files");
    for output in ["x.png", "./x.png"] {
        let run = ends_with(2, vramp_in(&dir, &["demo", "--cpu", "--output", "x.png", "--trace", output]));
        assert!(run.err.contains("--output and --trace would both write to `"), "{}", run.err);
    }
    assert!(names(&dir).is_empty());
}

#[test]
fn pictures_come_in_the_order_of_their_numbers() {
    let dir = dir("natural");
    for number in [1, 2, 9, 10, 11, 100] {
        let pipeline = format!("pattern kind=solid color=0000{number:02x} size=2x2 frames=1 ! png path=p-{number}.png");
        ends_with(0, vramp_in(&dir, &["run", &pipeline, "--cpu", "-q"]));
    }
    ends_with(0, vramp_in(&dir, &["run", "image path=p-*.png ! raw path=all.rgba", "--cpu", "-q"]));
    let blues: Vec<u8> = fs::read(dir.join("all.rgba")).unwrap().chunks(16).map(|frame| frame[2]).collect();
    assert_eq!(blues, [1, 2, 9, 10, 11, 100]);
}

/// Runs an endless pipeline in a directory, and interrupts it once its sink has started.
fn interrupted(dir: &Path, args: &[&str]) -> Run {
    let mut command = command(args);
    let child = command.current_dir(dir).stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let written = || {
        let parts =
            fs::read_dir(dir).unwrap().flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "part"));
        parts.filter_map(|entry| entry.metadata().ok()).any(|found| found.len() > 100)
    };
    while !written() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().expect("it ended by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn names(dir: &Path) -> Vec<String> {
    content(dir).into_keys().collect()
}

#[test]
fn an_interrupted_run_leaves_an_older_file_and_says_where_its_own_is() {
    let dir = dir("interrupted_beside");
    let args = ["run", "pattern size=8x8 ! y4m path=clip.y4m", "--cpu", "--json"];
    // There is no older file: the frames get the name.
    let run = ends_with(130, interrupted(&dir, &args));
    assert_eq!(names(&dir), ["clip.y4m"]);
    assert_eq!(json(&run)["partial_files"], serde_json::json!([]));
    fs::write(dir.join("clip.y4m"), "old").unwrap();
    for beside in ["clip.partial.y4m", "clip.partial-2.y4m"] {
        let run = ends_with(130, interrupted(&dir, &args));
        assert!(
            run.err.contains(&format!("`clip.y4m` was not replaced, and the frames so far are in `{beside}`")),
            "{}",
            run.err
        );
        let report = json(&run);
        let expected = serde_json::json!([{"handler": "y4m0", "path": beside, "instead_of": "clip.y4m"}]);
        assert_eq!(report["partial_files"], expected);
        assert_eq!(fs::read(dir.join("clip.y4m")).unwrap(), b"old");
        let again = format!("y4m path={beside} ! null");
        let read = json(&ends_with(0, vramp_in(&dir, &["run", &again, "--cpu", "--json"])));
        assert_eq!(read["frames"], report["frames_out"]);
    }
    assert_eq!(names(&dir), ["clip.partial-2.y4m", "clip.partial.y4m", "clip.y4m"]);
    // With `partial=replace`, the older file is replaced.
    let args = ["run", "pattern size=8x8 ! y4m path=clip.y4m partial=replace", "--cpu", "-q"];
    let run = ends_with(130, interrupted(&dir, &args));
    assert_eq!(run.err, "");
    assert!(fs::read(dir.join("clip.y4m")).unwrap().starts_with(b"YUV4MPEG2"));
    assert_eq!(names(&dir).len(), 3);
}

#[test]
fn a_failed_run_leaves_an_older_file_and_a_finished_one_replaces_it() {
    let dir = dir("failed_beside");
    let whole = [&b"YUV4MPEG2 W4 H4 F30:1 Cmono\n"[..], &b"FRAME\n0123456789abcdef".repeat(3)].concat();
    fs::write(dir.join("cut.y4m"), &whole[..whole.len() - 4]).unwrap();
    fs::write(dir.join("whole.y4m"), &whole).unwrap();
    let fails = ["run", "y4m path=cut.y4m ! raw path=clip", "--cpu"];
    ends_with(1, vramp_in(&dir, &fails));
    assert_eq!(fs::read(dir.join("clip")).unwrap(), b"0123456789abcdef".repeat(2), "nothing was there");
    fs::write(dir.join("clip"), "old").unwrap();
    let run = ends_with(1, vramp_in(&dir, &[&fails[..], &["-q"]].concat()));
    assert!(run.err.contains("`clip` was not replaced, and the frames so far are in `clip.partial`"), "{}", run.err);
    assert_eq!(fs::read(dir.join("clip")).unwrap(), b"old");
    assert_eq!(fs::read(dir.join("clip.partial")).unwrap(), b"0123456789abcdef".repeat(2));
    // A run that skips frames of a failed handler has not failed.
    for ends in ["--frames=2", "--seconds=9"] {
        fs::write(dir.join("clip"), "old").unwrap();
        ends_with(0, vramp_in(&dir, &["run", "y4m path=whole.y4m ! raw path=clip", "--cpu", "-q", ends]));
        assert!(fs::read(dir.join("clip")).unwrap().starts_with(b"0123456789abcdef"), "{ends}");
    }
    fs::write(dir.join("clip"), "old").unwrap();
    let skips = "y4m path=cut.y4m on-error=skip ! raw path=clip";
    ends_with(0, vramp_in(&dir, &["run", skips, "--cpu", "-q"]));
    assert_eq!(fs::read(dir.join("clip")).unwrap(), b"0123456789abcdef".repeat(2));
    assert_eq!(names(&dir), ["clip", "clip.partial", "cut.y4m", "whole.y4m"]);
}

#[test]
fn time_that_is_up_ends_a_run_cleanly_though_its_source_is_silent() {
    let dir = dir("silent_source");
    fs::write(dir.join("clip"), "old").unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"0123456789abcdef0123").unwrap();
    let mut command =
        command(&["run", "raw path=- size=4x4 format=gray8 ! raw path=clip", "--cpu", "-q", "--seconds=0.3"]);
    command.current_dir(&dir).stdin(reader);
    ends_with(0, finish(command));
    drop(writer);
    assert_eq!(fs::read(dir.join("clip")).unwrap(), b"0123456789abcdef");
    assert_eq!(names(&dir), ["clip"]);
}

#[test]
fn a_loop_whose_pictures_all_vanish_is_an_error_whatever_is_skipped() {
    let dir = dir("vanishing");
    ends_with(0, vramp_in(&dir, &["run", "pattern size=8x8 frames=3 ! png path=a-%d.png", "--cpu", "-q"]));
    for policy in ["skip", "retry"] {
        let pictures: Vec<_> =
            (0..3).map(|n| (dir.join(format!("a-{n}.png")), dir.join(format!("b-{n}.png")))).collect();
        let pipeline = format!("image path=a-*.png loop=true on-error={policy} ! png path={policy}-%d.png");
        let mut command = command(&["run", &pipeline, "--cpu", "-q", "--fps", "50", "--seconds", "60"]);
        let child = command.current_dir(&dir).spawn().unwrap();
        let begun = Instant::now();
        while !dir.join(format!("{policy}-0.png")).exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it did not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        for (from, to) in &pictures {
            fs::rename(from, to).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{policy}: {err}");
        assert!(err.contains("`a-*.png`: none of its 3 files gave an image in a whole round"), "{err}");
        for (from, to) in &pictures {
            fs::rename(to, from).unwrap();
        }
    }
    // The same holds if there never was a file.
    for n in 0..3 {
        fs::write(dir.join(format!("bad-{n}.png")), &fs::read(dir.join("a-0.png")).unwrap()[..40]).unwrap();
    }
    let never = ["run", "image path=bad-*.png loop=true on-error=skip ! null", "--cpu", "-q", "--seconds=60"];
    let run = ends_with(1, vramp_in(&dir, &never));
    assert!(run.err.contains("`bad-*.png`: none of its 3 files"), "{}", run.err);
}
