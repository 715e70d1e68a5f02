//! The data of a page as JSON, in the form that docs/report.md describes.
//!
//! `plan` is what `vramp plan --json` prints and `report` what `vramp run --json` prints, byte for byte.

use serde::Serialize;
use vramp_plan::PlannedHandler;
use vramp_runtime::observe::{RunDistributions, RunSample};

use crate::markup::without_credentials;
use crate::page::{Page, RunPart};
use crate::recorder::{RecordedEvent, RunRecord};
use crate::timeline::Timeline;

/// The version of the form. It grows if a key changes its meaning or is removed; new keys may come without it.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct HandlerSettings<'a> {
    handler: &'a str,
    kind: &'a str,
    settings: Vec<(&'a str, String)>,
}

#[derive(Serialize)]
struct Observed<'a> {
    distributions: &'a RunDistributions,
    samples: SampleTable,
    timeline: &'a Timeline,
    events: &'a [RecordedEvent],
    events_left_out: u64,
}

/// Samples as a table, because 512 objects with eight keys each would be most of the page.
#[derive(Serialize)]
struct SampleTable {
    columns: [&'static str; 8],
    rows: Vec<[u64; 8]>,
}

pub(crate) fn json(page: &Page) -> String {
    let mut members = vec![
        ("vramp_report", VERSION.to_string()),
        ("vramp", written(&env!("CARGO_PKG_VERSION"))),
        ("title", written(&page.title)),
        ("pipeline", written(&page.pipeline)),
        ("facts", written(&page.facts)),
        ("problems", written(&page.problems)),
        ("notes", written(&page.notes)),
        ("settings", written(&page.plan.handlers.iter().map(settings).collect::<Vec<_>>())),
        ("plan", page.plan.to_json_line()),
    ];
    let run = page.run.as_ref();
    members.push(("report", run.map_or_else(|| "null".to_owned(), |RunPart { report, .. }| written(report))));
    members
        .push(("observed", run.map_or_else(|| "null".to_owned(), |RunPart { record, .. }| written(&observed(record)))));
    let members: Vec<String> =
        members.into_iter().map(|(key, value)| format!("\"{key}\":{}", value.trim_end())).collect();
    without_credentials(&format!("{{{}}}", members.join(","))).into_owned()
}

fn observed(record: &RunRecord) -> Observed<'_> {
    let RunRecord { distributions, samples, timeline, events, events_left_out } = record;
    Observed { distributions, samples: table(samples), timeline, events, events_left_out: *events_left_out }
}

fn settings(handler: &PlannedHandler) -> HandlerSettings<'_> {
    let all = handler.settings.iter().map(|(key, value)| (key, value.to_string()));
    HandlerSettings { handler: &handler.name, kind: handler.kind(), settings: all.collect() }
}

fn table(samples: &[RunSample]) -> SampleTable {
    let row = |sample: &RunSample| {
        let RunSample { at_ns, frames_in, frames_out, dropped, .. } = *sample;
        let RunSample { cpu_used_bytes, cpu_bytes, gpu_used_bytes, gpu_bytes, .. } = *sample;
        [at_ns, frames_in, frames_out, dropped, cpu_used_bytes, cpu_bytes, gpu_used_bytes, gpu_bytes]
    };
    SampleTable {
        columns: [
            "at_ns",
            "frames_in",
            "frames_out",
            "dropped",
            "cpu_used_bytes",
            "cpu_bytes",
            "gpu_used_bytes",
            "gpu_bytes",
        ],
        rows: samples.iter().map(row).collect(),
    }
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, lists and finite numbers can be written as JSON")
}
