//! The command line as clap reads it, and its help.
//!
//! Owns every command's and option's name, meaning and help text.
//! Does not act on any of them.

mod bench;
mod budget;
mod bytes;
mod calibrate;
mod flags;
mod memory;

pub(crate) use bench::BenchArgs;
pub(crate) use budget::{Budget, DROPS};
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use flags::{DeviceWord, SharedFlags};
pub(crate) use memory::MemoryBudget;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  it failed while it ran, or something outside did, such as a file that cannot be read
    2  the command line or the pipeline is wrong
    3  the pipeline is right, but cannot be planned as asked, or not on this machine
    4  a budget was broken
    5  a verification found a difference
  130  interrupted; files are finished all the same

Results go to standard output, words for people to standard error.";

const EXAMPLES: &str = "\
Examples:
  vramp demo
  vramp run 'pattern frames=60 ! blur sigma=2 ! png path=out-%04d.png'
  vramp run 'pattern size=160x90 ! terminal' --seconds 5
  vramp top 'pattern size=1920x1080 ! blur sigma=4 ! null'
  vramp plan 'pattern size=1920x1080 ! blur sigma=2 ! png path=out-%04d.png'
  vramp plan pipeline.toml --format dot | dot -Tsvg -o plan.svg
  vramp inspect blur
  vramp doctor
  vramp fmt 'pattern ! null' > pipeline.toml";

const PIPELINES: &str = "\
Pipelines:
  A chain of handlers joined by `!`, from a source to a sink. A handler is its kind
  and its settings: `blur sigma=2`. Many kinds take one setting without its key:
  `text \"hello\"`. `vramp inspect` lists the kinds, `vramp inspect KIND` the settings.

    pattern size=1280x720 ! blur sigma=2 ! png path=out-%04d.png

  Every handler can have a name, and other chains can refer to it: `NAME.` for its
  main port, `NAME.PORT` for another. Chains are separated by `;` or a line end.

    pattern name=cam ! mix name=both ! null; cam. ! flip axis=h ! both.b

  `!{latest}`, `!{queue depth=4}` and `!{lossless}` say what a link does when its
  consumer is slower: keep only the newest frame, drop the oldest, or wait.
  `#` starts a comment that goes on to the end of its line.";

const PLAN_HELP: &str = "\
Reading a plan:
  One row is one kernel, with the handlers fused into it, or one handler without a
  kernel. Rows marked cpu stand left, rows marked gpu right, and every arrow between
  them is a transfer between the two memories, with its bytes and its cost.

Examples:
  vramp plan 'pattern ! blur ! null'
  vramp plan 'pattern name=p ! blur ! null' --place p=cpu --profile discrete
  vramp plan pipeline.toml --format mermaid
  echo 'pattern ! null' | vramp plan - --json";

const RUN_HELP: &str = "\
While it runs:
  The chosen plan, warnings and progress are words on standard error; `-q` keeps only
  errors, `-v` adds the whole plan and every link. Standard output is left to a sink with `path=-`, to
  `terminal`, which draws there and leaves no place for progress, and to `--json`.
  `vramp top` shows more. Ctrl-C ends a run cleanly: files hold whole frames and the report
  is printed. A second Ctrl-C ends it at once.

Files:
  A run that would write over a file that it reads, or write one file twice, is refused
  with exit code 2, however the file is spelled or linked. If a run fails or is
  interrupted, an older file of the sinks y4m and raw stays, and the frames so far are kept
  beside it, such as clip.partial.y4m for clip.y4m; `partial=replace` replaces it.

A device that is lost:
  It is opened again, as it was opened first; where that fails, or it is lost again and
  again, the cpu goes on from the next frame, and the device is tried anew from time to
  time. `--on-loss cpu` stays on the cpu, `--on-loss stop` ends the run. Frames that were
  on the device are lost, and counted as device_lost; `recoveries` of the report tells
  each loss. A handler that can only run there ends the run. `--lose-device-at 200,400`
  destroys the device to see all this.

Which adapter:
  The best one, hardware before software, if the plan uses any. `--prefer`, `--min-memory`
  and `--max-load` pass over adapters that are not so; where none is left, everything runs
  on the cpu and a warning says what each one lacks. With `--gpu`, or where `--device` or
  `--backend` names one, that ends the run with exit code 3 instead.

Budgets:
  `--budget downloads=1,submits=1,allocs=0` ends with exit code 4 if a frame of the
  run's second half needed more on average. Keys: uploads, downloads, transfer_bytes,
  dispatches, passes, submits, bind_groups, gpu_allocs, heap_allocs, foreign_allocs,
  frame_copies, compiles_after_first_frame, replans, max_in_flight, transfers (uploads
  and downloads), allocs (gpu_allocs and heap_allocs), and drops, over the whole run.

Timing:
  The report's times of kernels are the device's own where it has a clock that can be
  read (timing: timestamps), of a sample of submits; otherwise the time until its
  end was noticed (timing: fenced). `--trace FILE` draws every call of every handler, every
  kernel and how full links were; the last 131072 spans of each lane are kept. The file
  is whole however the run ends. With `--fps`, the handler that keeps frames from being in
  time is named: the slowest in the slowest lane on the way to the sink.

Memory:
  What the plan needs is said before the run, and what was needed at most after it.
  `--memory 256M` lets frames take that much on each side, `--memory cpu=1G,gpu=256M`
  on either; K, M and G count by 1000, Ki, Mi and Gi by 1024. Where the plan does not fit, another one is taken
  that does, and where none does, frames wait for memory. A run for which waiting cannot
  help ends with an error that says who needs how much and who holds the rest. Staging
  memory for transfers and small data, such as letters, come on top. Memory that nobody
  gave back is named at the end, with who had it last.

Verifying:
  `--verify` does not run the pipeline as it is: it takes the first 8 frames of every
  source, or `--frames N`, and compares what becomes of them with every handler by
  itself on the cpu: fused, on the gpu handler by handler, and fused on the gpu. No sink
  writes anything. With `--cpu`, or without an adapter, only fused and unfused are
  compared. What was compared stands on standard error, all of it with `-v`; `--json`
  prints it. The first difference is told with its handler, frame and pixel.

Your own shaders:
  `wgsl FILE` runs a pixel function, `fn pixel(color: vec4f, at: vec2u, frame: Frame,
  settings: Settings) -> vec4f`, of which all but the colour may be left out, or a
  `@compute` kernel. Members of `struct Settings` are settings of the handler. With
  `--watch` a file that is saved takes effect between two frames. A kernel that does
  not end ends the run after `--time-limit`.

Examples:
  vramp run 'pattern frames=60 ! blur sigma=2 ! png path=out-%04d.png'
  vramp run 'pattern ! wgsl glow.wgsl strength=0.5 ! null' --watch
  vramp run 'y4m path=- ! blur ! y4m path=-' < in.y4m > out.y4m
  vramp run 'pattern size=1920x1080 ! markers ! null' --seconds 5 --json
  vramp run pipeline.toml --gpu --budget downloads=0,allocs=0
  vramp run pipeline.toml --fps 60 --seconds 5 --trace run.json
  vramp run pipeline.toml --verify --frames 30";

const TOP_HELP: &str = "\
The view:
  Frames, drops by reason, latency, the device and memory stand on top; below are handlers
  with the time of a frame, links with what waits in them and what they dropped, and what
  happened. Handlers that became one kernel have one time. `q` ends the run and `?`
  explains the keys. It needs a terminal; in a pipe use `vramp run PIPELINE --json`.

The run:
  Everything that `vramp help run` says holds here too: options, files, Ctrl-C and exit
  codes, and the same lines at the end. `q` ends with exit code 0. No sink may write to
  standard output.

Examples:
  vramp top 'pattern size=1920x1080 ! blur sigma=4 !{queue depth=4} invert ! null' --fps 60
  vramp top pipeline.toml --gpu
  ffmpeg -nostdin -v error -i in.mp4 -f yuv4mpegpipe - | vramp top 'y4m path=- ! blur ! y4m path=out.y4m'";

const DEMO_HELP: &str = "\
The demo is `pattern kind=ball ! markers ! waveform ! fps ! SINK`, the same five handlers
on the cpu and, where there is an adapter, on the gpu. Its sink is `null` while it is
measured; one picture is then written as a PNG.

Examples:
  vramp demo
  vramp demo --cpu --seconds 3
  vramp demo --gpu --output ball.png";

/// Real-time video and ML pipelines that stay on the GPU
#[derive(Parser)]
#[command(name = "vramp", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show what vramp does, on whatever this machine has
    ///
    /// Runs five handlers at 640x480 and 1920x1080, writes one picture, and ends with the plan and a table of results.
    #[command(after_long_help = DEMO_HELP)]
    Demo(DemoArgs),
    /// Run a pipeline
    ///
    /// Plans it, opens a device only if the plan uses one, and runs to the end of the source, for `--frames` or
    /// `--seconds`, or until Ctrl-C.
    #[command(
        after_long_help = format!("{PIPELINES}\n\n{RUN_HELP}"),
        after_help = "`vramp help run` explains pipelines, budgets, timing and verifying."
    )]
    Run(RunArgs),
    /// Run a pipeline and show what it does meanwhile
    ///
    /// As `vramp run`, with a live view: time of every handler, depth and drops of every link, pools and the device.
    #[command(
        after_long_help = format!("{PIPELINES}\n\n{TOP_HELP}"),
        after_help = "`vramp help top` explains the view, `vramp help run` everything else."
    )]
    Top(RunArgs),
    /// Show where every step of a pipeline would run, and why
    ///
    /// Decides the memory space and format of every link, which handlers become one kernel, which lane runs them and
    /// what a frame costs, without opening a device or decoding a frame.
    #[command(
        after_long_help = format!("{PIPELINES}\n\n{PLAN_HELP}"),
        after_help = "`vramp help plan` explains pipelines and how to read a plan."
    )]
    Plan(PlanArgs),
    /// List the handlers, or show one with its ports and settings
    Inspect {
        /// The handler to show; without it, all are listed
        handler: Option<String>,
        /// Print one line of JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Turn a pipeline from text into TOML, or from TOML into text
    Fmt {
        /// The pipeline: text, a file (*.toml is TOML, any other is text), or `-` for standard input
        #[arg(value_hint = ValueHint::FilePath)]
        pipeline: OsString,
    },
    /// List the graphics adapters of this machine, and say which one a run takes
    ///
    /// Asks every driver anew and remembers the answer, with which runs and plans begin. Memory and load are those of
    /// this moment; where nobody tells them, the reason stands in their place.
    Devices {
        /// Print one line of JSON instead
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        measure: CalibrateArgs,
    },
    /// Say what works on this machine, and what to type where something does not
    ///
    /// Looks at drivers, variables, permissions and folders, opens the adapter that a run would take, and compares a
    /// few frames of it with the cpu's. Ends with 0 where there is no problem (a warning is none), and with 1 where
    /// there is one.
    Doctor {
        /// Print one line of JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Measure what vramp takes for well-known pieces of work
    ///
    /// Single filters and a few whole pipelines, on a picture that is in memory already.
    #[command(after_long_help = bench::BENCH_HELP)]
    Bench(BenchArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  vramp completions fish > ~/.config/fish/completions/vramp.fish")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// The pipeline: text, a file (*.toml is TOML, any other is text), or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) pipeline: OsString,
    /// How to print the plan; text if not given
    #[arg(long, value_enum)]
    pub(crate) format: Option<Form>,
    /// Print it as JSON on one line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// The pipeline: text, a file (*.toml is TOML, any other is text), or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) pipeline: OsString,
    /// End every source after this many frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) frames: Option<u64>,
    /// End every source after this time
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Follow the files of shaders: what is saved is compiled meanwhile and takes effect between two frames
    #[arg(long)]
    pub(crate) watch: bool,
    /// Milliseconds that the device may take for one submission before it counts as hung; 10000 if not given
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(crate) time_limit: Option<u64>,
    /// Print what the run did as one line of JSON on standard output, after everything else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a timeline of every lane and of the device, which ui.perfetto.dev opens
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Where the picture goes
    #[arg(short, long, value_name = "FILE", default_value = "vramp-demo.png", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// How long each of the runs takes
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "1.5")]
    pub(crate) seconds: Duration,
    /// Print the results as one line of JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a timeline of every measured run, which ui.perfetto.dev opens
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

/// The printed forms of a plan.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For reading
    Text,
    /// For programs
    Json,
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds: f64 = word.parse().map_err(|_| "expected seconds, such as 5 or 0.5".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|problem| problem.to_string())?;
    if time.is_zero() { Err("expected more than no time at all".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_finds_nothing_wrong_with_the_definitions() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for word in ["", "0", "-1", "nan", "inf", "1e300", "5s"] {
            assert!(seconds(word).is_err(), "{word}");
        }
    }
}
