//! Frames that did not arrive: by reason, by link and by handler; and lost devices.

use vramp_runtime::Report;
use vramp_runtime::observe::{DeviceRecovery, GoesOn, HandlerTime, LinkUse};

use super::{section, table};
use crate::figures::{counted, grouped};
use crate::markup::Markup;
use crate::page::RunPart;

pub(crate) fn write(page: &mut Markup, run: &RunPart) {
    let report = &run.report;
    let reasons = reasons(report);
    let sum: u64 = reasons.iter().map(|(_, count, _)| count).sum();
    let words = match sum {
        0 => format!("All {} arrived or were filtered on purpose.", counted(report.frames_in, "frame")),
        _ => format!("{} from the sources.", counted(report.frames_in, "frame")),
    };
    section(page, "Dropped frames", &words, |page| {
        if sum > 0 {
            bars(page, &reasons);
        }
        let dropping: Vec<&LinkUse> = report.links.iter().filter(|link| link.dropped > 0).collect();
        if !dropping.is_empty() {
            page.words("h3", &[], "By link");
            let row = |link: &&LinkUse| {
                let ends = format!("{} → {}", link.from, link.to);
                vec![ends, grouped(link.sent), grouped(link.taken), grouped(link.dropped), grouped(link.queued)]
            };
            table(page, &["link", "sent", "taken", "dropped", "queued"], dropping.iter().map(row));
        }
        let failing: Vec<&HandlerTime> =
            report.handlers.iter().filter(|own| own.errors + own.lost + own.problems > 0).collect();
        if !failing.is_empty() {
            page.words("h3", &[], "By handler");
            let row = |own: &&HandlerTime| {
                let numbers = [own.calls, own.errors, own.lost, own.problems];
                [own.name.clone()].into_iter().chain(numbers.map(grouped)).collect()
            };
            table(page, &["handler", "calls", "failed", "lost with the device", "problems"], failing.iter().map(row));
        }
        if !report.recoveries.is_empty() {
            page.words("h3", &[], "Lost devices");
            table(page, &["after frame", "reason", "frames lost", "continued"], report.recoveries.iter().map(recovery));
        }
    });
}

/// Reasons with their counts, and whether the frames are lost. Frames that were left over when their consumer ended are
/// not.
fn reasons(report: &Report) -> Vec<(&'static str, u64, bool)> {
    let dropped = &report.dropped;
    let all = [
        ("the link was full", dropped.link_full, true),
        ("left over when the consumer ended", dropped.late, false),
        ("after an error", dropped.error, true),
        ("the device was lost", dropped.device_lost, true),
        ("the run was stopped", dropped.stopped, true),
        ("a handler failed", report.failed, true),
    ];
    all.into_iter().filter(|(_, count, _)| *count > 0).collect()
}

fn bars(page: &mut Markup, reasons: &[(&'static str, u64, bool)]) {
    let most = reasons.iter().map(|(_, count, _)| *count).max().unwrap_or(1).max(1) as f64;
    page.element("div", &[("class", "reasons")], |page| {
        for (reason, count, is_lost) in reasons {
            page.element("div", &[("class", "reason")], |page| {
                page.words("span", &[], reason);
                page.element("span", &[("class", "drawn")], |page| {
                    let style = format!("width:{:.1}%", *count as f64 / most * 100.0);
                    let class = if *is_lost { "cost lost" } else { "cost" };
                    page.empty("span", &[("class", class), ("style", &style)]);
                });
                page.words("span", &[("class", "cell")], &grouped(*count));
            });
        }
    });
}

fn recovery(own: &DeviceRecovery) -> Vec<String> {
    let on = match (own.on, own.back) {
        (GoesOn::Device, _) => "on the device, which was opened again",
        (GoesOn::Cpu, true) => "on the CPU, later on the device again",
        (GoesOn::Cpu, false) => "on the CPU",
    };
    vec![grouped(own.frame), own.reason.clone(), grouped(own.lost), on.to_owned()]
}
