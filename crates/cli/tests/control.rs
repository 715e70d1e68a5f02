//! `--control` in real processes: every line gets one answer, and nothing that a client does ends the run.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use crate::program::{self, command, vramp};

const PIPELINE: &str = "pattern size=32x24 ! blur sigma=2 ! brightness 0.1 ! text \"hi\" name=t ! crop 16x16 ! null";

/// A run that answers on standard error.
struct ByInput {
    child: Child,
    input: Option<ChildStdin>,
    answers: BufReader<std::process::ChildStderr>,
}

impl ByInput {
    fn start(args: &[&str]) -> ByInput {
        let mut command = command(&[&["run"], args, &["--control", "-", "-q", "--cpu", "--json"]].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (input, answers) = (child.stdin.take(), BufReader::new(child.stderr.take().unwrap()));
        ByInput { child, input, answers }
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// Interrupts the run, which must still be there.
    fn end(&mut self) -> i32 {
        self.input = None;
        assert!(self.child.try_wait().unwrap().is_none(), "the run goes on after the end of its input");
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

/// A test that fails leaves no run behind.
impl Drop for ByInput {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The frame number of an answer.
#[track_caller]
fn frame(answer: &str) -> u64 {
    let number = answer.strip_prefix("ok ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn lines_change_settings_and_each_has_one_answer() {
    let mut run = ByInput::start(&[PIPELINE]);
    let first = run.ask("blur0.sigma=3");
    assert!(first.ends_with(" blur0.sigma=3"), "{first}");
    let second = run.ask("brightness0.amount=0.5   t.text=\"two words\"");
    assert!(second.ends_with(" brightness0.amount=0.5 t.text=\"two words\""), "{second}");
    assert!(frame(&second) >= frame(&first));
    assert!(run.ask("get blur0.sigma").ends_with(" blur0.sigma=3"));
    assert!(run.ask("get t.text").ends_with(" t.text=\"two words\""));
    let all = run.ask("settings");
    assert!(all.contains(" blur0.sigma=3 ") && all.contains(" pattern0.size=32x24"), "{all}");
    assert_eq!(run.end(), 130);
}

#[test]
fn what_is_wrong_is_answered_in_words_and_the_run_goes_on() {
    let mut run = ByInput::start(&[PIPELINE]);
    let huge = format!("t.text={}", "x".repeat(100_000));
    for (line, expected) in [
        ("", "error: the line is empty; expected HANDLER.SETTING=VALUE"),
        ("nonsense", "error: `nonsense`: expected HANDLER.SETTING=VALUE"),
        ("blur.sigma=3", "error: there is no handler `blur`; did you mean `blur0`?"),
        ("blur0.sigmo=3", "error: blur0 has no setting `sigmo`; did you mean `sigma`?"),
        ("blur0.sigma=many", "error: blur0: `many` is not a valid sigma; expected a number from 0.01 to 100"),
        ("pattern0.size=64x64", "error: pattern0.size is read when the pipeline starts"),
        ("crop0.x=30", "error: crop0: "),
        ("blur0.sigma=5 brightness0.amount=x", "error: brightness0: `x` is not a valid amount"),
        ("get", "error: expected `get HANDLER.SETTING`"),
        ("get blur0.nothing", "error: blur0 has no setting `nothing`"),
        ("t.text=\"open", "error: a quote is not closed"),
        (huge.as_str(), "error: the line has more than 65536 bytes"),
    ] {
        let answer = run.ask(line);
        assert!(answer.starts_with(expected), "{line:.40}: {answer}");
    }
    run.input.as_mut().unwrap().write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(run.ask("get blur0.sigma"), "error: the line is not UTF-8", "answers come in order");
    let mut answer = String::new();
    run.answers.read_line(&mut answer).unwrap();
    assert!(answer.trim_end().ends_with(" blur0.sigma=2"), "a refused line changes nothing: {answer}");
    assert_eq!(run.end(), 130);
}

#[test]
fn the_end_of_the_input_does_not_end_the_run() {
    let args = ["run", "pattern size=16x16 frames=50 ! null", "--control", "-", "--cpu", "-q", "--json"];
    let run = program::vramp_fed(&args, b"");
    assert_eq!((run.code, program::json(&run)["frames_out"].as_u64()), (0, Some(50)), "{}", run.err);
}

#[test]
fn standard_input_has_one_reader() {
    let refused = vramp(&["run", "y4m path=- ! null", "--control", "-"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let refused = program::vramp_fed(&["run", "-", "--control", "-"], b"pattern frames=1 ! null");
    assert!(refused.code == 2 && refused.err.contains("the pipeline reads standard input"), "{}", refused.err);
    let refused = vramp(&["run", "pattern ! null", "--control", "-", "--verify"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
}

/// A folder for sockets, whose paths must be short.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("vramp-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A run that is killed with its test.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listening(path: &Path) -> Listening {
    let args = ["run", PIPELINE, "--control", path.to_str().unwrap(), "-q", "--cpu"];
    let child = Listening(command(&args).spawn().unwrap());
    let begun = Instant::now();
    while UnixStream::connect(path).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the socket does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

fn interrupt(mut child: Listening) -> i32 {
    let pid = rustix::process::Pid::from_child(&child.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.0.wait().unwrap().code().unwrap()
}

struct Client {
    lines: BufReader<UnixStream>,
}

impl Client {
    fn connect(path: &Path) -> Client {
        let mut client = Client { lines: BufReader::new(UnixStream::connect(path).unwrap()) };
        assert_eq!(client.line(), "vramp control 1");
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
        self.line()
    }
}

#[test]
fn a_socket_serves_several_clients_and_survives_those_that_disappear() {
    let folder = folder("clients");
    let path = folder.join("s");
    let child = listening(&path);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (mut one, mut two) = (Client::connect(&path), Client::connect(&path));
    frame(&one.ask("blur0.sigma=4"));
    assert!(two.ask("get blur0.sigma").ends_with(" blur0.sigma=4"));
    let mut gone = Client::connect(&path);
    gone.lines.get_mut().write_all(b"blur0.sig").unwrap();
    drop(gone);
    let mut impatient = Client::connect(&path);
    impatient.lines.get_mut().write_all(b"settings\n".repeat(1000).as_slice()).unwrap();
    drop(impatient);
    frame(&two.ask("blur0.sigma=1.5"));
    assert!(one.ask("get blur0.sigma").ends_with(" blur0.sigma=1.5"));
    assert_eq!(interrupt(child), 130);
    assert!(!path.exists(), "the socket is removed");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_refused() {
    let folder = folder("stale");
    let path = folder.join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let child = listening(&path);
    let refused = vramp(&["run", "pattern frames=1 ! null", "--control", path.to_str().unwrap(), "--cpu"]);
    assert!(refused.code == 2 && refused.err.contains("another program listens there"), "{}", refused.err);
    assert!(path.exists());
    assert_eq!(interrupt(child), 130);
    std::fs::write(&path, "notes").unwrap();
    let refused = vramp(&["run", "pattern frames=1 ! null", "--control", path.to_str().unwrap(), "--cpu"]);
    assert!(refused.code == 2 && refused.err.contains("not a socket"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
    let long = folder.join("x".repeat(150));
    let refused = vramp(&["run", "pattern frames=1 ! null", "--control", long.to_str().unwrap(), "--cpu"]);
    assert!(refused.code == 2 && refused.err.contains("shorter path"), "{}", refused.err);
    std::fs::remove_dir_all(folder).unwrap();
}
