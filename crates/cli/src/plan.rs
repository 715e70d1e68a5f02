//! `vramp plan`: plans a pipeline, prints the plan, and compares it with the limits of `--budget` that a plan can check.
//! Opens no device, and reads only the headers of files.

use std::collections::BTreeMap;

use anyhow::anyhow;
use vramp::plan::{Plan, PlannedLink, PortAt, Profile, Transfer};
use vramp::report::Page;
use vramp::runtime::Registry;

use crate::args::{Form, PlanArgs};
use crate::failure::CliError;
use crate::input::CheckedPipeline;
use crate::run::{check_plan_budget, refuse_unplanned};
use crate::{page, request};

/// The device class that is assumed for an unknown machine.
const ASSUMED: &str = "integrated";

pub(crate) fn run(args: &PlanArgs, registry: &Registry) -> Result<(), CliError> {
    if args.json && args.format.is_some_and(|form| form != Form::Json) {
        return Err(CliError::Wrong(anyhow!("--json and --format both set the output format; give only one")));
    }
    refuse_unplanned(&args.flags)?;
    let (profile, warning) = figures(args)?;
    let written = CheckedPipeline::read(&args.pipeline, registry)?;
    let planned = request::of(&args.flags, &written.graph, registry)?.profile(profile).plan();
    let mut plan = planned.map_err(|why| written.place(why.into()))?;
    plan.warnings.extend(warning);
    print(args, &plan, written.text())?;
    check_plan_budget(&args.flags, &plan)
}

/// The profile to plan with, and a warning about the choice of the profile.
fn figures(args: &PlanArgs) -> Result<(Profile, Option<String>), CliError> {
    let flags = &args.flags;
    let wants = flags.prefer.is_some() || flags.min_memory.is_some() || flags.max_load.is_some();
    if let Some(word) = &flags.profile {
        let unread = match (wants, flags.backend.is_some() || flags.device.is_some()) {
            (true, _) => Some("--backend, --device, --prefer, --min-memory and --max-load"),
            (false, true) => Some("--backend and --device"),
            (false, false) => None,
        };
        let warning = unread.map(|options| format!("--profile describes the device: {options} have no effect"));
        return Ok((request::find_profile(word)?, warning));
    }
    if let Some(remembered) = request::remembered_figures(flags)? {
        return Ok(remembered);
    }
    let profile = request::shipped(ASSUMED)?;
    let class = profile.name();
    let judged = if wants { "; --prefer, --min-memory and --max-load have no effect before that" } else { "" };
    let warning = format!(
        "no profile given and this machine is not known yet: the plan uses {class}, an estimate for a class of \
         machines; give --profile FILE, or run `vramp devices` first, which detects this machine{judged}"
    );
    Ok((profile, Some(warning)))
}

fn print(args: &PlanArgs, plan: &Plan, text: &str) -> Result<(), CliError> {
    let form = if args.json { Form::Json } else { args.format.unwrap_or(Form::Text) };
    if args.flags.verbose {
        negotiated(plan);
    }
    let mut printed = match form {
        // Warnings and notes go to standard error below, so that a redirected plan contains only the plan.
        Form::Text => {
            Plan { warnings: Vec::new(), notes: Vec::new(), ..plan.clone() }.to_text(page::colour_on_stdout())
        }
        Form::Json if args.json => plan.to_json_line(),
        Form::Json => plan.to_json(),
        Form::Dot => plan.to_dot(),
        Form::Mermaid => plan.to_mermaid(),
        Form::Html => Page::of_plan(plan).pipeline(text).to_html(),
    };
    if !printed.ends_with('\n') {
        printed.push('\n');
    }
    page::result(printed.as_bytes())?;
    if !args.flags.quiet {
        plan.warnings.iter().for_each(|warning| page::warning(warning));
        plan.notes.iter().for_each(|note| page::note(note));
    }
    Ok(())
}

/// Prints the negotiated space of every link.
pub(crate) fn negotiated(plan: &Plan) {
    let served: BTreeMap<PortAt, &Transfer> =
        plan.transfers.iter().flat_map(|transfer| transfer.to.iter().map(move |at| (*at, transfer))).collect();
    let line = |link: &PlannedLink| {
        let (from, to) = (plan.port_name(link.from), plan.port_name(link.to));
        let Some(transfer) = served.get(&link.to) else {
            return format!("{from} -> {to}: Negotiated: {} (no transfer)", link.space);
        };
        let (way, ms) = (transfer.direction, transfer.est_ns as f64 / 1e6);
        let explicit = if transfer.explicit { ", explicit" } else { "" };
        format!("{from} -> {to}: Negotiated: {}->{} (transfer, ~{ms:.2} ms{explicit})", way.from(), way.to())
    };
    if !plan.links.is_empty() {
        page::words(&plan.links.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
}
