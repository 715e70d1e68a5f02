//! Cuts groups of ops so that no kernel is too long or binds too many buffers. `plan` builds the groups, and rebuilds
//! them after every round of cuts.
//!
//! If a kernel would exceed the limits, the node whose removal helps most is split off.
//!
//! Invariants: a group within the limits is not cut. A group beyond the limits loses at least one node. A group in
//! which every node is used once is within the limits after one call of `cuts`. The work is at most a few steps for
//! each pair of a node and a buffer that a kernel may bind, however large the group is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::node::{OpKind, SharedNode};
use super::plan::{Cluster, NodeAddress, PlanStage, key};
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// Maximum number of ops in one kernel. Compilers need seconds for much longer texts, and a uniform has room for this
/// many constants.
pub(super) const MOST_STEPS: usize = 256;
/// Maximum number of ops that a kernel over rows computes while reading. The text of such a kernel reads in several
/// places: with a chain of 400 ops, a software driver took 3 s to compile the kernel.
const MOST_STEPS_IN_ROWS: usize = 32;
/// Maximum number of ops that finish a product. The text of a product repeats these ops for each result of a tile.
const MOST_STEPS_OF_ENDS: usize = 16;

/// The nodes to compute separately so that the stage's kernel is not too long and binds at most `most` buffers.
pub(super) fn cuts(stage: &PlanStage, most: usize) -> Vec<NodeAddress> {
    let Some(cluster) = &stage.cluster else { return Vec::new() };
    let steps = cluster.nodes.len();
    // The kernel around the program also binds the result, and operands that the program does not read.
    let others = match &stage.node.kind {
        OpKind::LayerNorm { gamma, beta, .. } => 1 + usize::from(gamma.is_some()) + usize::from(beta.is_some()),
        _ => 1 + 2 * usize::from(cluster.ends.is_some()),
    };
    let most_reads = most.saturating_sub(others);
    match &cluster.ends {
        // The product is split off first, because fusing the product with the ops that finish it saves the least.
        Some(product) if steps > MOST_STEPS_OF_ENDS || reads(cluster) > most_reads => vec![key(product)],
        Some(_) => Vec::new(),
        None if !stage.node.is_elementwise() && steps > MOST_STEPS_IN_ROWS => vec![key(&cluster.root)],
        None if steps <= MOST_STEPS && reads(cluster) <= most_reads => Vec::new(),
        None => {
            let cuts = cut(cluster, most_reads);
            // If no cut inside helps, the whole cluster is computed separately, before the kernel that reads its rows.
            let is_inside = key(&cluster.root) != key(&stage.node);
            if cuts.is_empty() && is_inside { vec![key(&cluster.root)] } else { cuts }
        }
    }
}

/// The number of tensors that a cluster reads.
fn reads(cluster: &Cluster) -> usize {
    let inside: BTreeSet<NodeAddress> = cluster.nodes.iter().chain(&cluster.ends).map(key).collect();
    let operands = cluster.nodes.iter().flat_map(|node| node.operands());
    operands.filter(|operand| !inside.contains(&key(operand))).map(read).collect::<BTreeSet<OutsideRead>>().len()
}

/// A read from outside a cluster. A tensor counts once, however often it occurs. The same memory with another shape or
/// offset counts as another read, because the program binds each of the reads separately.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum OutsideRead {
    Tensor { memory: u64, offset: usize, dtype: DType, shape: Shape },
    Made(NodeAddress),
}

fn read(node: &SharedNode) -> OutsideRead {
    match &node.kind {
        OpKind::Leaf(tensor) => OutsideRead::Tensor {
            memory: tensor.memory_id(),
            offset: tensor.offset(),
            dtype: node.dtype,
            shape: node.shape.clone(),
        },
        _ => OutsideRead::Made(key(node)),
    }
}

/// Walks a cluster, operands first. While a node needs too much, splits off the operand whose removal helps most.
fn cut(cluster: &Cluster, most_reads: usize) -> Vec<NodeAddress> {
    let mut numbers: BTreeMap<OutsideRead, u32> = BTreeMap::new();
    let mut number = |node: &SharedNode| {
        let next = numbers.len() as u32;
        *numbers.entry(read(node)).or_insert(next)
    };
    // For each node of the cluster, the number of users that the loop below has not reached.
    let mut asking: BTreeMap<NodeAddress, usize> = cluster.nodes.iter().map(|node| (key(node), 0)).collect();
    for operand in cluster.nodes.iter().flat_map(|node| node.operands()) {
        asking.entry(key(operand)).and_modify(|asking| *asking += 1);
    }
    let mut needs: BTreeMap<NodeAddress, KernelNeeds> = BTreeMap::new();
    let mut cuts = Vec::new();
    for (at, node) in cluster.nodes.iter().enumerate() {
        let mut own = KernelNeeds { reads: Vec::new(), steps: vec![at as u32] };
        let mut inner: Vec<(&SharedNode, KernelNeeds)> = Vec::new();
        for operand in node.operands() {
            let left = asking.get_mut(&key(operand)).map_or(0, |left| {
                *left -= 1;
                *left
            });
            // The last user takes the needs without a clone, so needs with a single user are never cloned.
            let need = if left == 0 { needs.remove(&key(operand)) } else { needs.get(&key(operand)).cloned() };
            match need {
                Some(need) => inner.push((operand, need)),
                None => own.reads = union(&own.reads, &[number(operand)]),
            }
        }
        while !inner.is_empty() && own.with(&inner, None).excess(most_reads) > 0 {
            let rest = |at: usize| own.with(&inner, Some(at)).excess(most_reads);
            let best = (0..inner.len()).min_by_key(|at| (rest(*at), Reverse(inner[*at].1.size())));
            let (leaving, _) = inner.swap_remove(best.unwrap_or(0));
            // The same node may be an operand twice.
            inner.retain(|(other, _)| key(other) != key(leaving));
            needs.remove(&key(leaving));
            own.reads = union(&own.reads, &[number(leaving)]);
            cuts.push(key(leaving));
        }
        if asking[&key(node)] > 0 {
            needs.insert(key(node), own.with(&inner, None));
        }
    }
    cuts
}

/// What a kernel that computes a node needs: the sorted ids of the tensors that it reads, and the sorted ids of the
/// nodes that it computes.
#[derive(Clone)]
struct KernelNeeds {
    reads: Vec<u32>,
    steps: Vec<u32>,
}

impl KernelNeeds {
    /// These needs combined with the needs of the operands. The operand at `but` is computed separately, and counts as
    /// one read.
    fn with(&self, inner: &[(&SharedNode, KernelNeeds)], but: Option<usize>) -> KernelNeeds {
        let stay = inner.iter().enumerate().filter(|(at, _)| Some(*at) != but).map(|(_, (_, need))| need);
        let mut all = stay.fold(self.clone(), |all, need| KernelNeeds {
            reads: union(&all.reads, &need.reads),
            steps: union(&all.steps, &need.steps),
        });
        all.reads.extend(but.map(|_| u32::MAX));
        all
    }

    /// By how much the needs exceed the limits of a kernel.
    fn excess(&self, most_reads: usize) -> usize {
        self.reads.len().saturating_sub(most_reads).max(self.steps.len().saturating_sub(MOST_STEPS))
    }

    fn size(&self) -> usize {
        self.reads.len() + self.steps.len()
    }
}

/// The sorted union.
fn union(one: &[u32], two: &[u32]) -> Vec<u32> {
    let mut all = Vec::with_capacity(one.len() + two.len());
    let (mut one, mut two) = (one.iter().copied().peekable(), two.iter().copied().peekable());
    loop {
        match (one.peek(), two.peek()) {
            (Some(left), Some(right)) => {
                let (next, order) = (*left.min(right), left.cmp(right));
                if order.is_le() {
                    one.next();
                }
                if order.is_ge() {
                    two.next();
                }
                all.push(next);
            }
            (None, None) => return all,
            _ => all.extend(one.next().or_else(|| two.next())),
        }
    }
}
