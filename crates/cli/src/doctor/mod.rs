//! `vramp doctor`: checks what works on this machine, and says what to type if something does not work.
//!
//! A setting that breaks something until the user changes the setting is a problem. A part that is only missing is a
//! warning. Every problem says what to type. The last checks run a pipeline: they open the adapter that a run would
//! use, and compare its pixels with those of the CPU through `vramp::verify`.

mod fix;
mod graphics;
mod host;
mod trial;
mod video;

use std::fmt::Write as _;

use anyhow::anyhow;
use serde::Serialize;
use vramp::machine;
use vramp::media::Tools;

use crate::failure::CliError;
use crate::page;
use fix::Fixes;
use graphics::Surroundings;

pub(crate) fn run(json: bool, tools: &Tools) -> Result<(), CliError> {
    let checks = checks(tools);
    let count = |state: CheckState| checks.iter().filter(|check| check.state == state).count();
    let (warnings, problems) = (count(CheckState::Warning), count(CheckState::Problem));
    if json {
        let all = DoctorJson { checks: &checks, warnings, problems };
        let mut line = serde_json::to_string(&all).map_err(|error| CliError::Failed(error.into()))?;
        line.push('\n');
        page::result(line.as_bytes())?;
    } else {
        page::result(text(&checks, page::colour_on_stdout()).as_bytes())?;
    }
    match problems {
        0 => Ok(()),
        1 => Err(CliError::Failed(anyhow!("1 problem found"))),
        _ => Err(CliError::Failed(anyhow!("{problems} problems found"))),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckState {
    Ok,
    /// Something is missing or has no effect; vramp works nevertheless.
    Warning,
    /// Something does not work until the user acts.
    Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct HealthCheck {
    name: &'static str,
    state: CheckState,
    words: String,
    /// The command to type.
    fix: Option<String>,
}

impl HealthCheck {
    fn ok(name: &'static str, words: impl Into<String>) -> HealthCheck {
        HealthCheck { name, state: CheckState::Ok, words: words.into(), fix: None }
    }

    fn warning(name: &'static str, words: impl Into<String>) -> HealthCheck {
        HealthCheck { name, state: CheckState::Warning, words: words.into(), fix: None }
    }

    /// A problem always has a fix.
    fn problem(name: &'static str, words: impl Into<String>, fix: impl Into<String>) -> HealthCheck {
        HealthCheck { name, state: CheckState::Problem, words: words.into(), fix: Some(fix.into()) }
    }

    fn fix(self, fix: impl Into<String>) -> HealthCheck {
        HealthCheck { fix: Some(fix.into()), ..self }
    }
}

#[derive(Serialize)]
struct DoctorJson<'a> {
    checks: &'a [HealthCheck],
    warnings: usize,
    problems: usize,
}

fn checks(tools: &Tools) -> Vec<HealthCheck> {
    let adapters = machine::list_adapters();
    let here = Surroundings::of_this_machine();
    let fixes = Fixes::of(&here.drivers);
    let mut checks = vec![host::cpu(), host::terminal(), host::display(), host::cache()];
    checks.extend(video::checks(tools, &fixes));
    checks.extend(graphics::variables(&here));
    if cfg!(target_os = "linux") {
        checks.extend(graphics::files(&here, &adapters, &fixes));
    }
    checks.push(graphics::adapter(&here, &adapters, &fixes));
    checks.extend(trial::checks(!adapters.is_empty()));
    checks
}

fn text(checks: &[HealthCheck], colour: bool) -> String {
    let wide = checks.iter().map(|check| check.name.len()).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for HealthCheck { name, state, words, fix } in checks {
        let (word, shade) = match state {
            CheckState::Ok => ("ok", "32"),
            CheckState::Warning => ("warning", "1;33"),
            CheckState::Problem => ("problem", "1;31"),
        };
        let word = format!("{word:9}");
        let word = if colour { format!("\x1b[{shade}m{word}\x1b[0m") } else { word };
        let _ = writeln!(out, "{word}{name:wide$}{words}");
        if let Some(fix) = fix {
            let _ = writeln!(out, "{:9}{:wide$}type: {fix}", "", "");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_a_line_and_what_to_type_another() {
        let checks = [HealthCheck::ok("cpu", "2 threads"), HealthCheck::problem("VK_X", "names nothing", "unset VK_X")];
        let lines: Vec<String> = text(&checks, false).lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            ["ok       cpu   2 threads", "problem  VK_X  names nothing", "               type: unset VK_X"]
        );
    }
}
