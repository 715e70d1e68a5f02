//! Counts the frames of one output that are alive at the same time because of their consumers. The sizes of frames are
//! not known here.
//!
//! Invariant: parallel branches share the newest frames. Frames picked by `every` are not shared.

use crate::catalog::TransferDirection;
use crate::words::{Policy, Space};

use super::super::lanes::LaneAssignment;
use super::super::layout::UnitLayout;
use super::super::net::Net;

/// Frames of one output that are kept, including the frame being written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retained {
    /// The newest frames, which parallel branches share.
    newest: u64,
    /// Frames picked by `every`, which are not shared.
    picked: u64,
    /// True if only the newest frame of an input is kept, and the input is not the lead.
    pub(super) newest_only: bool,
    /// True if the frames are only in rings of the device lane. Such a ring never fills, because its consumer runs
    /// before its producer.
    pub(super) takes_turns: bool,
}

impl Retained {
    pub(super) fn beside(self, other: Retained) -> Retained {
        Retained {
            newest: self.newest.max(other.newest),
            picked: self.picked + other.picked,
            newest_only: (self.newest_only || self.frames() == 0) && (other.newest_only || other.frames() == 0),
            takes_turns: (self.takes_turns || self.frames() == 0) && (other.takes_turns || other.frames() == 0),
        }
    }

    /// Adds frames that are held outside the pipeline.
    pub(super) fn and_held(self, frames: u64) -> Retained {
        if frames == 0 {
            return self;
        }
        Retained { picked: self.picked + frames, newest_only: false, takes_turns: false, ..self }
    }

    pub(super) fn frames(self) -> u64 {
        self.newest + self.picked
    }
}

/// How many frames are kept because of each wire.
pub(super) struct Waits<'a> {
    net: &'a Net<'a>,
    spaces: &'a [Space],
    layout: &'a UnitLayout,
    lanes: &'a LaneAssignment,
    batch: u64,
    /// True if the minimum is counted: one frame at a time, and no more frames in a link than necessary.
    least: bool,
    /// For each node, true if the node may have to keep its frame because a consumer waits.
    may_wait: Vec<bool>,
    /// For each node that passes frames on, the frames that the node and the nodes after it keep. The first count
    /// applies if the frames come from the same lane, the second count if they come from another lane.
    after: Vec<[Retained; 2]>,
}

/// The default depth of links. With one frame at a time, a depth of one is enough.
const USUAL_DEPTH: u64 = 3;

impl<'a> Waits<'a> {
    pub(super) fn of(
        net: &'a Net<'a>,
        spaces: &'a [Space],
        layout: &'a UnitLayout,
        lanes: &'a LaneAssignment,
        batch: u64,
        least: bool,
    ) -> Waits<'a> {
        let (may_wait, after) = (vec![false; net.nodes.len()], vec![[Retained::default(); 2]; net.nodes.len()]);
        let mut waits = Waits { net, spaces, layout, lanes, batch, least, may_wait, after };
        for at in (0..net.nodes.len()).rev() {
            let node = &net.nodes[at];
            let mut inputs = node.inputs.iter().flatten();
            let joins = node.inputs.len() > 1 && inputs.any(|w| !waits.is_inline(*w) && waits.is_lossless(*w));
            let blocked = |w: &usize| {
                let together = waits.is_inline(*w) || waits.is_within_device(*w);
                if together { waits.may_wait[net.wires[*w].to] } else { waits.is_lossless(*w) }
            };
            waits.may_wait[at] = !least && (joins || node.fans.iter().flatten().any(blocked));
            if node.passes_on() {
                waits.after[at] = [false, true].map(|fed| waits.kept_after(at, fed));
            }
        }
        waits
    }

    /// True if both ends are in one segment.
    pub(super) fn is_inline(&self, wire: usize) -> bool {
        self.lanes.depth[wire] == 0 && self.layout.transfer_of[wire].is_none()
    }

    /// True if both ends are in the device lane, which may run the consumer before the producer.
    fn is_within_device(&self, wire: usize) -> bool {
        let leaves = |at: usize| self.net.space_out(at, self.spaces[at]);
        let (from, to) = (self.net.wires[wire].from, self.net.wires[wire].to);
        let both = self.spaces[from] == Space::Gpu && self.spaces[to] == Space::Gpu;
        both && self.layout.transfer_of[wire].is_none() && leaves(from) == Space::Gpu
    }

    fn is_lossless(&self, wire: usize) -> bool {
        self.net.wires[wire].policy == Policy::Lossless
    }

    fn depth(&self, wire: usize) -> u64 {
        match u64::from(self.lanes.depth[wire]) {
            depth if self.least && depth <= USUAL_DEPTH => depth.min(1),
            depth => depth,
        }
    }

    /// Frames kept because of a wire, in the producer's space.
    pub(super) fn on(&self, wire: usize) -> Retained {
        let on = match self.layout.transfer_of[wire].map(|transfer| &self.layout.transfers[transfer]) {
            None if self.lanes.depth[wire] == 0 => self.inline(wire, false),
            None => self.across(wire),
            // Frames wait on the host. Frames of an upload that is already recorded stay on the host until the
            // recording is submitted.
            Some(transfer) if transfer.direction == TransferDirection::Up => {
                let depth = transfer.wires.iter().map(|w| self.depth(*w)).max().unwrap_or(1).max(1);
                let hand = if self.least { 0 } else { self.batch };
                let lossy = transfer.wires.iter().all(|w| !self.is_lossless(*w));
                Waits::ring(depth, hand, lossy)
            }
            // A download copies the frame, so the frame's device memory is free when the submission finishes.
            Some(_) => return Retained::default(),
        };
        match self.layout.transfer_of[wire] {
            None => self.held_after(wire, on),
            Some(_) => on,
        }
    }

    /// Adds the frames that stay in use after a sink has taken them.
    fn held_after(&self, wire: usize, kept: Retained) -> Retained {
        let to = self.net.wires[wire].to;
        if self.net.nodes[to].fans.is_empty() { kept.and_held(self.held_by(to)) } else { kept }
    }

    /// Frames outside the pipeline, before a source has sent them or after a sink has taken them.
    pub(super) fn held_by(&self, at: usize) -> u64 {
        let node = &self.net.nodes[at];
        if self.least { 0 } else { u64::from(node.entry.holds.under(&node.settings)) }
    }

    /// Frames kept on the device because of a wire after an inserted upload.
    pub(super) fn after_upload(&self, wire: usize, alone: bool) -> Retained {
        let kept = if alone || self.lanes.depth[wire] == 0 { self.inline(wire, false) } else { self.across(wire) };
        self.held_after(wire, kept)
    }

    /// Frames kept on the host because of a wire after a download.
    pub(super) fn after_download(&self, wire: usize) -> Retained {
        self.held_after(wire, self.across(wire))
    }

    /// Frames in a ring between two lanes, plus the `hand` frames that the consumer has taken from the ring. In a
    /// lossless ring the frame being written already has a slot. In any other ring the frame being written replaces the
    /// oldest frame, and the frames that the consumer has taken may be much older.
    fn ring(depth: u64, hand: u64, lossy: bool) -> Retained {
        let (newest, picked) = if lossy { (depth + 1, hand) } else { (depth + hand, 0) };
        Retained { newest, picked, ..Retained::default() }
    }

    fn across(&self, wire: usize) -> Retained {
        let to = self.net.wires[wire].to;
        let depth = self.depth(wire).max(1);
        let lossy = !self.is_lossless(wire);
        if self.is_within_device(wire) && !self.may_wait[to] && !self.net.nodes[to].passes_on() {
            return Retained { newest: depth.min(self.batch), takes_turns: true, ..Retained::default() };
        }
        if self.net.nodes[to].passes_on() {
            let [_, after] = self.after[to];
            let ring = Waits::ring(depth, 0, lossy);
            return Retained { newest: ring.newest + after.newest, picked: after.picked, ..Retained::default() };
        }
        // A frame read on the device is in use until its submission has finished; `memory` counts the frame with its
        // submission.
        let hand = match self.net.nodes[to].entry.transfer {
            _ if self.least => 0,
            Some(TransferDirection::Up) => self.batch,
            _ => u64::from(self.spaces[to] == Space::Cpu),
        };
        Waits::ring(depth, hand, lossy)
    }

    /// Frames kept because of a wire within one segment; `fed` is true if the frames come from another lane.
    fn inline(&self, wire: usize, fed: bool) -> Retained {
        let link = &self.net.wires[wire];
        let (to, node) = (link.to, &self.net.nodes[link.to]);
        let host = self.spaces[to] == Space::Cpu;
        let waits = u64::from(host && (self.may_wait[to] || fed));
        if node.passes_on() {
            let after = self.after[to][usize::from(fed)];
            let waits = if after.frames() > 0 { u64::from(host && self.may_wait[to]) } else { 0 };
            return Retained { newest: after.newest + waits, ..after };
        }
        if link.input != node.lead && node.inputs.len() > 1 {
            // The frame is kept until a newer frame arrives, and that newer frame is computed while the older frame is
            // still kept.
            return Retained { newest: if host { 2 } else { 1 }, picked: 0, newest_only: !host, ..Retained::default() };
        }
        Retained { newest: waits, ..Retained::default() }
    }

    /// For a node that passes frames on: the frames that the node and the nodes after it keep.
    fn kept_after(&self, at: usize, fed: bool) -> Retained {
        let node = &self.net.nodes[at];
        let one = |w: &usize| if self.is_inline(*w) { self.held_after(*w, self.inline(*w, fed)) } else { self.on(*w) };
        let mut kept = node.fans.iter().flatten().map(one).fold(Retained::default(), Retained::beside);
        let delay = u64::from(node.entry.delay.under(&node.settings));
        if node.entry.every.under(&node.settings) > 1 {
            let picked = kept.newest + kept.picked + delay;
            return Retained { newest: u64::from(fed && picked == 0), picked, ..Retained::default() };
        }
        if delay > 0 {
            let host = u64::from(self.spaces[at] == Space::Cpu);
            kept.newest = kept.newest.max(host) + delay;
            (kept.newest_only, kept.takes_turns) = (false, false);
        }
        kept
    }
}
