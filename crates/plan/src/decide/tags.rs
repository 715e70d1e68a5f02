//! Step 2: propagates the tags of a source's header (interlacing, pixel aspect, comments) along the wires.
//!
//! A handler passes on the tags of its lead input. Comments and the chroma word are always kept. An entry's
//! `keeps_lines` decides whether fields survive. The pixel aspect changes with the size, so that the image keeps its
//! displayed width and height. Tags reach sources and sinks through `Setup`; tags change neither frames nor costs.
//!
//! Invariant: a lost tag is noted once per handler, and only if a sink would have written the tag into a header.

use std::sync::Arc;

use crate::catalog::SizeRule;
use crate::graph::Graph;
use crate::words::{Content, Format, FrameDesc, Interlacing, PixelAspect, StreamTags};

use super::net::{Net, NetNode};

/// The tags of every node's outputs, and notes about lost tags.
pub(super) struct Tagged {
    of_node: Vec<Option<Arc<StreamTags>>>,
    pub notes: Vec<String>,
}

impl Tagged {
    /// Tags of the frames on a wire.
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
                coming.map(|tags| kept_tags(node, &tags, &wire.content, written[at], &mut tagged.notes))
            }
        };
        tagged.of_node.push(made);
    }
    tagged
}

/// For each node, true if a path of lead inputs leads from the node to a sink that writes tags.
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

/// The tags of the lead input that a handler keeps. Adds a note for a lost tag that would have been written.
fn kept_tags(
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
                "{} does not keep fields separate: interlacing is dropped, and the stream is treated as \
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
            "{} converts {} to {} as progressive, although the stream is interlaced: chroma of the two fields mixes \
             at moving edges",
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

/// True if a conversion makes or reads chroma samples that lines of both fields share. The conversion treats these
/// lines as lines of one field.
fn mixes_fields_chroma(from: &FrameDesc, made: &FrameDesc) -> bool {
    let halves = |format| matches!(format, Format::I420 | Format::Nv12);
    from.format != made.format && (halves(from.format) || halves(made.format))
}

/// The pixel aspect after a handler; `None` if the aspect is not known there.
fn kept_aspect(node: &NetNode<'_>, aspect: PixelAspect, from: &FrameDesc, made: &FrameDesc) -> Option<PixelAspect> {
    let rule = node.entry.outputs.first()?.size;
    if aspect == PixelAspect::UNKNOWN || aspect == PixelAspect::SQUARE && node.inputs.len() > 1 {
        return Some(aspect);
    }
    // Several images of different sizes are combined: the pixel aspect of the lead does not apply to the other images.
    if node.inputs.len() > 1 && !node.entry.equal_sizes {
        return None;
    }
    match rule {
        SizeRule::Turned(key) if matches!(node.settings.word(key), Some("90" | "270")) => {
            Some(PixelAspect { num: aspect.den, den: aspect.num })
        }
        SizeRule::Cut(..) => Some(aspect),
        // The whole image is resampled, and its displayed width and height stay the same.
        SizeRule::SettingOrScaled(..) if from.size != made.size => {
            aspect.times([from.size.width, made.size.height], [from.size.height, made.size.width])
        }
        _ => (from.size == made.size).then_some(aspect),
    }
}
