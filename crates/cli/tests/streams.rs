//! Standard streams whose other end is closed, full or slow.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fs::OpenOptions;
#[cfg(unix)]
use std::io::Read as _;
use std::process::Stdio;
#[cfg(unix)]
use std::process::{Child, Command};
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::program::{self, cache, dir, file};
use crate::program::{command, ends_with, finish};

const COMMANDS: [&[&str]; 6] = [
    &["plan", "pattern ! blur ! null"],
    &["inspect"],
    &["fmt", "pattern ! null"],
    &["completions", "bash"],
    &["devices"],
    &["run", "pattern size=16x16 frames=2 ! null", "--cpu", "--json"],
];

#[test]
fn a_reader_that_has_gone_ends_the_program_quietly() {
    for args in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(args);
        command.stdout(writer);
        let run = ends_with(0, finish(command));
        assert!(!run.err.contains("panick") && !run.err.contains("error"), "{}", run.err);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    for args in COMMANDS {
        let mut command = command(args);
        command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
        let run = ends_with(1, finish(command));
        assert!(run.err.contains("error: standard output: "), "{}", run.err);
    }
}

#[test]
fn a_closed_standard_error_does_not_matter() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut wrong = command(&["plan", "pattern ! blru"]);
    wrong.stderr(writer.try_clone().unwrap());
    ends_with(2, finish(wrong));
    let mut right = command(&["plan", "pattern ! null", "--json", "-v"]);
    right.stderr(Stdio::from(writer));
    ends_with(0, finish(right));
}

/// The program, started by a shell after these commands.
#[cfg(unix)]
fn after(first: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{first}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_vramp")]).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("XDG_CACHE_HOME", cache());
    command
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Sixty frames of 256 bytes over more than a second; the signal is sent after the first.
#[cfg(unix)]
fn hung_up(first: &str) -> (Option<i32>, usize) {
    let args = ["run", "pattern size=8x8 frames=60 ! raw -", "--cpu", "--fps", "50", "-q"];
    let mut child = after(first, &args).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut bytes = vec![0; 256];
    out.read_exact(&mut bytes).unwrap();
    signal(&child, "-HUP");
    out.read_to_end(&mut bytes).unwrap();
    (child.wait().unwrap().code(), bytes.len())
}

#[test]
#[cfg(target_os = "linux")]
fn an_ignored_hang_up_stays_ignored_and_any_other_ends_the_run_in_order() {
    assert_eq!(hung_up("trap '' HUP"), (Some(0), 60 * 256));
    let (code, bytes) = hung_up(":");
    assert_eq!(code, Some(130));
    assert!(bytes < 60 * 256 && bytes.is_multiple_of(256), "{bytes}");
}

#[test]
#[cfg(unix)]
fn a_file_that_may_not_become_larger_is_an_error_like_a_full_disk() {
    let dir = dir("streams_file_size");
    let path = |name: &str| dir.join(name).display().to_string();
    let old = file(&dir, "old.png", "old");
    // Shells count blocks of 512 or 1024 bytes: a frame of 40,000 bytes fits, three do not.
    let text = format!("pattern size=100x100 frames=9 ! raw path=\"{}\"", path("out.raw"));
    let run = ends_with(1, finish(after("ulimit -f 90", &["run", &text, "--cpu", "-q"])));
    assert!(run.err.contains("error: raw0, frame ") && run.err.contains("(`ulimit -f`)"), "{}", run.err);
    let whole = std::fs::metadata(path("out.raw")).unwrap().len();
    assert!(whole > 0 && whole.is_multiple_of(40_000), "{whole}");
    let text = format!("pattern kind=noise size=200x200 frames=1 ! png path=\"{old}\"");
    let run = ends_with(1, finish(after("ulimit -f 20", &["run", &text, "--cpu", "-q"])));
    assert!(run.err.contains("error: png0, frame 0: ") && run.err.contains("(`ulimit -f`)"), "{}", run.err);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
    // The parent process may already ignore the signal.
    ends_with(1, finish(after("trap '' XFSZ; ulimit -f 20", &["run", &text, "--cpu", "-q"])));
    let names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{names:?}");
}

#[test]
#[cfg(unix)]
fn streams_that_do_not_block_are_waited_for() {
    let frames: &[&str] = &["run", "pattern size=100x100 frames=20 ! raw -", "--cpu", "-q"];
    for (args, least) in [(frames, 800_000), (&["inspect", "--json"], 20_000), (&["completions", "bash"], 10_000)] {
        let expected = command(args).output().unwrap().stdout;
        assert!(expected.len() >= least, "{args:?}: {} bytes", expected.len());
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let mut command = command(args);
        command.stdout(writer);
        let child = command.spawn().unwrap();
        drop(command);
        // Read slowly: the pipe is full nearly all the time.
        let mut got = Vec::new();
        let mut piece = vec![0; 50_000];
        loop {
            std::thread::sleep(Duration::from_millis(5));
            match reader.read(&mut piece).unwrap() {
                0 => break,
                read => got.extend_from_slice(&piece[..read]),
            }
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(got == expected, "{args:?}: {} bytes instead of {}", got.len(), expected.len());
    }
}

#[test]
#[cfg(unix)]
fn words_reach_a_standard_error_that_does_not_block() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut command = command(&["run", "pattern size=8x8 frames=2000 ! probe ! null", "--cpu", "-q"]);
    command.stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    // The messages are twice as long as a pipe: they fill it and must wait.
    while rustix::io::ioctl_fionread(&reader).unwrap() < 60_000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before the pipe was full");
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut words = String::new();
    reader.read_to_string(&mut words).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(words.lines().filter(|line| line.starts_with("probe0: frame ")).count(), 2000);
}

/// Waits for a program that must end without help.
#[cfg(unix)]
fn soon(mut command: Command) -> program::Run {
    let mut child = command.spawn().unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{command:?} did not end by itself");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    program::Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

#[cfg(unix)]
fn pipe(path: &std::path::Path) {
    let mode = rustix::fs::Mode::RUSR.union(rustix::fs::Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
#[cfg(unix)]
fn files_that_are_pipes_or_devices_do_not_hang_a_plan_or_a_run() {
    let dir = dir("streams_special_files");
    let fifo = dir.join("fifo");
    pipe(&fifo);
    let handlers = [
        "pattern frames=1 ! wgsl path=FILE ! null",
        "pattern frames=1 ! lut path=FILE ! null",
        "pattern frames=1 ! overlay path=FILE ! null",
        "pattern frames=1 ! text hi font=FILE ! null",
        "image path=FILE ! null",
    ];
    for special in [fifo.to_str().unwrap(), "/dev/zero"] {
        for handler in handlers {
            let text = handler.replace("FILE", special);
            let planned = soon(command(&["plan", &text]));
            let run = soon(command(&["run", &text, "-q"]));
            assert!(planned.code <= 1, "{text}: {}", planned.err);
            assert_eq!(run.code, 1, "{text}: {}", run.err);
            for err in [run.err, planned.err].iter().filter(|err| err.contains("error")) {
                assert!(err.contains(special), "{err}");
                assert!(err.contains("not a file") || err.contains("expected a file"), "{err}");
            }
        }
    }
    for special in [fifo.to_str().unwrap(), "/dev/zero"] {
        let run = ends_with(2, soon(command(&["plan", "pattern ! null", "--profile", special])));
        assert!(run.err.contains(special) && run.err.contains("give a file"), "{}", run.err);
    }
    ends_with(2, soon(command(&["plan", "/dev/zero"])));
}

#[test]
#[cfg(unix)]
fn a_cache_that_is_a_pipe_or_a_device_is_not_read() {
    for (name, make) in [
        ("pipe", pipe as fn(&std::path::Path)),
        ("zero", |path: &std::path::Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap()),
    ] {
        let cache = dir(&format!("streams_cache_{name}"));
        std::fs::create_dir(cache.join("vramp")).unwrap();
        make(&cache.join("vramp/adapters.json"));
        for args in [&["plan", "pattern ! blur ! null"][..], &["devices"]] {
            let mut command = command(args);
            command.env("XDG_CACHE_HOME", &cache);
            ends_with(0, soon(command));
        }
    }
}

#[test]
#[cfg(unix)]
fn a_pipeline_can_come_through_a_pipe() {
    let dir = dir("streams_pipeline_pipe");
    let fifo = dir.join("pipeline");
    pipe(&fifo);
    let mut command = command(&["run", fifo.to_str().unwrap(), "--cpu", "-q"]);
    command.stdout(Stdio::null());
    let writing = std::thread::spawn(move || std::fs::write(fifo, "pattern size=8x8 frames=2 ! null\n").unwrap());
    ends_with(0, soon(command));
    writing.join().unwrap();
}
