//! `--control`: changes and reads settings of a run by lines of text, from standard input or from a Unix socket.
//!
//! | line | answer |
//! |---|---|
//! | `blur0.sigma=3 text0.text="two words"` | `ok 120 blur0.sigma=3 text0.text="two words"`: all of them, from frame 120 on |
//! | `get blur0.sigma` | `ok 120 blur0.sigma=3` |
//! | `settings` | `ok 120` and every setting that has a value |
//! | anything else | `error:` and the reason; nothing has changed |
//!
//! Every line has exactly one line as its answer, in order. The number is that of the first frame with the new values;
//! for `get` and `settings`, the number of frames that sources have sent so far. `next` stands for the number if no
//! frame has come within a second: the values are in force from the next frame on.
//!
//! The end of the input does not end the run, and no input can end it.

mod lines;
#[cfg(unix)]
mod socket;

use std::fmt::Write as _;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use vramp::runtime::Watch;
use vramp::{Controls, Pipeline};

use crate::args::RunArgs;
use crate::failure::CliError;

use lines::{Line, Lines, quoted, words};

/// How long an answer waits for the first frame that has a change.
const FIRST_FRAME: Duration = Duration::from_secs(1);

/// Where the lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlFrom {
    StandardInput,
    Socket(std::path::PathBuf),
}

impl ControlFrom {
    pub(crate) fn read(args: &RunArgs) -> Option<ControlFrom> {
        args.control.as_ref().map(|word| match word.to_str() {
            Some("-") => ControlFrom::StandardInput,
            _ => ControlFrom::Socket(word.clone()),
        })
    }
}

/// Refuses `--control -` if standard input has another reader. To be called before a source is probed.
pub(crate) fn refuse_reader(args: &RunArgs, reader: Option<&str>) -> Result<(), CliError> {
    let reader = if args.pipeline == "-" { Some("the pipeline") } else { reader };
    match (ControlFrom::read(args), reader) {
        (Some(ControlFrom::StandardInput), Some(reader)) => Err(CliError::Wrong(anyhow!(
            "--control -: {reader} reads standard input; use a socket (--control PATH), or give {reader} a file"
        ))),
        _ => Ok(()),
    }
}

/// A socket that is reserved before the run, and removed after it.
pub(crate) struct Reserved {
    from: ControlFrom,
    #[cfg(unix)]
    socket: Option<socket::Socket>,
}

/// Removes the socket when the run is over.
pub(crate) struct Serving {
    #[cfg(unix)]
    _socket: Option<socket::Socket>,
}

impl Reserved {
    /// Binds the socket, before anything runs. Refuses a socket in use.
    pub(crate) fn make(args: &RunArgs) -> Result<Option<Reserved>, CliError> {
        let Some(from) = ControlFrom::read(args) else { return Ok(None) };
        match &from {
            ControlFrom::StandardInput => Ok(Some(Reserved {
                from,
                #[cfg(unix)]
                socket: None,
            })),
            #[cfg(unix)]
            ControlFrom::Socket(path) => {
                let socket = Some(socket::Socket::bind(path).map_err(CliError::Wrong)?);
                Ok(Some(Reserved { from, socket }))
            }
            #[cfg(not(unix))]
            ControlFrom::Socket(path) => Err(CliError::Wrong(anyhow!(
                "--control {}: sockets need a Unix system; use --control - here",
                path.display()
            ))),
        }
    }

    /// Answers lines until the program ends. `print` writes an answer to a line of standard input.
    pub(crate) fn serve(
        self,
        pipeline: &Pipeline,
        print: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Serving, CliError> {
        let desk = Arc::new(Desk { controls: pipeline.controls(), watch: pipeline.watch(), begun: Instant::now() });
        if self.from == ControlFrom::StandardInput {
            let serve = move || {
                let input = Lines::new(BufReader::new(io::stdin()));
                input.for_each(|line| print(&desk.answer(line)));
            };
            let thread = std::thread::Builder::new().name("control".to_owned()).spawn(serve);
            thread.map_err(|error| CliError::Failed(anyhow::Error::new(error).context("--control")))?;
            return Ok(Serving {
                #[cfg(unix)]
                _socket: None,
            });
        }
        #[cfg(unix)]
        if let Some(socket) = &self.socket {
            socket.serve(&desk).map_err(|error| CliError::Failed(anyhow::Error::new(error).context("--control")))?;
        }
        Ok(Serving {
            #[cfg(unix)]
            _socket: self.socket,
        })
    }
}

/// Answers lines about one run.
struct Desk {
    controls: Controls,
    watch: Watch,
    begun: Instant,
}

impl Desk {
    /// The answer to a line, without a line end.
    fn answer(&self, line: Line) -> String {
        let answered = match line {
            Line::TooLong { most } => Err(format!("the line has more than {most} bytes")),
            Line::NotText => Err("the line is not UTF-8".to_owned()),
            Line::Text(line) => self.answer_to(&line),
        };
        // A message of several lines is one line here.
        answered.unwrap_or_else(|problem| {
            format!("error: {}", problem.split('\n').map(str::trim).collect::<Vec<_>>().join(" "))
        })
    }

    fn answer_to(&self, line: &str) -> Result<String, String> {
        let words = words(line)?;
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => {
                Err("the line is empty; expected HANDLER.SETTING=VALUE, `get HANDLER.SETTING` or `settings`".to_owned())
            }
            ["settings"] => Ok(self.all()),
            ["get", name] => {
                let value = self.controls.get(name).map_err(|error| error.to_string())?;
                Ok(format!("ok {} {name}={}", self.sent(), quoted(&value)))
            }
            ["get", ..] => Err("expected `get HANDLER.SETTING`, one at a time".to_owned()),
            ref settings => self.set(settings),
        }
    }

    fn set(&self, settings: &[&str]) -> Result<String, String> {
        let pair = |word: &&str| {
            let pair = word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            pair.ok_or_else(|| format!("`{word}`: expected HANDLER.SETTING=VALUE, `get HANDLER.SETTING` or `settings`"))
        };
        let pairs: Vec<(String, String)> = settings.iter().map(pair).collect::<Result<_, _>>()?;
        let change = self.controls.set_all(pairs.clone()).map_err(|error| error.to_string())?;
        let mut answer = match change.frame(FIRST_FRAME) {
            Some(frame) => format!("ok {frame}"),
            None => "ok next".to_owned(),
        };
        if let Some(problem) = change.problem() {
            return Err(problem);
        }
        for (name, value) in pairs {
            let _ = write!(answer, " {name}={}", quoted(&value));
        }
        Ok(answer)
    }

    fn all(&self) -> String {
        let mut answer = format!("ok {}", self.sent());
        for state in self.controls.settings() {
            if let Some(value) = &state.value {
                let _ = write!(answer, " {}.{}={}", state.handler, state.key, quoted(value));
            }
        }
        answer
    }

    /// Frames that sources have sent so far.
    fn sent(&self) -> u64 {
        self.watch.progress(self.begun.elapsed()).frames_in
    }
}
