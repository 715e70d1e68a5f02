//! The head of a page: the title, how the run ended, warnings, and the figures that are asked for first. And its foot.

use vramp_plan::{Plan, Space};
use vramp_runtime::Report;
use vramp_runtime::observe::{MemoryUse, TimeStats};

use crate::data::VERSION;
use crate::figures::{bytes, counted, digits, grouped, time};
use crate::markup::Markup;
use crate::page::Page;

/// A pipeline's text that is longer is folded.
const SHORT_TEXT: usize = 240;

/// More warnings of the run would push the graph off the screen; all events are listed below.
const MOST_WARNINGS: usize = 4;

/// A figure with its name and a remark.
struct HeadCard {
    name: &'static str,
    value: String,
    remark: String,
    is_bad: bool,
}

pub(crate) fn write(page: &mut Markup, about: &Page) {
    page.element("header", &[], |page| {
        page.element("div", &[("class", "title")], |page| {
            page.words("h1", &[], &about.title);
            if let Some(run) = &about.run {
                let (class, words) = state(&run.report, &about.problems);
                page.words("span", &[("class", class)], words);
            }
            let attributes = [("class", "theme"), ("type", "button"), ("hidden", "hidden")];
            page.words("button", &attributes, "light or dark");
        });
        page.words("p", &[("class", "about")], &summary(&about.plan));
        if let Some(text) = &about.pipeline {
            if text.chars().count() <= SHORT_TEXT {
                page.element("pre", &[("class", "pipeline")], |page| page.words("code", &[], text.trim()));
            } else {
                page.element("details", &[], |page| {
                    page.words("summary", &[], "The pipeline as it was written");
                    page.element("pre", &[("class", "pipeline")], |page| page.words("code", &[], text.trim()));
                });
            }
        }
    });
    page.line();
    messages(page, about);
    page.element("div", &[("class", "cards")], |page| {
        let cards = match &about.run {
            Some(run) => run_cards(&about.plan, &run.report),
            None => plan_cards(&about.plan),
        };
        for HeadCard { name, value, remark, is_bad } in cards {
            let class = if is_bad { "card bad" } else { "card" };
            page.element("div", &[("class", class)], |page| {
                page.words("span", &[("class", "card-name")], name);
                let class = if value.chars().count() > 12 { "card-value long" } else { "card-value" };
                page.words("span", &[("class", class)], &value);
                page.words("span", &[("class", "card-remark")], &remark);
            });
        }
    });
    page.line();
}

pub(crate) fn write_foot(page: &mut Markup) {
    page.element("footer", &[], |page| {
        let version = env!("CARGO_PKG_VERSION");
        page.text(&format!("vramp {version}. All figures are in this file as JSON, version {VERSION}: the element "));
        page.words("code", &[], "#vramp-data");
        page.text(".");
    });
    page.line();
}

fn state(report: &Report, problems: &[String]) -> (&'static str, &'static str) {
    match (problems.is_empty(), report.recoveries.is_empty() && report.failed == 0) {
        (false, _) => ("state bad", "ended with a problem"),
        (true, false) => ("state warn", "finished, with losses"),
        (true, true) => ("state good", "finished"),
    }
}

/// Problems, then the warnings and notes of the plan, then the warnings of the run.
fn messages(page: &mut Markup, about: &Page) {
    let events = about.run.as_ref().map(|run| run.record.events.as_slice()).unwrap_or_default();
    let warnings = || events.iter().filter(|event| event.is_warning).map(|event| event.text.as_str());
    let plan = &about.plan;
    let more = warnings().count().saturating_sub(MOST_WARNINGS);
    let counts = [about.problems.len(), about.notes.len(), plan.warnings.len(), plan.notes.len(), warnings().count()];
    if counts.iter().sum::<usize>() == 0 {
        return;
    }
    page.element("ul", &[("class", "messages")], |page| {
        let mut line = |class: &str, words: &str| page.words("li", &[("class", class)], words);
        about.problems.iter().for_each(|words| line("bad", words));
        plan.warnings.iter().for_each(|words| line("warn", words));
        warnings().take(MOST_WARNINGS).for_each(|words| line("warn", words));
        if more > 0 {
            line("warn", &format!("and {} during the run, below", counted(more as u64, "more warning")));
        }
        about.notes.iter().chain(&plan.notes).for_each(|words| line("note", words));
    });
    page.line();
}

/// The plan in one sentence.
fn summary(plan: &Plan) -> String {
    let on = |space| plan.handlers.iter().filter(|own| own.space == space).count() as u64;
    let places = match (on(Space::Gpu), on(Space::Cpu)) {
        (0, count) => format!("{} on the cpu", counted(count, "handler")),
        (count, 0) => format!("{} on the gpu", counted(count, "handler")),
        (gpu, cpu) => format!("{} on the gpu, {cpu} on the cpu", counted(gpu, "handler")),
    };
    let transfers = match plan.transfers.len() as u64 {
        0 => "no transfers".to_owned(),
        count => counted(count, "transfer"),
    };
    let kernels = match plan.groups.iter().filter(|group| group.handlers.len() > 1).count() as u64 {
        0 => "nothing fused".to_owned(),
        count => counted(count, "fused kernel"),
    };
    format!("{places}, {transfers}, {kernels}; planned with {}", plan.profile)
}

fn run_cards(plan: &Plan, report: &Report) -> Vec<HeadCard> {
    let Report { frames, seconds, fps, frame_ms, latency_ms, dropped, .. } = report;
    let card = |name, value, remark| HeadCard { name, value, remark, is_bad: false };
    let spread = |times: &TimeStats| match (times.p99, times.max) {
        (Some(p99), Some(max)) => format!("p99 {}, longest {}", time(p99 * 1e6), time(max * 1e6)),
        _ => String::new(),
    };
    let median = |times: &TimeStats| times.p50.map_or_else(|| "–".to_owned(), |ms| time(ms * 1e6));
    let lost = dropped.sum() - dropped.late;
    let of =
        if report.frames_in > 0 { format!("of {} from the sources", grouped(report.frames_in)) } else { String::new() };
    let device = if report.backend == "cpu" { "the CPU".to_owned() } else { report.device.clone() };
    let how = match (report.backend.as_str(), report.gpu_busy) {
        ("cpu", _) => "no device was used".to_owned(),
        (backend, Some(busy)) => format!("{backend}, busy {:.0} % of the run", busy * 100.0),
        (backend, None) => backend.to_owned(),
    };
    let MemoryUse { cpu_peak_bytes, gpu_peak_bytes, cpu_planned_bytes, gpu_planned_bytes, .. } = report.memory;
    vec![
        card("frames", grouped(*frames), format!("in {}", time(seconds * 1e9))),
        card("frames per second", digits(*fps), format!("planned cost {} a frame", time(plan.cost_ns as f64))),
        card("time between frames", median(frame_ms), spread(frame_ms)),
        card("latency, source to sink", median(latency_ms), spread(latency_ms)),
        HeadCard {
            name: "lost frames",
            value: grouped(lost + report.failed),
            remark: of,
            is_bad: lost + report.failed > 0,
        },
        card(
            "peak memory of frames",
            bytes(cpu_peak_bytes + gpu_peak_bytes),
            format!(
                "gpu {} of {} planned, cpu {} of {}",
                bytes(gpu_peak_bytes),
                bytes(gpu_planned_bytes),
                bytes(cpu_peak_bytes),
                bytes(cpu_planned_bytes)
            ),
        ),
        HeadCard { name: "computed on", value: device, remark: how, is_bad: !report.recoveries.is_empty() },
    ]
}

fn plan_cards(plan: &Plan) -> Vec<HeadCard> {
    let card = |name, value, remark| HeadCard { name, value, remark, is_bad: false };
    let other = |option: &str, ns: Option<u64>| match ns {
        Some(ns) => format!("{option} {}", time(ns as f64)),
        None => format!("{option} is impossible"),
    };
    let transfers: u64 = plan.transfers.iter().map(|transfer| transfer.est_ns).sum();
    let moved: u64 = plan.transfers.iter().map(|transfer| transfer.bytes).sum();
    let dispatches: u64 = plan.groups.iter().map(|group| u64::from(group.dispatches)).sum();
    let mut cards = vec![
        card(
            "planned cost of a frame",
            time(plan.cost_ns as f64),
            format!("{}, {}", other("--cpu", plan.alternatives.cpu_ns), other("--gpu", plan.alternatives.gpu_ns)),
        ),
        card(
            "transfers",
            plan.transfers.len().to_string(),
            format!("{} a frame, {}", bytes(moved), time(transfers as f64)),
        ),
        card(
            "device work",
            counted(dispatches, "dispatch"),
            format!("{} a frame", counted(u64::from(plan.segments), "submit")),
        ),
        card(
            "memory of frames",
            bytes(plan.memory.gpu_bytes + plan.memory.cpu_bytes),
            format!("gpu {}, cpu {}", bytes(plan.memory.gpu_bytes), bytes(plan.memory.cpu_bytes)),
        ),
        card("lanes", plan.lanes.len().to_string(), "run at the same time".to_owned()),
    ];
    if let Some(latency) = &plan.latency {
        let asked = format!("{} asked for", time(latency.asked_ns as f64));
        let value = time(latency.predicted_ns as f64);
        cards.push(HeadCard { name: "predicted latency", value, remark: asked, is_bad: !latency.fits() });
    }
    cards
}
