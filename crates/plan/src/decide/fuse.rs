//! Step 6: goes from producers to consumers, decides which wires may be fused, and computes what fusing each wire
//! saves.
//!
//! The rules depend on the graph and the profile, but not on pins, so that all placements can be compared. The layout
//! then forms fusion groups from the fusible wires whose ends are in the same space.

use crate::catalog::KernelKind;
use crate::words::{Content, Format, Space};

use super::allow::Buffers;
use super::cost::{Costs, Model, PerSpace};
use super::depth::Depths;
use super::net::Net;

/// A run of fused kernels that ends in a given node, in one space.
#[derive(Debug, Clone, Copy, Default)]
struct FusedRun {
    /// True if the run contains a kernel that is not a pixel function. Only pixel functions may follow such a run.
    headed: bool,
    buffers: Buffers,
    /// Compute time of the run per frame.
    compute_ns: u64,
}

/// Fills in what fusing each wire saves; 0 if the wire may not be fused.
pub(super) fn fill_savings(net: &Net<'_>, model: &Model<'_>, costs: &mut Costs, depths: &Depths, most_buffers: u64) {
    let mut runs = vec![[FusedRun::default(); 2]; net.nodes.len()];
    for at in 0..net.nodes.len() {
        let Some(kernel) = net.nodes[at].kernel else { continue };
        let candidate = net.lead_wire(at).filter(|w| may_join(net, depths, *w));
        for space in Space::RANKED {
            let slot = space as usize;
            let alone = FusedRun {
                headed: kernel.kind != KernelKind::Pointwise,
                buffers: Buffers::of(net, at),
                compute_ns: costs.compute[at].of(space),
            };
            runs[at][slot] = alone;
            let Some(wire) = candidate.filter(|w| both_offer(net, *w, space)) else { continue };
            let before = runs[net.wires[wire].from][slot];
            let joined = FusedRun {
                headed: alone.headed || before.headed,
                buffers: before.buffers.joined(alone.buffers),
                compute_ns: before.compute_ns.saturating_add(alone.compute_ns),
            };
            let shape_fits = kernel.kind == KernelKind::Pointwise || !before.headed;
            let binds = space == Space::Cpu || joined.buffers.count() <= most_buffers;
            if !shape_fits || !binds {
                continue;
            }
            // Pixel functions that are fused before a stencil are computed again for every position that the stencil
            // reads.
            let again = if kernel.kind == KernelKind::Pointwise { 0 } else { before.compute_ns };
            let saving = model.saving(net, wire, space, again);
            if saving > 0 {
                let both = &mut costs.saving[wire];
                *both = match space {
                    Space::Gpu => PerSpace { gpu: saving, ..*both },
                    Space::Cpu => PerSpace { cpu: saving, ..*both },
                };
                let from = net.wires[wire].from;
                if net.nodes[from].entry.folds && net.nodes[at].entry.folds {
                    let both = &mut costs.folded[wire];
                    *both = match space {
                        Space::Gpu => PerSpace { gpu: alone.compute_ns, ..*both },
                        Space::Cpu => PerSpace { cpu: alone.compute_ns, ..*both },
                    };
                }
                runs[at][slot] = joined;
            }
        }
    }
}

/// True if the entries of both ends have an implementation for the space.
fn both_offer(net: &Net<'_>, wire: usize, space: Space) -> bool {
    let wire = &net.wires[wire];
    net.nodes[wire.from].entry.offers(space) && net.nodes[wire.to].entry.offers(space)
}

/// True if the two ends of a lead wire can become one kernel.
fn may_join(net: &Net<'_>, depths: &Depths, wire: usize) -> bool {
    let link = &net.wires[wire];
    let (from, to) = (&net.nodes[link.from], &net.nodes[link.to]);
    let (Some(before), Some(after)) = (from.kernel, to.kernel) else { return false };
    let rgba = matches!(&link.content, Content::Video(frame) if frame.format == Format::Rgba8);
    let alone = from.outputs.len() == 1 && from.fans[link.output].len() == 1;
    let kinds = match after.kind {
        KernelKind::Pointwise => !matches!(before.kind, KernelKind::Reduction | KernelKind::Opaque),
        // If the gather or stencil had several inputs, the pixel functions before the kernel could belong to any of
        // the inputs.
        KernelKind::Gather | KernelKind::Stencil => {
            before.kind == KernelKind::Pointwise && to.inputs.iter().flatten().count() == 1
        }
        KernelKind::Generator | KernelKind::Reduction | KernelKind::Opaque => false,
    };
    // If a handler changes the rate, the handler and its consumer do not run equally often.
    let in_step = net.lead_wire(link.from).is_none_or(|w| net.wires[w].content.rate() == link.content.rate());
    // A kernel reads its first input in place. A handler whose lead is another input does not run once per frame of the
    // first input.
    let follows_first = to.lead == 0;
    // A kernel reads and writes pictures.
    let pictures = |node: usize| net.contents(node).all(|content| content.frame().is_some());
    rgba && alone
        && pictures(link.from)
        && pictures(link.to)
        && kinds
        && follows_first
        && in_step
        && !from.entry.blocking
        && !to.entry.blocking
        && !from.entry.stateful
        && !to.entry.stateful
        && !link.explicit_policy
        && link.depth.is_none()
        && depths.needed[wire] == 1
}
