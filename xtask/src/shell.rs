//! Starts other programs in the repository's root, and fails if they fail.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, bail};

/// The repository's root, independent of the current folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

/// A command to run in the repository's root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs this program, with these arguments.
pub(crate) fn cargo<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    command
}

/// Runs a command to its end. Fails if the command fails.
pub(crate) fn run(mut command: Command) -> anyhow::Result<()> {
    let shown = announce(&command);
    let status = command.status().with_context(|| format!("`{shown}` could not be started"))?;
    ended(&shown, status)
}

/// Runs a command to its end, and copies the command's output to standard output and standard error. Then calls `hear`
/// with each line of that output, even if the command fails.
pub(crate) fn overhear(mut command: Command, hear: &mut dyn FnMut(&str)) -> anyhow::Result<()> {
    let shown = announce(&command);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{shown}` could not be started"))?;
    let out = child.stdout.take().context("standard output was piped")?;
    let err = child.stderr.take().context("standard error was piped")?;
    let errors = thread::spawn(move || pass_on(err, io::stderr()));
    let lines = pass_on(out, io::stdout())?;
    let errors = errors.join().expect("passing lines on does not panic")?;
    let status = child.wait()?;
    for line in lines.iter().chain(&errors) {
        hear(line);
    }
    ended(&shown, status)
}

/// Whether a command can be started and succeeds. Its output is hidden.
pub(crate) fn works(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The path of a program, if it is in PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Prints the command on standard error and returns the printed text.
fn announce(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    let shown = std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ");
    eprintln!("xtask: {shown}");
    shown
}

fn ended(shown: &str, status: ExitStatus) -> anyhow::Result<()> {
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

fn pass_on(from: impl Read, mut to: impl Write) -> io::Result<Vec<String>> {
    let mut from = BufReader::new(from);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(lines);
        }
        to.write_all(&line)?;
        to.flush()?;
        lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_unchanged_and_kept() {
        let mut shown = Vec::new();
        let kept = pass_on(&b"one\n  two\r\nthr\xffee"[..], &mut shown).unwrap();
        assert_eq!(shown, b"one\n  two\r\nthr\xffee");
        assert_eq!(kept, ["one", "  two", "thr\u{fffd}ee"]);
    }

    #[test]
    fn a_failing_command_is_an_error_and_is_still_heard() {
        let mut shell = command("sh");
        shell.args(["-c", "echo out; echo err >&2; exit 3"]);
        let mut heard = Vec::new();
        let error = overhear(shell, &mut |line| heard.push(line.to_owned())).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert_eq!(heard, ["out", "err"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_not_found() {
        assert!(find("sh").is_some());
        assert!(find("no-program-has-this-name").is_none());
        assert!(!works(command("no-program-has-this-name")));
    }
}
