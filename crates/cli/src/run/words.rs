//! Plans and reports as a line or two of text.

use vramp::Pipeline;
use vramp::gpu::Device;
use vramp::plan::{Plan, Space, bytes_in_words};
use vramp::runtime::Report;
use vramp::runtime::observe::{Dropped, LatencyNeed, Leak, MemoryUse, Placement, UnitTime};

/// Lines about the plan, its memory and its device.
pub(super) fn plan_line(pipeline: &Pipeline) -> String {
    let device = match pipeline.device() {
        None => String::new(),
        Some(device) => format!("\n{}", device_line(device)),
    };
    format!("plan: {}\n{}{device}", size_of_plan(pipeline.plan()), memory_planned(pipeline.plan()))
}

/// The memory that the plan needs.
fn memory_planned(plan: &Plan) -> String {
    let side = |space: Space, bytes: u64| (bytes > 0).then(|| format!("{} on the {space}", bytes_in_words(bytes)));
    let sides = [side(Space::Gpu, plan.memory.gpu_bytes), side(Space::Cpu, plan.memory.cpu_bytes)];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    if sides.is_empty() {
        "memory: none for frames".to_owned()
    } else {
        format!("memory: {} for frames", sides.join(", "))
    }
}

/// Peak memory next to planned memory.
pub(super) fn memory_used(memory: &MemoryUse) -> String {
    let side = |space: Space, peak: u64, planned: u64| {
        let words = || format!("peak {} on the {space} (planned {})", bytes_in_words(peak), bytes_in_words(planned));
        (peak + planned > 0).then(words)
    };
    let sides = [
        side(Space::Gpu, memory.gpu_peak_bytes, memory.gpu_planned_bytes),
        side(Space::Cpu, memory.cpu_peak_bytes, memory.cpu_planned_bytes),
    ];
    let mut parts: Vec<String> = sides.into_iter().flatten().collect();
    if parts.is_empty() {
        parts.push("none for frames".to_owned());
    }
    if memory.waits > 0 {
        parts.push(format!("frames waited for memory {}", times(memory.waits)));
    }
    format!("memory: {}", parts.join("; "))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Memory that was not returned. The first few leaks are named, and the others counted.
pub(super) fn leaks(memory: &MemoryUse) -> Vec<String> {
    const MOST: usize = 8;
    let mut lines: Vec<String> = memory
        .leaks
        .iter()
        .take(MOST)
        .map(|leak| {
            let Leak { space, owner, last, bytes, since_frame } = leak;
            format!("{last} still holds {bytes} bytes of {space} memory that {owner} made for frame {since_frame}")
        })
        .collect();
    if memory.leaks.len() > MOST {
        lines.push(format!("and {} more that were not returned", memory.leaks.len() - MOST));
    }
    lines
}

/// The device, and why it was chosen.
pub(super) fn device_line(device: &Device) -> String {
    let adapter = device.adapter();
    format!("device: {} ({}, {}): {}", adapter.name, adapter.backend, adapter.kind, device.why())
}

/// Handlers and kernels per space, transfers, and the estimated cost of a frame.
pub(crate) fn size_of_plan(plan: &Plan) -> String {
    let on = |space: Space| plan.handlers.iter().filter(|handler| handler.space == space).count();
    let kernels = |space: Space| plan.groups.iter().filter(|group| group.space == space).count();
    let side = |space: Space| {
        let (handlers, kernels) = (on(space), kernels(space));
        let joined = if kernels == 0 { String::new() } else { format!(" in {}", counted(kernels, "kernel")) };
        (handlers > 0).then(|| format!("{} on the {space}{joined}", counted(handlers, "handler")))
    };
    let mut parts: Vec<String> = [side(Space::Gpu), side(Space::Cpu)].into_iter().flatten().collect();
    let bytes: u64 = plan.transfers.iter().map(|transfer| transfer.bytes).sum();
    if !plan.transfers.is_empty() {
        parts.push(format!("{} a frame ({:.1} MB)", counted(plan.transfers.len(), "transfer"), bytes as f64 / 1e6));
    }
    parts.push(format!("~{} a frame by {}{}", ms(plan.cost_ns), plan.profile, otherwise(plan)));
    if let Some(latency) = &plan.latency {
        parts.push(format!("~{} latency", ms(latency.predicted_ns)));
    }
    parts.join(", ")
}

/// The cost in the other space, if that cost is known and higher than the cost of the plan.
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

/// A count with its noun in singular or plural.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The result of a run.
pub(super) fn summary(report: &Report) -> String {
    let Report { frames, seconds, fps, .. } = report;
    let mut parts = vec![match frames {
        0 => format!("no frame arrived in {seconds:.2} s"),
        1 => format!("1 frame in {seconds:.2} s"),
        _ => format!("{frames} frames in {seconds:.2} s, {fps:.1} fps"),
    }];
    if let (Some(p50), Some(p99)) = (report.frame_ms.p50, report.frame_ms.p99) {
        parts.push(format!("a frame every {p50:.2} ms (p50), {p99:.2} ms (p99)"));
    }
    parts.push(drops(&report.dropped));
    if report.failed > 0 {
        parts.push(format!("{} failed", report.failed));
    }
    parts.push(sides(report));
    let Placement { device_losses, moved_frames, .. } = report.placement;
    if device_losses > 0 {
        let lost = format!("the device was lost {}", times(device_losses));
        parts.push(format!("{lost}, and {} computed on the cpu instead", counted(moved_frames as usize, "frame")));
    }
    parts.join("; ")
}

/// How many handlers ran on each side, with the device.
fn sides(report: &Report) -> String {
    let on = |space: Space| report.handlers.iter().filter(|handler| handler.space == space).count();
    let Report { device, backend, .. } = report;
    match (on(Space::Gpu), on(Space::Cpu)) {
        (0, cpu) => format!("no handler on the gpu, {cpu} on the cpu"),
        (gpu, 0) => format!("{} on the gpu ({device}, {backend}), none on the cpu", counted(gpu, "handler")),
        (gpu, cpu) => format!("{} on the gpu ({device}, {backend}), {cpu} on the cpu", counted(gpu, "handler")),
    }
}

/// The slowest units and their shares, in one line; no line if no time is known.
pub(super) fn slowest(units: &[UnitTime]) -> Vec<String> {
    const MOST: usize = 3;
    let one = |unit: &UnitTime| {
        format!("{} {} ({} a frame on the {})", unit.name, percent(unit.share), short_time(unit.mean_us), unit.space)
    };
    let shown: Vec<String> = units.iter().take(MOST).map(one).collect();
    if shown.is_empty() { Vec::new() } else { vec![format!("slowest: {}", shown.join(", "))] }
}

/// The measured latency next to the latency need. If the need was missed, the line names the slowest handler.
pub(super) fn latency_met(report: &Report) -> Option<String> {
    let need = report.latency_need?;
    let LatencyNeed { asked_ms, predicted_ms, p50_ms } = need;
    let measured = format!("latency: {:.2} ms (p50), predicted {predicted_ms:.2} ms", p50_ms?);
    if !need.is_missed() {
        return Some(format!("{measured}, within the {asked_ms} ms of --latency"));
    }
    let blamed = report.slowest_unit().map(|unit| {
        format!("; {} takes most of the time, {} a frame on the {}", unit.name, short_time(unit.mean_us), unit.space)
    });
    Some(format!("{measured}, above the {asked_ms} ms of --latency{}", blamed.unwrap_or_default()))
}

/// The times of all units as a table.
pub(super) fn time_table(units: &[UnitTime]) -> Vec<String> {
    let row = |unit: &UnitTime| {
        let UnitTime { name, space, calls, mean_us, share, .. } = unit;
        format!("{:>6}  {:>10}  {calls:>8}  {space:5}  {name}", percent(*share), short_time(*mean_us))
    };
    let head = "  time   per frame    frames  space  handlers".to_owned();
    if units.is_empty() { Vec::new() } else { [head].into_iter().chain(units.iter().map(row)).collect() }
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 { "<1 %".to_owned() } else { format!("{:.0} %", share * 100.0) }
}

/// Microseconds as milliseconds, or as microseconds below 0.1 ms.
fn short_time(us: f64) -> String {
    match us {
        ..9.95 => format!("{us:.1} µs"),
        9.95..99.5 => format!("{us:.0} µs"),
        _ => format!("{:.2} ms", us / 1e3),
    }
}

/// The number of lost frames, and the number of frames that were left over when their consumer ended.
fn drops(dropped: &Dropped) -> String {
    let lost = Dropped { late: 0, ..*dropped };
    let mut text = match lost.sum() {
        0 => "none dropped".to_owned(),
        sum => format!("{sum} dropped ({})", reasons(&lost)),
    };
    if dropped.late > 0 {
        let left = format!("; {} left over when the consumer ended", counted(dropped.late as usize, "frame"));
        text.push_str(&left);
    }
    text
}

/// Drop counts by reason.
pub(crate) fn reasons(dropped: &Dropped) -> String {
    let reasons = [
        ("link full", dropped.link_full),
        ("left over", dropped.late),
        ("after an error", dropped.error),
        ("device lost", dropped.device_lost),
        ("stopped", dropped.stopped),
    ];
    let some = reasons.iter().filter(|(_, count)| *count > 0);
    some.map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shown_as_peak_and_planned_with_waits_and_leaks() {
        let leak = Leak { space: "cpu", owner: "pattern0".into(), last: "hoard".into(), bytes: 1024, since_frame: 7 };
        let memory = MemoryUse {
            gpu_peak_bytes: 12_000_000,
            gpu_planned_bytes: 16_000_000,
            cpu_peak_bytes: 500,
            cpu_planned_bytes: 500,
            waits: 3,
            leaks: vec![leak; 10],
            ..MemoryUse::default()
        };
        assert_eq!(
            memory_used(&memory),
            "memory: peak 12.0 MB on the gpu (planned 16.0 MB); peak 500 B on the cpu (planned 500 B); frames waited for \
             memory 3 times"
        );
        assert_eq!(memory_used(&MemoryUse::default()), "memory: none for frames");
        let lines = leaks(&memory);
        assert_eq!(lines[0], "hoard still holds 1024 bytes of cpu memory that pattern0 made for frame 7");
        assert_eq!((lines.len(), lines[8].as_str()), (9, "and 2 more that were not returned"));
    }

    #[test]
    fn frames_that_an_input_had_left_over_are_not_called_dropped() {
        let left = Dropped { late: 4, ..Dropped::default() };
        assert_eq!(drops(&Dropped::default()), "none dropped");
        assert_eq!(drops(&left), "none dropped; 4 frames left over when the consumer ended");
        assert_eq!(
            drops(&Dropped { link_full: 2, late: 1, ..Dropped::default() }),
            "2 dropped (2 link full); 1 frame left over when the consumer ended"
        );
    }
}
