//! Turns snapshots of a run into the rows of the view.
//!
//! Rates and shares are computed from two snapshots that are about a second apart. An unknown figure is shown as a
//! dash, never as a zero. While the view is paused, no figure changes. `view.rs` does the layout.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use vramp::plan::{Plan, Policy, Space, bytes_in_words};
use vramp::runtime::observe::{MemorySnapshot, Snapshot, TimeStats, rate_in_words};

use crate::run::{counted, reasons, size_of_plan};

/// Minimum time between the two snapshots that rates are computed from, except at the start of a run.
const WINDOW: Duration = Duration::from_millis(950);

/// Facts of the plan that the rows show.
pub(super) struct PlanFacts {
    plan: String,
    spaces: BTreeMap<String, Space>,
    links: BTreeMap<(String, String), (Policy, u32)>,
}

impl PlanFacts {
    pub(super) fn of(plan: &Plan) -> PlanFacts {
        let link = |link: &vramp::plan::PlannedLink| {
            ((plan.port_name(link.from), plan.port_name(link.to)), (link.policy, link.depth))
        };
        PlanFacts {
            plan: size_of_plan(plan),
            spaces: plan.handlers.iter().map(|handler| (handler.name.clone(), handler.space)).collect(),
            links: plan.links.iter().map(link).collect(),
        }
    }
}

#[derive(Default)]
pub(super) struct RunHistory {
    snapshots: VecDeque<Snapshot>,
    /// The pair of snapshots that the shown figures are computed from.
    shown: Option<(Snapshot, Snapshot)>,
}

/// Everything that the view shows, as text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ViewText {
    /// The lines of the head: time and plan, frames, latency, device, memory.
    pub(super) head: Vec<String>,
    /// The frame pool of each side in use: free bytes, and requests per second.
    pub(super) pools: Vec<String>,
    /// Columns: name, space, kernel, frames, median time, share of time at work.
    pub(super) handlers: Vec<[String; 6]>,
    /// Columns: from, to, policy and depth, waiting, sent, taken, dropped.
    pub(super) links: Vec<[String; 7]>,
    /// Latest first.
    pub(super) events: Vec<String>,
}

impl RunHistory {
    /// Stores a snapshot, and shows it if `show` is true.
    pub(super) fn look(&mut self, snapshot: Snapshot, show: bool) {
        self.snapshots.push_back(snapshot.clone());
        let begins = |second: &Snapshot| snapshot.elapsed.saturating_sub(second.elapsed) >= WINDOW;
        while self.snapshots.get(1).is_some_and(begins) {
            self.snapshots.pop_front();
        }
        if show && let Some(before) = self.snapshots.front() {
            self.shown = Some((before.clone(), snapshot));
        }
    }

    pub(super) fn sheet(&self, setting: &PlanFacts, events: Vec<(Duration, String)>, stopping: bool) -> ViewText {
        let events = events.into_iter().rev().map(|(at, words)| format!("{} {words}", clock(at))).collect();
        let Some((before, now)) = &self.shown else { return ViewText { events, ..ViewText::default() } };
        let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
        ViewText {
            head: head(setting, before, now, stopping),
            pools: pools(before, now),
            handlers: (0..now.nodes.len()).flat_map(|at| handler_rows(setting, before, now, at, seconds)).collect(),
            links: link_rows(setting, now),
            events,
        }
    }
}

fn head(setting: &PlanFacts, before: &Snapshot, now: &Snapshot, stopping: bool) -> Vec<String> {
    let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    let sinks = now.nodes.iter().zip(&before.nodes).filter(|(node, _)| node.sink);
    let frames = sinks.map(|(now, before)| now.counts.emitted.saturating_sub(before.counts.emitted)).max().unwrap_or(0);
    let fps = if seconds > 0.0 { format!("{:.1} fps", frames as f64 / seconds) } else { "- fps".to_owned() };
    let dropped = match now.dropped.sum() {
        0 => "none dropped".to_owned(),
        sum => format!("{sum} dropped ({})", reasons(&now.dropped)),
    };
    let failed = if now.failed > 0 { format!("  {} failed", now.failed) } else { String::new() };
    let state = if stopping { "  stopping" } else { "" };
    let both = |times: &TimeStats| match (times.p50, times.p99) {
        (Some(p50), Some(p99)) => format!("{p50:.2} ms (p50) {p99:.2} ms (p99)"),
        _ => "-".to_owned(),
    };
    let mut lines = vec![
        format!("{}{state}  {}", clock(now.elapsed), setting.plan),
        format!("{fps}  {} in  {} out  {dropped}{failed}", now.frames_in, now.frames_out),
        format!("latency {}  a frame every {}", both(&now.latency_ms), both(&now.frame_ms)),
    ];
    let losses = match now.recoveries.len() {
        0 => String::new(),
        count => format!("  lost {}", if count == 1 { "once".to_owned() } else { format!("{count} times") }),
    };
    lines.push(match &now.device {
        Some(device) => {
            let worked = |snapshot: &Snapshot| snapshot.device.as_ref()?.worked.map(|worked| worked.as_secs_f64());
            let busy = worked(now).zip(worked(before)).filter(|_| seconds > 0.0);
            let busy = busy.map_or("-".to_owned(), |(now, before)| percent((now - before) / seconds));
            format!("device {} ({})  busy {busy}{losses}", device.name, device.backend)
        }
        None => format!("device none, everything runs on the CPU{losses}"),
    });
    let side = |space: Space, memory: &MemorySnapshot| {
        let MemorySnapshot { bytes, peak_bytes, lent, planned_bytes, .. } = memory;
        let [bytes, peak, planned] = [bytes, peak_bytes, planned_bytes].map(|bytes| bytes_in_words(*bytes));
        format!("{space} {bytes}, peak {peak} (planned {planned}), {lent} lent")
    };
    let sides = now.device.iter().map(|device| side(Space::Gpu, &device.memory));
    let mut memory: Vec<String> = sides.chain([side(Space::Cpu, &now.host)]).collect();
    if now.waits > 0 {
        memory.push(format!("waited {}", counted(now.waits as usize, "time")));
    }
    lines.push(format!("memory {}", memory.join("; ")));
    lines
}

/// The frame pools that have memory or have had a request.
fn pools(before: &Snapshot, now: &Snapshot) -> Vec<String> {
    let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    let pool = |space: Space, before: Option<&MemorySnapshot>, now: &MemorySnapshot| {
        let rate = |count: fn(&MemorySnapshot) -> u64| {
            let grown = count(now).saturating_sub(count(before.filter(|_| seconds > 0.0)?));
            Some(rate_in_words(grown as f64 / seconds))
        };
        let [hits, misses] =
            [rate(|pool| pool.hits), rate(|pool| pool.misses)].map(|rate| rate.unwrap_or("-".to_owned()));
        let words = || format!("{space} {} free, {hits} hits/s, {misses} misses/s", bytes_in_words(now.pooled_bytes));
        (now.bytes + now.hits + now.misses > 0).then(words)
    };
    let device = |snapshot: &Snapshot| snapshot.device.as_ref().map(|device| device.memory);
    let gpu = device(now).and_then(|now| pool(Space::Gpu, device(before).as_ref(), &now));
    gpu.into_iter().chain(pool(Space::Cpu, Some(&before.host), &now.host)).collect()
}

/// One row for each handler of a node, or one row for a transfer. The first row shows the time of the whole node.
fn handler_rows(setting: &PlanFacts, before: &Snapshot, now: &Snapshot, at: usize, seconds: f64) -> Vec<[String; 6]> {
    let node = &now.nodes[at];
    let calls = node.counts.taken.saturating_sub(before.nodes.get(at).map_or(0, |node| node.counts.taken));
    let at_work = node.mean_us.filter(|_| seconds > 0.0).map(|mean| mean * calls as f64 / 1e6 / seconds);
    let time = node.p50_us.map_or("-".to_owned(), in_ms);
    let at_work = at_work.map_or("-".to_owned(), percent);
    let frames = node.counts.taken.to_string();
    if node.names.is_empty() {
        return vec![[transfer(now, at), "gpu".to_owned(), "-".to_owned(), frames, time, at_work]];
    }
    let kernel = node.group.map_or("-".to_owned(), |id| id.to_string());
    let row = |(place, name): (usize, &String)| {
        // A handler inside a fused kernel has no time of its own.
        let [time, at_work] =
            if place == 0 { [&time, &at_work].map(String::clone) } else { ["\"", "\""].map(str::to_owned) };
        [name.clone(), side(setting, name, now).to_owned(), kernel.clone(), frames.clone(), time, at_work]
    };
    node.names.iter().enumerate().map(row).collect()
}

/// Where a handler runs now. While there is no device, everything runs on the CPU, even if the plan says otherwise.
fn side(setting: &PlanFacts, name: &str, now: &Snapshot) -> &'static str {
    match setting.spaces.get(name) {
        Some(Space::Gpu) if now.device.is_some() => "gpu",
        _ => "cpu",
    }
}

/// The name of a transfer, made of the names of its consumers.
fn transfer(now: &Snapshot, at: usize) -> String {
    let to: Vec<&str> =
        now.links.iter().filter(|link| link.transfer == Some(at)).map(|link| handler_of(&link.carried.to)).collect();
    format!("(transfer to {})", to.join(", "))
}

fn link_rows(setting: &PlanFacts, now: &Snapshot) -> Vec<[String; 7]> {
    let row = |link: &vramp::runtime::observe::LinkSnapshot| {
        let carried = &link.carried;
        let held = match setting.links.get(&(carried.from.clone(), carried.to.clone())) {
            Some((_, 0)) => "inline".to_owned(),
            Some((policy, depth)) => format!("{policy} {depth}"),
            None => "-".to_owned(),
        };
        let why = reasons(&link.dropped);
        let dropped = match carried.dropped {
            0 => "0".to_owned(),
            sum if why.is_empty() => sum.to_string(),
            sum => format!("{sum} ({why})"),
        };
        let port = |name: &str| name.strip_suffix(".video").unwrap_or(name).to_owned();
        let [queued, sent, taken] = [carried.queued, carried.sent, carried.taken].map(|count| count.to_string());
        [port(&carried.from), port(&carried.to), held, queued, sent, taken, dropped]
    };
    now.links.iter().map(row).collect()
}

fn handler_of(port: &str) -> &str {
    port.split_once('.').map_or(port, |(handler, _)| handler)
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 3600 {
        return format!("{}:{:02}", seconds / 60, seconds % 60);
    }
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share.clamp(0.0, 1.0))
}

fn in_ms(us: f64) -> String {
    if us < 100.0 { format!("{us:.1} µs") } else { format!("{:.2} ms", us / 1e3) }
}

#[cfg(test)]
pub(super) mod tests {
    use vramp::Pipeline;
    use vramp::plan::RunOptions;
    use vramp::runtime::observe::{Dropped, LinkSnapshot, LinkUse, NodeCounts, NodeSnapshot};

    use super::*;

    fn node(names: &[&str], group: Option<usize>, taken: u64, mean_us: Option<f64>) -> NodeSnapshot {
        NodeSnapshot {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            group,
            lane: 0,
            sink: names == ["null0"],
            counts: NodeCounts { taken, emitted: taken, ..NodeCounts::default() },
            p50_us: mean_us,
            mean_us,
        }
    }

    fn link(from: &str, to: &str, sent: u64, full: u64) -> LinkSnapshot {
        let carried = LinkUse {
            from: format!("{from}.video"),
            to: format!("{to}.video"),
            sent,
            taken: sent - full - 1,
            dropped: full,
            queued: 1,
            repeats: 0,
        };
        LinkSnapshot { carried, dropped: Dropped { link_full: full, ..Dropped::default() }, transfer: None }
    }

    /// The snapshot of a run after this time and this many frames.
    pub(in super::super) fn snapshot(ms: u64, frames: u64) -> Snapshot {
        Snapshot {
            elapsed: Duration::from_millis(ms),
            frames_in: frames + 2,
            frames_out: frames,
            filtered: 0,
            failed: 0,
            dropped: Dropped { link_full: frames / 10, ..Dropped::default() },
            frame_ms: TimeStats { p50: Some(10.0), p99: Some(12.5), max: Some(20.0) },
            latency_ms: TimeStats { p50: Some(3.0), p99: Some(4.25), max: Some(5.0) },
            nodes: vec![
                node(&["pattern0", "invert0"], Some(0), frames + 2, Some(5000.0)),
                node(&["blur0"], Some(1), frames + 1, Some(42.0)),
                node(&["null0"], None, frames, None),
            ],
            links: vec![link("pattern0", "blur0", frames + 2, 0), link("blur0", "null0", frames + 2, frames / 10)],
            host: MemorySnapshot {
                bytes: 8_000_000,
                peak_bytes: 9_000_000,
                lent_bytes: 4_000_000,
                lent: 3,
                pooled_bytes: 4_000_000,
                hits: 2 * frames,
                misses: 7,
                planned_bytes: 10_000_000,
                budget_bytes: 1 << 30,
            },
            device: None,
            waits: 0,
            recoveries: Vec::new(),
        }
    }

    pub(in super::super) fn setting() -> PlanFacts {
        let profile = vramp::plan::Profile::shipped("cpu").unwrap();
        let builder = Pipeline::parse("pattern ! invert ! blur !{queue depth=4} null");
        let options = RunOptions::new().only(Space::Cpu);
        PlanFacts::of(&builder.options(options).profile(profile).plan().unwrap())
    }

    fn sheet(snapshots: &[(u64, u64)]) -> ViewText {
        let mut figures = RunHistory::default();
        for (ms, frames) in snapshots {
            figures.look(snapshot(*ms, *frames), true);
        }
        figures.sheet(&setting(), vec![(Duration::from_secs(1), "glow: reloaded".to_owned())], false)
    }

    #[test]
    fn rates_and_shares_are_of_the_last_second() {
        let sheet = sheet(&[(0, 0), (500, 5), (1000, 10), (1500, 60), (2000, 110)]);
        assert_eq!(sheet.head[1], "100.0 fps  112 in  110 out  11 dropped (11 link full)");
        assert!(sheet.head[0].starts_with("0:02  4 handlers on the cpu"), "{:?}", sheet.head);
        assert_eq!(sheet.head[2], "latency 3.00 ms (p50) 4.25 ms (p99)  a frame every 10.00 ms (p50) 12.50 ms (p99)");
        assert_eq!(sheet.head[3], "device none, everything runs on the CPU");
        assert_eq!(sheet.head[4], "memory cpu 8.0 MB, peak 9.0 MB (planned 10.0 MB), 3 lent");
        assert_eq!(sheet.pools, ["cpu 4.0 MB free, 200 hits/s, 0 misses/s"]);
        assert_eq!(sheet.handlers[0], ["pattern0", "cpu", "0", "112", "5.00 ms", "50 %"]);
        assert_eq!(sheet.handlers[1], ["invert0", "cpu", "0", "112", "\"", "\""]);
        assert_eq!(sheet.handlers[2], ["blur0", "cpu", "1", "111", "42.0 µs", "0 %"]);
        assert_eq!(sheet.handlers[3], ["null0", "cpu", "-", "110", "-", "-"]);
        assert_eq!(sheet.links[1], ["blur0", "null0", "queue 4", "1", "112", "100", "11 (11 link full)"]);
        assert_eq!(sheet.events, ["0:01 glow: reloaded"]);
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let sheet = sheet(&[(0, 0)]);
        assert!(sheet.head[1].starts_with("- fps  2 in  0 out  none dropped"), "{:?}", sheet.head);
        assert_eq!(sheet.handlers[0][5], "-");
        assert_eq!(sheet.pools, ["cpu 4.0 MB free, - hits/s, - misses/s"]);
        assert_eq!(RunHistory::default().sheet(&setting(), Vec::new(), false), ViewText::default());
    }

    #[test]
    fn a_view_that_stands_still_shows_what_it_showed() {
        let mut figures = RunHistory::default();
        figures.look(snapshot(0, 0), true);
        figures.look(snapshot(1000, 10), true);
        let before = figures.sheet(&setting(), Vec::new(), false);
        figures.look(snapshot(2000, 500), false);
        assert_eq!(figures.sheet(&setting(), Vec::new(), false), before);
        figures.look(snapshot(3000, 1000), true);
        assert_eq!(
            figures.sheet(&setting(), Vec::new(), false).head[1],
            "500.0 fps  1002 in  1000 out  100 dropped (100 link full)"
        );
    }

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(
            [0, 59, 60, 3599, 3600, 90_061].map(|s| clock(Duration::from_secs(s))),
            ["0:00", "0:59", "1:00", "59:59", "1:00:00", "25:01:01"]
        );
        assert_eq!([12.34, 99.9, 100.0, 12_345.0].map(in_ms), ["12.3 µs", "99.9 µs", "0.10 ms", "12.35 ms"]);
        assert_eq!([-0.1, 0.005, 0.5, 1.7].map(percent), ["0 %", "0 %", "50 %", "100 %"]);
    }
}
