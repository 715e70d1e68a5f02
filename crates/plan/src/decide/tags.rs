//! Tags along the wires: what a source's header says of a stream, and what is left of it after each handler.
//!
//! Owns which handler cannot keep a tag, and the note about it.
//! Does not change frames or costs: tags reach the sinks that write headers.
//!
//! Invariant: a handler hands on the tags of its lead input. Comments and the chroma word always survive; fields survive
//! if every line stays in its place; the pixel aspect follows the size. A note is written once per handler and tag, and
//! only if a sink would have written the tag.

use std::sync::Arc;

use crate::catalog::SizeRule;
use crate::graph::Graph;
use crate::words::{Content, Format, FrameDesc, Interlacing, PixelAspect, StreamTags};

use super::net::{Net, NetNode};

/// The tags of every node's outputs, and what was lost on the way.
pub(super) struct Tagged {
    of_node: Vec<Option<Arc<StreamTags>>>,
    pub notes: Vec<String>,
}

impl Tagged {
    /// Tags of what comes over a wire.
    pub fn of_wire(&self, net: &Net<'_>, wire: usize) -> Option<Arc<StreamTags>> {
        self.of_node[net.wires[wire].from].clone()
    }
}

pub(super) fn tags(graph: &Graph, net: &Net<'_>) -> Tagged {
    let written = leads_to_header(net);
    let mut tagged = Tagged { of_node: Vec::with_capacity(net.nodes.len()), notes: Vec::new() };
    for (at, node) in net.nodes.iter().enumerate() {
        let made = match net.lead_wire(at) {
            None => {
                let handler = graph.handlers().iter().find(|handler| handler.name == node.name);
                handler.and_then(|handler| handler.probed.tags.clone())
            }
            Some(wire) => {
                let wire = &net.wires[wire];
                let coming = tagged.of_node[wire.from].clone();
                coming.map(|tags| handed_on(node, &tags, &wire.content, written[at], &mut tagged.notes))
            }
        };
        tagged.of_node.push(made);
    }
    tagged
}

/// For each node, whether what it makes reaches a sink that writes tags, by lead inputs all the way.
fn leads_to_header(net: &Net<'_>) -> Vec<bool> {
    let mut written = vec![false; net.nodes.len()];
    for at in (0..net.nodes.len()).rev() {
        let node = &net.nodes[at];
        written[at] |= node.entry.writes_tags;
        if let Some(wire) = net.lead_wire(at).filter(|_| written[at]) {
            written[net.wires[wire].from] = true;
        }
    }
    written
}

/// What a handler hands on of the tags of its lead input. What is lost is noted if it would have been written.
fn handed_on(
    node: &NetNode<'_>,
    tags: &Arc<StreamTags>,
    coming: &Content,
    written: bool,
    notes: &mut Vec<String>,
) -> Arc<StreamTags> {
    let (Some(from), Some(made)) = (coming.frame(), node.outputs.first().and_then(Content::frame)) else {
        return Arc::clone(tags);
    };
    let has_fields = tags.interlacing.is_some_and(Interlacing::has_fields);
    let interlacing = if has_fields && !node.passes_on() && !(node.entry.keeps_lines)(&node.settings, node.kernel) {
        if written {
            notes.push(format!(
                "{} does not keep the lines of a field apart: interlacing is dropped, and it treats the material as \
                 progressive",
                node.name
            ));
        }
        Some(Interlacing::Unknown)
    } else {
        tags.interlacing
    };
    if has_fields && interlacing == tags.interlacing && mixes_fields_chroma(from, made) {
        notes.push(format!(
            "{} converts {} to {} as progressive, although the material is interlaced: chroma of the two fields mixes \
             at edges that move",
            node.name, from.format, made.format
        ));
    }
    let aspect = tags.aspect.map(|aspect| {
        kept_aspect(node, aspect, from, made).unwrap_or_else(|| {
            if written {
                notes.push(format!(
                    "{} makes {} from {}: the pixel aspect {}:{} is dropped",
                    node.name, made.size, from.size, aspect.num, aspect.den
                ));
            }
            PixelAspect::UNKNOWN
        })
    });
    if (interlacing, aspect) == (tags.interlacing, tags.aspect) {
        return Arc::clone(tags);
    }
    Arc::new(StreamTags { interlacing, aspect, ..(**tags).clone() })
}

/// Whether chroma that is shared by lines of two fields is made or read as if they were of one.
fn mixes_fields_chroma(from: &FrameDesc, made: &FrameDesc) -> bool {
    let halves = |format| matches!(format, Format::I420 | Format::Nv12);
    from.format != made.format && (halves(from.format) || halves(made.format))
}

/// The pixel aspect after a handler; none if it has none that could be told.
fn kept_aspect(node: &NetNode<'_>, aspect: PixelAspect, from: &FrameDesc, made: &FrameDesc) -> Option<PixelAspect> {
    let rule = node.entry.outputs.first()?.size;
    if aspect == PixelAspect::UNKNOWN || aspect == PixelAspect::SQUARE && node.inputs.len() > 1 {
        return Some(aspect);
    }
    // Several pictures of any sizes in one: the lead's pixels say nothing of the others'.
    if node.inputs.len() > 1 && !node.entry.equal_sizes {
        return None;
    }
    match rule {
        SizeRule::Turned(key) if matches!(node.settings.word(key), Some("90" | "270")) => {
            Some(PixelAspect { num: aspect.den, den: aspect.num })
        }
        SizeRule::Cut(..) => Some(aspect),
        // The whole picture in other pixels: it is shown as wide and as high as before.
        SizeRule::SettingOrScaled(..) if from.size != made.size => {
            aspect.times([from.size.width, made.size.height], [from.size.height, made.size.width])
        }
        _ => (from.size == made.size).then_some(aspect),
    }
}
