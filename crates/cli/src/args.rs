//! The command line as clap reads it, and its help.
//!
//! Owns every option's name, meaning and help text.
//! Does not act on any of them.

use std::ffi::OsString;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use vramp::plan::{Rate, Space, is_name};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  something outside failed, such as a file that cannot be read
  2  the command line or the pipeline is wrong
  3  the pipeline is right, but cannot be planned as asked

Results go to standard output, words for people to standard error.";

const EXAMPLES: &str = "\
Examples:
  vramp plan 'pattern size=1920x1080 ! blur sigma=2 ! png path=out-%04d.png'
  vramp plan pipeline.toml --format dot | dot -Tsvg -o plan.svg
  vramp inspect blur
  vramp fmt 'pattern ! null' > pipeline.toml";

const PLAN_HELP: &str = "\
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
  `#` starts a comment that goes on to the end of its line.

Reading a plan:
  One row is one kernel, with the handlers fused into it, or one handler without a
  kernel. Rows marked cpu stand left, rows marked gpu right, and every arrow between
  them is a ramp: a transfer between the two memories, with its bytes and its cost.

Examples:
  vramp plan 'pattern ! blur ! null'
  vramp plan 'pattern name=p ! blur ! null' --place p=cpu --profile shipped:discrete
  vramp plan pipeline.toml --format mermaid
  echo 'pattern ! null' | vramp plan - --json";

/// Real-time video and ML pipelines that stay on the GPU
#[derive(Parser)]
#[command(name = "vramp", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show where every step of a pipeline would run, and why
    ///
    /// Decides the memory space and format of every link, which handlers become one kernel, which lane runs them and
    /// what a frame costs, without opening a device or decoding a frame.
    #[command(after_long_help = PLAN_HELP, after_help = "`vramp help plan` explains pipelines and how to read a plan.")]
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
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  vramp completions fish > ~/.config/fish/completions/vramp.fish")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
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
    /// The machine to plan for: a TOML file of figures, or shipped:discrete, shipped:integrated, shipped:phone,
    /// shipped:software, shipped:cpu
    #[arg(long, value_name = "FILE|shipped:NAME", value_hint = ValueHint::FilePath)]
    pub(crate) profile: Option<OsString>,
    /// Everything on the cpu
    #[arg(long, conflicts_with = "gpu")]
    pub(crate) cpu: bool,
    /// Everything on the gpu that can be there
    #[arg(long)]
    pub(crate) gpu: bool,
    /// Put one handler, by its name, on the cpu or the gpu; can be given several times
    #[arg(long, value_name = "NAME=cpu|gpu", value_parser = placement)]
    pub(crate) place: Vec<(String, Space)>,
    /// No automatic transfers: where one would be needed, fail and say between what
    #[arg(long)]
    pub(crate) strict: bool,
    /// One kernel for each handler
    #[arg(long)]
    pub(crate) no_fusion: bool,
    /// Threads that share the work on the cpu, if fewer than the profile has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Frames that may be on the device at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) in_flight: Option<u32>,
    /// Frames that go to the device together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) batch: Option<u32>,
    /// Frames a second that the pipeline should keep up with, such as 30, 29.97 or 30000/1001
    #[arg(long, value_name = "F")]
    pub(crate) fps: Option<Rate>,
    /// No warnings on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also say for every link what was negotiated, on standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
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

fn placement(word: &str) -> Result<(String, Space), String> {
    let (name, space) = word.split_once('=').ok_or("expected NAME=cpu or NAME=gpu")?;
    if !is_name(name) {
        return Err(format!("`{name}` cannot be the name of a handler"));
    }
    Ok((name.to_owned(), space.parse::<Space>().map_err(|e| e.to_string())?))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_finds_nothing_wrong_with_the_definitions() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_placement_names_a_handler_and_a_space() {
        assert_eq!(placement("blur0=gpu"), Ok(("blur0".to_owned(), Space::Gpu)));
        for word in ["", "blur0", "=cpu", "blur0=", "blur0=disk", "a b=cpu", "x=cpu=gpu"] {
            assert!(placement(word).is_err(), "{word}");
        }
    }
}
