//! Planning errors: the conflicting ports or the handler, the reason, and the edit that helps.
//!
//! Under `--strict` the conflict is a shortest path between a handler confined to the CPU and a handler confined to the
//! GPU, so every port on the path is part of the conflict. If there is a plan, `advise` writes its warnings.
//!
//! Invariant: every error names the handlers or ports that cause the error, gives the numbers, and ends with a remedy.

use std::collections::VecDeque;
use std::fmt;

use crate::catalog::{TransferDirection, Value};
use crate::words::{Caps, Content, Dimension, Media, Space, SpaceSet};

use super::allow::Allowed;
use super::negotiate::accepts;
use super::net::Net;

/// The claim of one port in a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub port: String,
    /// `offers` or `accepts`.
    pub verb: &'static str,
    pub caps: String,
}

impl Claim {
    pub(super) fn offers(net: &Net<'_>, node: usize, output: usize, content: &Content) -> Claim {
        let entry = net.nodes[node].entry;
        Claim {
            port: format!("{}.{}", net.nodes[node].name, entry.outputs[output].name),
            verb: "offers",
            caps: Caps::one(net.offered(node), Media::exactly(content)).to_string(),
        }
    }
}

/// Ports that cannot all be satisfied. If any one of the ports is removed, the others can be satisfied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The claims, in the order of the links between the ports.
    pub claims: Vec<Claim>,
    /// The dimensions in which the ports are incompatible.
    pub missed: Vec<Dimension>,
    /// The edit that resolves the conflict.
    pub fix: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missed: Vec<_> = self.missed.iter().map(ToString::to_string).collect();
        writeln!(f, "these ports do not agree on {}:", missed.join(" and "))?;
        let width = self.claims.iter().map(|c| c.port.len()).max().unwrap_or(0);
        for claim in &self.claims {
            writeln!(f, "  {:width$}  {} {}", claim.port, claim.verb, claim.caps)?;
        }
        write!(f, "help: {}", self.fix)
    }
}

/// A handler that cannot run on the device, although `--require-gpu` demands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffDevice {
    pub handler: String,
    pub because: String,
    /// The edit that lets the handler run on the device.
    pub fix: String,
}

fn off_device_words(handlers: &[OffDevice], between: usize) -> String {
    let count = match (handlers.len(), between) {
        (1, 1) => "the only handler between sources and sinks".to_owned(),
        (count, all) => format!("{count} of the {all} handlers between sources and sinks"),
    };
    let lines: Vec<String> = handlers.iter().map(|off| format!("  {}: {}", off.handler, off.because)).collect();
    let mut fixes: Vec<&str> = Vec::new();
    for off in handlers {
        if !fixes.contains(&off.fix.as_str()) {
            fixes.push(&off.fix);
        }
    }
    let (lines, fixes) = (lines.join("\n"), fixes.join(", "));
    format!("--require-gpu: {count} cannot be on the device\n{lines}\nhelp: {fixes}; or drop --require-gpu")
}

/// The reason a graph has no plan.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    #[error("{0}")]
    Conflict(Conflict),
    /// The graph needs a transfer that `--strict` forbids.
    #[error("--strict allows no automatic transfer, but {0}")]
    Strict(Conflict),
    /// The content of a handler's output cannot be determined.
    #[error("{handler}: {problem}\nhelp: {fix}")]
    Shape { handler: String, problem: String, fix: String },
    /// A handler has no space to run in.
    #[error("{handler} offers {offers}, but {because}\nhelp: {fix}")]
    Nowhere { handler: String, offers: SpaceSet, because: String, fix: String },
    /// `--gpu` was given and there is no device.
    #[error("--gpu needs a device, but profile {profile} has none\nhelp: drop --gpu, or give a profile with a device")]
    NoDevice { profile: String },
    /// `--require-gpu` was given and these handlers cannot run on the device.
    #[error("{}", off_device_words(handlers, *between))]
    OffDevice {
        handlers: Vec<OffDevice>,
        /// The number of all handlers between sources and sinks.
        between: usize,
    },
    /// `--require-gpu` was given and the graph has only sources and sinks.
    #[error(
        "--require-gpu: the pipeline has no handler between its sources and sinks, so there is nothing to require\n\
         help: drop --require-gpu, or add a handler; --gpu also puts sources and sinks on the device"
    )]
    NothingBetween,
    /// A pin names a handler that does not exist.
    #[error(
        "--place {name}: no handler has this name\nhelp: {}",
        nearest.as_ref().map_or_else(|| "use a name that the plan shows".to_owned(), |n| format!("did you mean `{n}`?"))
    )]
    UnknownPin { name: String, nearest: Option<String> },
    /// A link on a diamond is too shallow.
    #[error(
        "{link} has depth {given}, but the other branch of the diamond delays {held} frames, so the link needs \
         depth {needed}: with less, the two branches would wait for each other\n\
         help: drop depth={given}, or delay fewer frames"
    )]
    Depth { link: String, given: u32, needed: u64, held: u64 },
    /// The plan needs more memory than the profile or the user's budget allows.
    #[error(
        "the plan needs {needed} bytes of {space} memory, but {limited_by} allows {available}; the largest part \
         ({most} bytes) is for {at}\n\
         help: use smaller frames, shallower links, shorter delays or a smaller --batch, or --place some handlers in \
         the other space"
    )]
    Memory { space: Space, needed: u64, available: u64, limited_by: String, most: u64, at: String },
    /// The cost of a handler or transfer is above the limit.
    #[error(
        "{handler} would take {ns} ns per frame on the {space}, more than the limit of {limit} ns\n\
         help: use smaller frames, or correct the profile's rates"
    )]
    Cost { handler: String, space: Space, ns: u64, limit: u64 },
}

crate::debug_as_display!(NoPlan);

impl NoPlan {
    /// The handler that the error is about; `None` if the error is about several handlers or none.
    pub fn handler(&self) -> Option<&str> {
        match self {
            NoPlan::Shape { handler, .. } | NoPlan::Nowhere { handler, .. } | NoPlan::Cost { handler, .. } => {
                Some(handler)
            }
            NoPlan::OffDevice { handlers, .. } => match &handlers[..] {
                [one] => Some(&one.handler),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A shortest path between a handler confined to the CPU and a handler confined to the GPU, over links that carry
/// frames and are not explicit transfers. Every handler between these two may run in either space, so each port on the
/// path belongs to the conflict.
pub(super) fn strict_conflict(net: &Net<'_>, allowed: &[Allowed]) -> Option<Conflict> {
    let mut neighbours: Vec<Vec<(usize, usize)>> = vec![Vec::new(); end_count(net)];
    for (at, wire) in net.wires.iter().enumerate() {
        // A handler that writes data on the device has a download of its own, which `--strict` allows.
        if wire.content.bytes() > 0 && !wire.content.is_data() {
            let (a, b) = (out_end(net, wire.from), in_end(wire.to));
            neighbours[a].push((b, at));
            neighbours[b].push((a, at));
        }
    }
    let spaces = |end: usize| end_spaces(net, allowed, end);
    let mut came: Vec<Option<(usize, usize)>> = vec![None; neighbours.len()];
    let mut seen = vec![false; neighbours.len()];
    let mut queue: VecDeque<usize> =
        (0..neighbours.len()).filter(|e| !neighbours[*e].is_empty() && spaces(*e) == SpaceSet::CPU).collect();
    for &end in &queue {
        seen[end] = true;
    }
    while let Some(end) = queue.pop_front() {
        if spaces(end) == SpaceSet::GPU {
            let mut wires = Vec::new();
            let mut at = end;
            while let Some((before, wire)) = came[at] {
                wires.push(wire);
                at = before;
            }
            wires.reverse();
            return Some(conflict_along(net, allowed, &wires, at, end));
        }
        for &(next, wire) in &neighbours[end] {
            if !seen[next] {
                seen[next] = true;
                came[next] = Some((end, wire));
                queue.push_back(next);
            }
        }
    }
    None
}

/// The number of ends: two per node. Only an explicit transfer uses its second end, which stands for its output,
/// because the input and the output of an explicit transfer are in different spaces.
fn end_count(net: &Net<'_>) -> usize {
    2 * net.nodes.len()
}

fn in_end(node: usize) -> usize {
    2 * node
}

fn out_end(net: &Net<'_>, node: usize) -> usize {
    2 * node + usize::from(net.nodes[node].entry.transfer.is_some())
}

fn end_spaces(net: &Net<'_>, allowed: &[Allowed], end: usize) -> SpaceSet {
    let node = end / 2;
    match net.nodes[node].entry.transfer {
        Some(way) if end.is_multiple_of(2) => SpaceSet::only(way.from()),
        Some(way) => SpaceSet::only(way.to()),
        None => allowed[node].spaces,
    }
}

/// The wire from the nearest earlier handler that the user wrote; inserted converters cannot be named in a pipeline.
pub(super) fn written_before(net: &Net<'_>, mut wire: usize) -> usize {
    while let (true, Some(before)) = (net.nodes[net.wires[wire].from].inserted, net.lead_wire(net.wires[wire].from)) {
        wire = before;
    }
    wire
}

/// The wire into the nearest later handler that the user wrote.
pub(super) fn written_after(net: &Net<'_>, mut wire: usize) -> usize {
    while let (true, Some(after)) =
        (net.nodes[net.wires[wire].to].inserted, net.nodes[net.wires[wire].to].fans.iter().flatten().next())
    {
        wire = *after;
    }
    wire
}

fn conflict_along(net: &Net<'_>, allowed: &[Allowed], wires: &[usize], cpu: usize, gpu: usize) -> Conflict {
    let mut claims: Vec<Claim> = Vec::new();
    for &at in wires {
        let wire = &net.wires[at];
        let from = Caps::one(end_spaces(net, allowed, out_end(net, wire.from)), Media::exactly(&wire.content));
        let media = net.nodes[wire.to].entry.inputs[wire.input].media_under(&net.nodes[wire.to].settings);
        let to = accepts(media, end_spaces(net, allowed, in_end(wire.to))).of_type(&wire.content);
        claims.push(Claim { port: net.port_name(net.output_at(at)), verb: "offers", caps: from.to_string() });
        claims.push(Claim { port: net.port_name(net.input_at(at)), verb: "accepts", caps: to.to_string() });
    }
    // The edit applies to the link at the GPU end, so that everything before that link can stay on the CPU.
    let last = &net.wires[*wires.last().expect("a handler cannot be confined to both spaces")];
    let into_gpu = in_end(last.to) == gpu;
    let transfer = if into_gpu { "upload" } else { "download" };
    let causes: Vec<String> = [cpu, gpu]
        .iter()
        .filter_map(|end| {
            let why = allowed[end / 2].why_not(end_spaces(net, allowed, *end))?;
            Some(format!("{}: {why}", net.nodes[end / 2].name))
        })
        .collect();
    let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join("; ")) };
    let at = *wires.last().expect("checked above");
    let to = net.port_name(net.input_at(written_after(net, at)));
    let fix = match on_gpu_before_download(net, allowed, at) {
        Some((before, convert)) => {
            let from = net.port_name(net.output_at(before));
            format!(
                "convert on the gpu and then transfer, `{from} ! {convert} ! download ! {to}`, or drop --strict{causes}"
            )
        }
        None => {
            let from = net.port_name(net.output_at(written_before(net, at)));
            format!("write the transfer yourself, `{from} ! {transfer} ! {to}`, or drop --strict{causes}")
        }
    };
    Conflict { claims, missed: vec![Dimension::Space], fix }
}

/// An inserted converter that must run on the GPU cannot come after a download, so the user must write the converter
/// before the download. Returns the wire from the last handler that the user wrote before the converter and the
/// download, and the converter as written in a pipeline.
fn on_gpu_before_download(net: &Net<'_>, allowed: &[Allowed], at: usize) -> Option<(usize, String)> {
    let is_converter = |node: usize| net.nodes[node].inserted && allowed[node].spaces == SpaceSet::GPU;
    let to_cpu = |node: usize| {
        net.nodes[node].fans.iter().flatten().all(|wire| allowed[net.wires[*wire].to].spaces == SpaceSet::CPU)
    };
    let wire = &net.wires[at];
    let (converter, into) = if is_converter(wire.from) {
        (wire.from, written_before(net, at))
    } else if is_converter(wire.to)
        && to_cpu(wire.to)
        && net.nodes[wire.from].entry.transfer == Some(TransferDirection::Down)
    {
        (wire.to, written_before(net, net.lead_wire(wire.from)?))
    } else {
        return None;
    };
    let entry = net.nodes[converter].entry;
    let Some(Value::Format(format)) = net.nodes[converter].settings.get("format") else { return None };
    let key = if entry.bare == Some("format") { "" } else { "format=" };
    Some((into, format!("{} {key}{format}", entry.name)))
}
