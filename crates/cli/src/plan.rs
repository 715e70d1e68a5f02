//! `vramp plan`: decides a pipeline and prints the decision.
//!
//! Owns the command: from options to planner, from plan to the printed form.
//! Does not decide anything itself.
//!
//! Always: no device is opened and nothing but headers is read.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use vramp::handlers::{FileProbe, catalog};
use vramp::plan::{CheckError, Graph, NoPlan, Plan, PlannedLink, Planner, PortAt, Profile, Ramp, Space};

use crate::args::{Form, PlanArgs};
use crate::failure::Failure;
use crate::input::{Given, certain_mistakes, read_file};
use crate::page;

/// The device class that is assumed where nothing is known.
const ASSUMED: &str = "integrated";

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    if args.json && args.format.is_some_and(|form| form != Form::Json) {
        return Err(Failure::Wrong(anyhow!("--json and --format ask for two forms; give one of the two")));
    }
    let profile = match &args.profile {
        Some(word) => find_profile(word)?,
        None => shipped(ASSUMED)?,
    };
    let graph = read_graph(&args.pipeline)?;
    let mut plan = decide(args, &graph, &profile)?;
    if args.profile.is_none() {
        plan.warnings.push(format!(
            "no profile given and this machine is not measured: using {}, a class estimate; --profile FILE describes yours",
            profile.name()
        ));
    }
    print(args, &plan)
}

fn read_graph(pipeline: &OsStr) -> Result<Graph, Failure> {
    let catalog = catalog();
    let given = Given::find(pipeline)?;
    let reading = given.read(&catalog);
    if !reading.mistakes.is_empty() {
        let mut mistakes = reading.mistakes;
        mistakes.extend(certain_mistakes(&reading.spec, &catalog));
        return Err(given.mistakes(mistakes));
    }
    Graph::check(&reading.spec, &catalog, &FileProbe).map_err(|error| match error {
        CheckError::Mistakes(list) => given.mistakes(list),
        CheckError::Probe(_) => Failure::Failed(anyhow::Error::new(error)),
    })
}

fn decide(args: &PlanArgs, graph: &Graph, profile: &Profile) -> Result<Plan, Failure> {
    let mut planner = Planner::new(graph, profile).strict(args.strict).fusion(!args.no_fusion);
    if args.cpu {
        planner = planner.only(Space::Cpu);
    } else if args.gpu {
        planner = planner.only(Space::Gpu);
    }
    for (name, space) in placements(args)? {
        planner = planner.place(name, space);
    }
    if let Some(threads) = args.threads {
        planner = planner.threads(threads);
    }
    if let Some(in_flight) = args.in_flight {
        planner = planner.in_flight(in_flight);
    }
    if let Some(batch) = args.batch {
        planner = planner.batch(batch);
    }
    if let Some(fps) = args.fps {
        planner = planner.pace(fps);
    }
    planner.decide().map_err(|why| match why {
        // A name that does not exist is a slip on the command line, not a property of the graph.
        NoPlan::UnknownPin { .. } => Failure::Wrong(why.into()),
        _ => Failure::NoPlan(why),
    })
}

/// The placements asked for, no handler in two places at once.
fn placements(args: &PlanArgs) -> Result<BTreeMap<&str, Space>, Failure> {
    let mut placed = BTreeMap::new();
    for (name, space) in &args.place {
        if placed.insert(name.as_str(), *space).is_some_and(|before| before != *space) {
            return Err(Failure::Wrong(anyhow!(
                "--place puts `{name}` on the cpu and on the gpu; give one of the two"
            )));
        }
    }
    Ok(placed)
}

fn find_profile(word: &OsStr) -> Result<Profile, Failure> {
    if let Some(class) = word.to_str().and_then(|w| w.strip_prefix("shipped:")) {
        return shipped(class);
    }
    let path = Path::new(word);
    let text = read_file(path)?;
    Profile::read(&path.display().to_string(), &text).map_err(|error| Failure::Wrong(error.into()))
}

fn shipped(class: &str) -> Result<Profile, Failure> {
    Profile::shipped(class).ok_or_else(|| {
        let names = Profile::SHIPPED.join(", ");
        Failure::Wrong(anyhow!("--profile shipped:{class}: there is no such profile; shipped are {names}"))
    })
}

fn print(args: &PlanArgs, plan: &Plan) -> Result<(), Failure> {
    let form = if args.json { Form::Json } else { args.format.unwrap_or(Form::Text) };
    if args.verbose {
        negotiated(plan);
    }
    let mut printed = match form {
        // Warnings are words for people, below: a plan that is kept in a file is only the plan.
        Form::Text => Plan { warnings: Vec::new(), ..plan.clone() }.to_text(page::colour_on_stdout()),
        Form::Json if args.json => plan.to_json_line(),
        Form::Json => plan.to_json(),
        Form::Dot => plan.to_dot(),
        Form::Mermaid => plan.to_mermaid(),
    };
    if !printed.ends_with('\n') {
        printed.push('\n');
    }
    page::result(printed.as_bytes())?;
    if !args.quiet {
        plan.warnings.iter().for_each(|warning| page::warning(warning));
    }
    Ok(())
}

/// Says for every link what was negotiated.
fn negotiated(plan: &Plan) {
    let served: BTreeMap<PortAt, &Ramp> =
        plan.ramps.iter().flat_map(|ramp| ramp.to.iter().map(move |at| (*at, ramp))).collect();
    let line = |link: &PlannedLink| {
        let (from, to) = (plan.port_name(link.from), plan.port_name(link.to));
        let Some(ramp) = served.get(&link.to) else {
            return format!("{from} -> {to}: Negotiated: {} (no transfer)", link.space);
        };
        let (way, ms) = (ramp.direction, ramp.est_ns as f64 / 1e6);
        let explicit = if ramp.explicit { ", asked for" } else { "" };
        format!("{from} -> {to}: Negotiated: {}->{} (transfer, ~{ms:.2} ms{explicit})", way.from(), way.to())
    };
    if !plan.links.is_empty() {
        page::words(&plan.links.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
}
