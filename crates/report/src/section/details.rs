//! Everything else: the machine, memory, lanes, links, settings and events, folded.

use vramp_plan::catalog::Fallback;
use vramp_plan::{Plan, PlannedHandler, PlannedLink};
use vramp_runtime::observe::{LinkUse, MemoryUse, PerFrame};

use super::{pairs, section, table};
use crate::figures::{bytes, cut, digits, grouped, time};
use crate::markup::{Markup, without_credentials};
use crate::page::{Page, RunPart};

pub(crate) fn write(page: &mut Markup, about: &Page) {
    let plan = &about.plan;
    section(page, "Details", "", |page| {
        folded(page, "Device and profile", true, |page| machine(page, about));
        if let Some(run) = &about.run {
            folded(page, "Work per frame", false, |page| pairs(page, &work(run)));
            folded(page, "Memory", false, |page| pairs(page, &memory(run)));
        }
        folded(page, &format!("Settings of {} handlers", plan.handlers.len()), false, |page| settings(page, plan));
        folded(page, &format!("{} links", plan.links.len()), false, |page| links(page, about));
        folded(page, &format!("{} lanes", plan.lanes.len()), false, |page| lanes(page, plan));
        if let Some(run) = &about.run {
            let count = run.record.events.len() as u64 + run.record.events_left_out;
            if count > 0 {
                folded(page, &format!("{count} events"), false, |page| events(page, run));
            }
        }
    });
}

fn folded(page: &mut Markup, title: &str, is_open: bool, content: impl FnOnce(&mut Markup)) {
    let attributes: &[(&'static str, &str)] = if is_open { &[("open", "open")] } else { &[] };
    page.element("details", attributes, |page| {
        page.words("summary", &[], title);
        content(page);
    });
    page.line();
}

fn machine(page: &mut Markup, about: &Page) {
    let plan = &about.plan;
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(run) = &about.run {
        let report = &run.report;
        rows.push(("device", report.device.clone()));
        rows.push(("backend", report.backend.clone()));
        rows.push(("device times from", report.timing.to_owned()));
    }
    rows.extend(about.facts.iter().map(|(name, value)| (name.as_str(), value.clone())));
    rows.push(("profile", plan.profile.clone()));
    let other = |ns: Option<u64>| ns.map_or_else(|| "impossible".to_owned(), |ns| time(ns as f64));
    rows.push(("planned cost of a frame", time(plan.cost_ns as f64)));
    rows.push(("the same with --cpu", other(plan.alternatives.cpu_ns)));
    rows.push(("the same with --gpu", other(plan.alternatives.gpu_ns)));
    pairs(page, &rows);
}

fn work(run: &RunPart) -> Vec<(&'static str, String)> {
    let PerFrame { frames, uploads, downloads, transfer_bytes, dispatches, submits, .. } = run.report.steady;
    let PerFrame { heap_allocs, gpu_allocs, frame_copies, max_in_flight, .. } = run.report.steady;
    if frames == 0 {
        return vec![("steady frames", "0: the run was too short".to_owned())];
    }
    let figure = |value: f64| if value.fract() == 0.0 { format!("{value:.0}") } else { digits(value) };
    vec![
        ("steady frames", grouped(frames)),
        ("uploads", figure(uploads)),
        ("downloads", figure(downloads)),
        ("bytes transferred", bytes(transfer_bytes as u64)),
        ("dispatches", figure(dispatches)),
        ("submits", figure(submits)),
        ("device allocations", figure(gpu_allocs)),
        ("heap allocations", heap_allocs.map_or_else(|| "not counted".to_owned(), figure)),
        ("copied frames", figure(frame_copies)),
        ("most submits in flight", max_in_flight.to_string()),
    ]
}

fn memory(run: &RunPart) -> Vec<(&'static str, String)> {
    let own: &MemoryUse = &run.report.memory;
    vec![
        ("gpu peak", format!("{} of {} planned", bytes(own.gpu_peak_bytes), bytes(own.gpu_planned_bytes))),
        ("cpu peak", format!("{} of {} planned", bytes(own.cpu_peak_bytes), bytes(own.cpu_planned_bytes))),
        ("budgets", format!("gpu {}, cpu {}", bytes(own.gpu_budget_bytes), bytes(own.cpu_budget_bytes))),
        ("staging and readback", bytes(own.ring_bytes)),
        ("requests", format!("{} from free memory, {} allocated", grouped(own.hits), grouped(own.misses))),
        ("waits for memory", grouped(own.waits)),
        ("not returned", grouped(own.leaked)),
    ]
}

/// Settings that are not the default come first and are strong.
fn settings(page: &mut Markup, plan: &Plan) {
    page.element("div", &[("class", "settings")], |page| {
        for handler in &plan.handlers {
            page.element("div", &[("class", "setting")], |page| {
                page.words("strong", &[], &handler.name);
                let kind =
                    if handler.inserted { format!("{}, inserted", handler.kind()) } else { handler.kind().to_owned() };
                page.words("span", &[("class", "faint")], &kind);
                let mut all: Vec<(bool, &str, String)> = handler
                    .settings
                    .iter()
                    .map(|(key, value)| (is_default(handler, key, value), key, value.to_string()))
                    .collect();
                all.sort_by_key(|(is_default, ..)| *is_default);
                for (is_default, key, value) in all {
                    let class = if is_default { "faint" } else { "given" };
                    page.words(
                        "code",
                        &[("class", class)],
                        &format!("{key}={}", cut(&without_credentials(&value), 400)),
                    );
                }
            });
            page.line();
        }
    });
}

fn is_default(handler: &PlannedHandler, key: &str, value: &vramp_plan::catalog::Value) -> bool {
    let Some(setting) = handler.entry.setting(key) else { return false };
    matches!(setting.fallback, Fallback::Is(text) if setting.value.read(text).as_ref() == Some(value))
}

fn links(page: &mut Markup, about: &Page) {
    let plan = &about.plan;
    let counts = |link: &PlannedLink| -> Option<&LinkUse> {
        let (from, to) = (plan.port_name(link.from), plan.port_name(link.to));
        about.run.as_ref()?.report.links.iter().find(|own| own.from == from && own.to == to)
    };
    let row = |link: &PlannedLink| {
        let depth = if link.depth == 0 {
            "same segment or kernel".to_owned()
        } else {
            format!("{} {}", link.policy, link.depth)
        };
        let space = if link.from_space == link.space {
            link.space.to_string()
        } else {
            format!("{} → {}", link.from_space, link.space)
        };
        let ends = format!("{} → {}", plan.port_name(link.from), plan.port_name(link.to));
        let mut row = vec![ends, link.content.to_string(), space, depth];
        if about.run.is_some() {
            let known =
                |figure: fn(&LinkUse) -> u64| counts(link).map_or_else(|| "–".to_owned(), |own| grouped(figure(own)));
            row.extend([known(|own| own.sent), known(|own| own.dropped)]);
        }
        row
    };
    let columns = ["link", "content", "space", "policy and depth", "sent", "dropped"];
    let count = if about.run.is_some() { 6 } else { 4 };
    table(page, &columns[..count], plan.links.iter().map(row));
}

fn lanes(page: &mut Markup, plan: &Plan) {
    let row = |(at, lane): (usize, &vramp_plan::PlannedLane)| {
        let names: Vec<&str> = lane.handlers.iter().map(|own| plan.handlers[*own].name.as_str()).collect();
        vec![at.to_string(), if lane.device { "device" } else { "host" }.to_owned(), names.join(", ")]
    };
    table(page, &["lane", "runs on", "handlers"], plan.lanes.iter().enumerate().map(row));
}

fn events(page: &mut Markup, run: &RunPart) {
    let row = |event: &crate::recorder::RecordedEvent| {
        let kind = if event.is_warning { "warning" } else { "note" };
        vec![time(event.at_ns as f64), kind.to_owned(), event.text.clone()]
    };
    table(page, &["at", "", "event"], run.record.events.iter().map(row));
    if run.record.events_left_out > 0 {
        page.words("p", &[("class", "about")], &format!("{} later events are not listed.", run.record.events_left_out));
    }
}
