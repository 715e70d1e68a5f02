//! The command line as clap parses it, with all help texts.

mod bench;
mod budget;
mod bytes;
mod calibrate;
mod ffmpeg;
mod flags;
mod latency;
mod memory;
mod model;

pub(crate) use bench::BenchArgs;
pub(crate) use budget::{
    Budget, CPU_FRAMES, CPU_HANDLERS, DEVICE_LOSSES, DROPS, FPS, LATENCY_MS, OF_DEVICE, WHOLE_RUN,
};
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use ffmpeg::FfmpegArg;
pub(crate) use flags::{DeviceWord, SharedFlags};
pub(crate) use memory::MemoryBudget;
pub(crate) use model::{ModelCommand, ModelInspectArgs, ModelRunArgs};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  the run failed, or a file or device could not be used
    2  the command line, the pipeline or the model is wrong
    3  the pipeline or model is valid, but cannot be run with these options or on this machine
    4  a budget was exceeded or could not be checked, or a run left the GPU under --require-gpu
    5  a verification found a difference
  130  interrupted; files hold whole frames

Results go to standard output, messages to standard error.";

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
  vramp model run net.onnx --input picture.npy --output results
  vramp fmt 'pattern ! null' > pipeline.toml";

const PIPELINES: &str = "\
Pipelines:
  A pipeline is a chain of handlers joined by `!`, from a source to a sink. A handler is
  written as its kind and its settings: `blur sigma=2`. Many kinds accept one setting
  without its key: `text \"hello\"`. `vramp inspect` lists all kinds, and `vramp inspect
  KIND` lists the settings of a kind.

    pattern size=1280x720 ! blur sigma=2 ! png path=out-%04d.png

  Every handler can have a name, by which other chains refer to its ports: `NAME.` is
  its main port, `NAME.PORT` any other port. Chains are separated by `;` or a line end.

    pattern name=cam ! mix name=both ! null; cam. ! flip axis=h ! both.b

  If its consumer is too slow, a link `!{latest}` keeps only the newest frame, a link
  `!{queue depth=4}` drops the oldest frame, and a link `!{lossless}` waits.
  `#` starts a comment that ends with the line.";

const PLAN_HELP: &str = "\
Reading a plan:
  A row shows a kernel with the handlers that are fused into it, or a handler without a
  kernel. Rows marked cpu are on the left, rows marked gpu on the right. Every arrow from
  one side to the other is a transfer between the two memories, with its bytes and cost.
  After the cost of a row comes its cost on the other side, without transfers: `cpu 3.20 ms`,
  or `-` if a handler of the row has no implementation there or does not fit the device.

Checking a plan:
  `--budget` compares what is known without running: uploads, downloads, transfers,
  transfer_bytes, dispatches, submits (with `--batch 1`), cpu_handlers and cpu_frames. Other
  keys are named in a note; a budget of other keys alone is refused. `--require-gpu` fails
  with exit code 3 and names every handler between sources and sinks that cannot be on the
  GPU.

Examples:
  vramp plan 'pattern ! blur ! null'
  vramp plan 'pattern name=p ! blur ! null' --place p=cpu --profile discrete
  vramp plan pipeline.toml --format mermaid
  vramp plan pipeline.toml --format html > plan.html
  vramp plan pipeline.toml --require-gpu --budget transfers=1,submits=1
  echo 'pattern ! null' | vramp plan - --json";

const RUN_HELP: &str = "\
While it runs:
  A summary of the plan, warnings and progress go to standard error. `-q` prints only
  errors; `-v` also prints the complete plan and every link, and after the run the time of
  every handler. Otherwise the slowest handlers are named. Only a sink with `path=-`, the
  sink `terminal` and `--json` write to standard output. While `terminal` draws, no progress
  is shown. The last line counts the handlers on the GPU, with the device, and on the CPU.
  `vramp top` shows more. Ctrl-C ends a run cleanly: files hold whole frames, and the
  report is printed. A second Ctrl-C ends the program at once.

Files:
  A run that would overwrite a file that it reads, or write one file twice, is refused
  with exit code 2, even if two different paths lead to the same file. If a run fails or is
  interrupted, the sinks y4m and raw do not replace an existing file. They keep the frames
  so far in another file, such as clip.partial.y4m beside clip.y4m. With
  `partial=replace` they replace the existing file.

A device that is lost:
  vramp opens the device again, as at the start. If that fails, or if the device is lost
  repeatedly, the CPU continues from the next frame, and from time to time vramp tries to
  open the device again. With `--on-loss cpu` the run stays on the CPU, and with `--on-loss
  stop` it ends. Frames that were on the device are lost and counted as device_lost;
  `recoveries` in the report lists each loss. If a handler can run only on the device and
  the device cannot be opened again, the run ends. To test all this, `--lose-device-at
  200,400` destroys the device after 200 and after 400 frames.

Which adapter:
  If the plan uses an adapter, vramp takes the best one, hardware before software.
  `--prefer`, `--min-memory` and `--max-load` skip adapters that do not match. If no
  adapter is left, everything runs on the CPU and a warning says what each adapter lacks.
  With `--gpu`, `--device` or `--backend` the run ends with exit code 3 instead.

Budgets:
  With `--budget downloads=1,submits=1,allocs=0`, the run ends with exit code 4 if the
  average per frame, over the second half of the run, exceeds one of the limits. Keys:
  uploads, downloads, transfer_bytes, dispatches, passes, submits, bind_groups, gpu_allocs,
  heap_allocs, foreign_allocs, frame_copies, compiles_after_first_frame, replans,
  max_in_flight, transfers (uploads and downloads), and allocs (gpu_allocs and heap_allocs).
  These keys are over the whole run:
    drops          dropped frames, per frame of the sources
    cpu_handlers   handlers between sources and sinks that ran on the CPU; a count
    cpu_frames     frames that such a handler computed on the CPU, per frame: from 0 to 1
    device_losses  how often the device was lost; a count
    fps            frames per second: at least this many
    latency_ms     latency of 99 % of the frames in milliseconds: at most this much
  Counters of the device (uploads, downloads, transfers, transfer_bytes, submits, dispatches,
  passes, bind_groups, gpu_allocs) are 0 if the device does nothing. A budget that names one
  of them therefore also ends with exit code 4 if no frame was on the device, or if frames
  were computed on the CPU after the device was lost. With `--cpu` it does not.

Staying on the GPU:
  With `--require-gpu`, every handler between sources and sinks is on the GPU for every
  frame, even if the CPU is cheaper. That includes converters that the planner inserts.
  Sources and sinks may be on either side. If a handler cannot be on the GPU, the run does
  not start, and the error names every such handler with the reason (exit code 3). If the
  device is lost during the run, the run continues as `--on-loss` says and then ends with
  exit code 4, even if the device could be opened again, because frames were lost with it.

Timing:
  Kernel times in the report are measured for a sample of submits. If the clock of the
  device can be read, the times are from that clock (timing: timestamps). Otherwise a
  measurement ends when vramp notices that the kernel has ended (timing: fenced). `--trace
  FILE` records every call of every handler, every kernel, and how many frames wait in each
  link. The trace keeps the last 131072 spans of each lane. The file is complete however
  the run ends. With `--fps`, vramp names the handler that makes frames late: the slowest
  handler in the slowest lane on the way to the sink.

A page about the run:
  `--report run.html` writes one HTML file that a browser opens without a network: the graph
  with planned and measured times, a histogram for every handler, frames per second and memory
  over time, the first and the last frames on a timeline, dropped frames by reason, the device
  and all settings. The file is complete however the run ends, and replaces an older file in
  one step. It carries its figures as JSON. Passwords in addresses are left out. Every call is
  timed, as with `--trace`.

Latency:
  With `--latency 20ms`, the plan is chosen so that half of the frames take at most 20 ms from
  the source to the end of the sink's call. vramp predicts the latency of the cheapest plan
  from its costs and from the frames that wait in links and on the device. If that is too
  long, it tries smaller batches, shallower links, fewer submissions in flight, and the other
  memory space. If no plan fits, it takes the fastest one and a warning names the handler that
  takes longest. `latency_need` in the report has asked_ms, predicted_ms and p50_ms; after a
  run that missed the need, a line names the slowest handler. To fail instead, use `--budget
  latency_ms=20`. With `--fps`, frames wait less, because sources send fewer of them.

Memory:
  Before the run, vramp prints the memory that the plan needs. After the run, it prints the
  peak. `--memory 256M` limits the frames in each memory space to 256 MB. `--memory
  cpu=1G,gpu=256M` sets a limit for each space. K, M and G are powers of 1000; Ki, Mi and
  Gi are powers of 1024. If the plan does not fit, vramp takes another plan that fits. If
  no plan fits, frames wait for memory. If waiting cannot help, the run ends with an error
  that says which handler needs how much memory and which handlers hold the rest. Two
  things do not count: staging memory for transfers, and small data such as glyphs.
  Memory that was not returned is listed at the end, with its last user.

Verifying:
  `--verify` takes the first 8 frames of every source, or N frames with `--frames N`, and
  runs every handler alone on the CPU. These results are compared with those of three other
  runs: fused on the CPU, handler by handler on the GPU, and fused on the GPU. With `--cpu`,
  or without an adapter, only the results of fused handlers on the CPU are compared. Sinks
  write nothing. A summary, or with `-v` every comparison, goes to standard error. `--json`
  prints the comparisons as JSON. The first difference is printed with its handler, frame
  and pixel.

Changing settings:
  `--control -` reads lines from standard input and answers each line with one line on
  standard error; `--control PATH` does the same for clients of a Unix socket, which first
  read `vramp control 1`. `blur0.sigma=3 text0.text=\"two words\"` changes both settings
  between two frames; the answer `ok 120 ...` names the first frame that has the new values.
  `get blur0.sigma` and `settings` read values. `error: ...` says what is wrong; the run goes
  on. The end of the input does not end the run. `vramp inspect HANDLER` shows which
  settings are live, rebuild (compiled first) or fixed.

Seeing it:
  `window` shows frames in a window at their times. Space pauses, `.` steps to the next frame,
  `s` saves the frame as a PNG file in the working directory, `f` covers the screen, and `h`
  lists the settings that can change; the arrow keys choose and change them. Closing a window
  ends the run. `--preview` adds a window that shows the newest frame of the first sink and
  never slows the run.

Your own shaders:
  `wgsl FILE` runs a pixel function, `fn pixel(color: vec4f, at: vec2u, frame: Frame,
  settings: Settings) -> vec4f`, or a `@compute` kernel. All parameters but the color are
  optional. Members of `struct Settings` are settings of the handler. With `--watch`, a
  changed file is loaded between two frames. If a kernel does not terminate, the run ends
  after `--time-limit`.

Examples:
  vramp run 'pattern frames=60 ! blur sigma=2 ! png path=out-%04d.png'
  vramp run 'pattern ! wgsl glow.wgsl strength=0.5 ! null' --watch
  vramp run 'y4m path=- ! blur ! y4m path=-' < in.y4m > out.y4m
  vramp run 'pattern size=1920x1080 ! markers ! null' --seconds 5 --json
  vramp run pipeline.toml --gpu --budget downloads=0,allocs=0
  vramp run pipeline.toml --require-gpu --budget fps=60,latency_ms=40
  vramp run pipeline.toml --fps 60 --seconds 5 --trace run.json
  vramp run pipeline.toml --seconds 5 --report run.html
  vramp run pipeline.toml --verify --frames 30
  vramp run 'video path=in.mp4 ! blur ! window'
  vramp run 'camera ! video path=out.mp4' --preview";

const TOP_HELP: &str = "\
The view:
  The head shows frames, drops by reason, latency, device and memory. Three tables follow:
  handlers with their time per frame, links with their waiting and dropped frames, and
  events. Fused handlers share one time. `q` ends the run and `?` explains the keys. The
  view needs a terminal; in a pipe use `vramp run PIPELINE --json`.

Settings:
  `s` shows the settings of all handlers in place of the handlers. Up and Down choose a
  setting, `+` and `-` change its value by a step, and Enter edits the value. A line says
  from which frame on a new value is used, or why it was refused. `live` settings change
  at once, `rebuild` settings after a kernel is compiled, `fixed` settings only at a start.

The run:
  Everything in `vramp help run` applies here too: options, files, Ctrl-C, exit codes, and
  the report after the run. After `q` the exit code is 0. No sink may write to standard output.

Examples:
  vramp top 'pattern size=1920x1080 ! blur sigma=4 !{queue depth=4} invert ! null' --fps 60
  vramp top pipeline.toml --gpu
  ffmpeg -nostdin -v error -i in.mp4 -f yuv4mpegpipe - | vramp top 'y4m path=- ! blur ! y4m path=out.y4m'";

const DEMO_HELP: &str = "\
The demo runs `pattern kind=ball ! markers ! waveform ! fps ! SINK` on the CPU and, if there
is an adapter, on the GPU. The sink is `null` during the measurements. Then one frame is
written as a PNG.

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
    /// Show what vramp does on this machine
    ///
    /// Runs five handlers at 640x480 and 1920x1080, writes one frame, and ends with the plan and a table of results.
    #[command(after_long_help = DEMO_HELP)]
    Demo(DemoArgs),
    /// Run a pipeline
    ///
    /// Plans the pipeline, opens a device only if the plan uses one, and runs until the sources end, `--frames` or
    /// `--seconds` is reached, or Ctrl-C is pressed.
    #[command(
        after_long_help = format!("{PIPELINES}\n\n{RUN_HELP}"),
        after_help = "`vramp help run` explains pipelines, budgets, timing and verifying."
    )]
    Run(RunArgs),
    /// Run a pipeline with a live view
    ///
    /// Like `vramp run`, with a view of the time of every handler, the depth and drops of every link, memory and the
    /// device.
    #[command(
        after_long_help = format!("{PIPELINES}\n\n{TOP_HELP}"),
        after_help = "`vramp help top` explains the view; `vramp help run` explains everything else."
    )]
    Top(RunArgs),
    /// Show where every step of a pipeline would run, and why
    ///
    /// Decides the memory space and format of every link, which handlers are fused into one kernel, and which lane runs
    /// each handler. Estimates the cost of a frame. Opens no device and decodes no frame.
    #[command(
        after_long_help = format!("{PIPELINES}\n\n{PLAN_HELP}"),
        after_help = "`vramp help plan` explains pipelines and how to read a plan."
    )]
    Plan(PlanArgs),
    /// List the handlers, show one handler with its ports and settings, or tell what is in a media file
    Inspect {
        /// The handler to show, or a media file or address such as clip.mp4; defaults to a list of all handlers
        handler: Option<String>,
        /// Print one line of JSON instead
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        ffmpeg: FfmpegArg,
    },
    /// Convert a pipeline from text to TOML, or from TOML to text
    Fmt {
        /// The pipeline: text, a file (*.toml is TOML, any other file is text), or `-` for standard input
        #[arg(value_hint = ValueHint::FilePath)]
        pipeline: OsString,
    },
    /// List the graphics adapters of this machine, and which one a run uses
    ///
    /// Queries every driver and stores the list for later runs and plans. Memory and load are current readings; if a
    /// value cannot be read, the reason is shown instead.
    Devices {
        /// Print one line of JSON instead
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        measure: CalibrateArgs,
    },
    /// Check what works on this machine, and say what to type if something does not
    ///
    /// Checks drivers, variables, permissions and directories. Opens the adapter that a run would use, runs a
    /// small pipeline on that adapter and on the CPU, and compares the frames. Exits with 1 if there is a problem,
    /// otherwise with 0, also after warnings.
    Doctor {
        /// Print one line of JSON instead
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        ffmpeg: FfmpegArg,
    },
    /// Measure vramp on well-known workloads
    ///
    /// Measures single filters and a few whole pipelines, on a frame that is already in memory.
    #[command(after_long_help = bench::BENCH_HELP)]
    Bench(BenchArgs),
    /// Show or run a model from an ONNX file
    #[command(subcommand, after_help = model::MODEL_HELP)]
    Model(ModelCommand),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  vramp completions fish > ~/.config/fish/completions/vramp.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// The pipeline: text, a file (*.toml is TOML, any other file is text), or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) pipeline: OsString,
    /// How to print the plan; defaults to text
    #[arg(long, value_enum)]
    pub(crate) format: Option<Form>,
    /// Print the plan as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) ffmpeg: FfmpegArg,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

#[derive(Clone, clap::Args)]
pub(crate) struct RunArgs {
    /// The pipeline: text, a file (*.toml is TOML, any other file is text), or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) pipeline: OsString,
    /// Maximum number of frames per source
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) frames: Option<u64>,
    /// Maximum duration in seconds; the sources end after that
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Apply what is saved between two frames: the pipeline's own file, and files that handlers are made from (shaders,
    /// luts, overlays)
    #[arg(long)]
    pub(crate) watch: bool,
    /// Change settings while the pipeline runs, by lines such as `blur0.sigma=3` from standard input (`-`) or from a
    /// Unix socket at this path; see below
    #[arg(long, value_name = "-|SOCKET", value_hint = ValueHint::FilePath)]
    pub(crate) control: Option<PathBuf>,
    /// Show the frames of the first sink in a window as well, or in the terminal if there is no display
    #[arg(long)]
    pub(crate) preview: bool,
    /// Milliseconds that one submission may take before the device counts as hung; defaults to 10000
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(crate) time_limit: Option<u64>,
    /// Print the report as one line of JSON on standard output, after everything else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a timeline of every lane and of the device for ui.perfetto.dev
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Write a page about the run: the graph, times, drops, memory, a timeline; one HTML file for a browser
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ffmpeg: FfmpegArg,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// File to write the frame to
    #[arg(short, long, value_name = "FILE", default_value = "vramp-demo.png", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Show a neural network live instead: it finds the person in the picture of a camera, in a window or the terminal
    #[arg(long, conflicts_with = "trace")]
    pub(crate) model: bool,
    /// Duration of each run, in seconds; 1.5 by default. With --model, until the window is closed
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Print the results as one line of JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a timeline of every measured run for ui.perfetto.dev
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people to read
    Text,
    /// Machine-readable
    Json,
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
    /// For a browser: one page with the graph, costs and settings
    Html,
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds: f64 = word.parse().map_err(|_| "expected seconds, such as 5 or 0.5".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|problem| problem.to_string())?;
    if time.is_zero() { Err("expected more than 0 seconds".to_owned()) } else { Ok(time) }
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
