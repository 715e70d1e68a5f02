//! `vramp plan`: decides a pipeline and prints the decision.
//!
//! Owns the command: from options to planner, from plan to the printed form.
//! Does not decide anything itself.
//!
//! Always: no device is opened and nothing but headers is read.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use vramp::handlers::{FileProbe, catalog};
use vramp::plan::{CheckError, Graph, Plan, Planner, Profile, Space};

use crate::args::{Form, PlanArgs};
use crate::failure::Failure;
use crate::input::{Given, certain_mistakes, read_file};
use crate::page;

/// The device class that is assumed where nothing is known.
const ASSUMED: &str = "integrated";

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
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
        CheckError::Probe { .. } => Failure::Failed(anyhow::Error::new(error)),
    })
}

fn decide(args: &PlanArgs, graph: &Graph, profile: &Profile) -> Result<Plan, Failure> {
    let mut planner = Planner::new(graph, profile).strict(args.strict).fusion(!args.no_fusion);
    if args.cpu {
        planner = planner.only(Space::Cpu);
    } else if args.gpu {
        planner = planner.only(Space::Gpu);
    }
    for (name, space) in placements(args, graph)? {
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
    planner.decide().map_err(Failure::NoPlan)
}

/// The placements asked for, each of a handler that exists and not in two places at once.
fn placements<'a>(args: &'a PlanArgs, graph: &Graph) -> Result<Vec<(&'a str, Space)>, Failure> {
    let mut placed: Vec<(&str, Space)> = Vec::new();
    for (name, space) in &args.place {
        if !graph.handlers().iter().any(|h| h.name == *name) {
            let most = 8;
            let mut names: Vec<&str> = graph.handlers().iter().map(|h| h.name.as_str()).take(most + 1).collect();
            if names.len() > most {
                names[most] = "...";
            }
            return Err(Failure::Wrong(anyhow!(
                "--place {name}={space}: no handler is called `{name}`; there are {}",
                names.join(", ")
            )));
        }
        if placed.contains(&(name, space.other())) {
            return Err(Failure::Wrong(anyhow!(
                "--place puts `{name}` on the cpu and on the gpu; give one of the two"
            )));
        }
        placed.push((name, *space));
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
    let form = if args.json { Form::Json } else { args.format };
    if args.verbose {
        negotiated(plan);
    }
    // The text form has the warnings in it; in the others people would miss them.
    if form != Form::Text && !args.quiet {
        plan.warnings.iter().for_each(|warning| page::warning(warning));
    }
    let mut printed = match form {
        Form::Text => plan.to_text(page::colour_on_stdout()),
        Form::Json if args.json => plan.to_json_line(),
        Form::Json => plan.to_json(),
        Form::Dot => plan.to_dot(),
        Form::Mermaid => plan.to_mermaid(),
    };
    if !printed.ends_with('\n') {
        printed.push('\n');
    }
    page::result(printed.as_bytes())
}

/// Says for every link what was negotiated.
fn negotiated(plan: &Plan) {
    let lines: Vec<String> = plan
        .links
        .iter()
        .map(|link| {
            let (from, to) = (plan.port_name(link.from), plan.port_name(link.to));
            match link.ramp.map(|r| &plan.ramps[r]) {
                Some(ramp) => format!(
                    "{from} -> {to}: Negotiated: {}->{} (transfer, ~{:.2} ms)",
                    link.from_space,
                    link.space,
                    ramp.est_ns as f64 / 1e6
                ),
                None => format!("{from} -> {to}: Negotiated: {} (no transfer)", link.space),
            }
        })
        .collect();
    if !lines.is_empty() {
        page::words(&lines.join("\n"));
    }
}
