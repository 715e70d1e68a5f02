//! Plans and reports in a line or two.
//!
//! Owns their wording.
//! Does not print: the streams' owner does.

use vramp::Prepared;
use vramp::gpu::Device;
use vramp::plan::{Plan, Space};
use vramp::runtime::Report;

/// What was decided, and what it runs on.
pub(super) fn plan_line(prepared: &Prepared) -> String {
    let device = match &prepared.device {
        None => String::new(),
        Some(device) => format!("\n{}", device_line(device)),
    };
    format!("plan: {}{device}", size_of_plan(&prepared.plan))
}

/// Which device it is, and why that one.
pub(super) fn device_line(device: &Device) -> String {
    let adapter = device.adapter();
    format!("device: {} ({}, {}): {}", adapter.name, adapter.backend, adapter.kind, device.why())
}

/// Where handlers are, in how many kernels, and what a frame should cost.
fn size_of_plan(plan: &Plan) -> String {
    let on = |space: Space| plan.handlers.iter().filter(|handler| handler.space == space).count();
    let kernels = |space: Space| plan.groups.iter().filter(|group| group.space == space).count();
    let side = |space: Space| {
        let (handlers, kernels) = (on(space), kernels(space));
        let joined = if kernels == 0 { String::new() } else { format!(" in {}", counted(kernels, "kernel")) };
        (handlers > 0).then(|| format!("{} on the {space}{joined}", counted(handlers, "handler")))
    };
    let mut parts: Vec<String> = [side(Space::Gpu), side(Space::Cpu)].into_iter().flatten().collect();
    let bytes: u64 = plan.ramps.iter().map(|ramp| ramp.bytes).sum();
    if !plan.ramps.is_empty() {
        parts.push(format!("{} a frame ({:.1} MB)", counted(plan.ramps.len(), "transfer"), bytes as f64 / 1e6));
    }
    parts.push(format!("~{} a frame by {}{}", ms(plan.cost_ns), plan.profile, otherwise(plan)));
    parts.join(", ")
}

/// What the other side would cost, where the choice was free and the other side lost.
fn otherwise(plan: &Plan) -> String {
    let all_cpu = plan.handlers.iter().all(|handler| handler.space == Space::Cpu);
    match (all_cpu, plan.alternatives.gpu_ns, plan.alternatives.cpu_ns) {
        (true, Some(gpu), _) if gpu > plan.cost_ns => format!(" (on the gpu ~{})", ms(gpu)),
        (false, _, Some(cpu)) if cpu > plan.cost_ns => format!(" (on the cpu ~{})", ms(cpu)),
        _ => String::new(),
    }
}

fn ms(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

/// So many of a thing.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// What a run did.
pub(super) fn summary(report: &Report) -> String {
    let Report { frames, seconds, fps, backend, .. } = report;
    let mut parts = vec![match frames {
        0 => format!("no frame arrived in {seconds:.2} s"),
        1 => format!("1 frame in {seconds:.2} s"),
        _ => format!("{frames} frames in {seconds:.2} s, {fps:.1} fps"),
    }];
    if let (Some(p50), Some(p99)) = (report.frame_ms.p50, report.frame_ms.p99) {
        parts.push(format!("a frame every {p50:.2} ms (p50), {p99:.2} ms (p99)"));
    }
    let dropped = report.dropped;
    let reasons = [
        ("link full", dropped.link_full),
        ("late", dropped.late),
        ("after an error", dropped.error),
        ("device lost", dropped.device_lost),
        ("stopped", dropped.stopped),
    ];
    let reasons: Vec<String> =
        reasons.iter().filter(|(_, n)| *n > 0).map(|(reason, n)| format!("{n} {reason}")).collect();
    parts.push(match dropped.sum() {
        0 => "none dropped".to_owned(),
        sum => format!("{sum} dropped ({})", reasons.join(", ")),
    });
    if report.failed > 0 {
        parts.push(format!("{} failed", report.failed));
    }
    parts.push(if backend == "cpu" { "on the cpu".to_owned() } else { format!("on {} ({backend})", report.device) });
    parts.join("; ")
}
