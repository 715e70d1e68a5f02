//! Where groups of ops are cut: what is better made by itself, so that no kernel is too long or binds too much.
//!
//! Owns the limits of a kernel, and the choice of who leaves a group that is beyond them.
//! Does not group: `plan` does, and does so again after every cut.
//!
//! Always: a group within the limits is not cut; one beyond them loses at least one node; a group in which every node is
//! used once is within the limits after being cut once. The work is a few steps for each node and each buffer that a
//! kernel may bind, however large the group is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::node::{OpKind, SharedNode};
use super::plan::{Cluster, NodeAddress, PlanStage, key};
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// The most ops in one kernel: a text much longer takes compilers seconds, and a uniform has room for so many constants.
pub(super) const MOST_STEPS: usize = 256;
/// The most that a kernel that goes through rows computes on the way: its text reads in several places, and a chain of
/// 400 took a software driver 3 s to compile.
const MOST_STEPS_IN_ROWS: usize = 32;
/// The most that ends a product, whose text ends in as many places as a tile has results.
const MOST_STEPS_OF_ENDS: usize = 16;

/// Nodes that had better be made by themselves, where the stage's kernel would be too long or bind more than `most`.
pub(super) fn cuts(stage: &PlanStage, most: usize) -> Vec<NodeAddress> {
    let Some(cluster) = &stage.cluster else { return Vec::new() };
    let steps = cluster.nodes.len();
    // What the kernel around the program binds: the result, and operands that the program does not read.
    let others = match &stage.node.kind {
        OpKind::LayerNorm { gamma, beta, .. } => 1 + usize::from(gamma.is_some()) + usize::from(beta.is_some()),
        _ => 1 + 2 * usize::from(cluster.ends.is_some()),
    };
    let most_reads = most.saturating_sub(others);
    match &cluster.ends {
        // The product first: ending it is worth least.
        Some(product) if steps > MOST_STEPS_OF_ENDS || reads(cluster) > most_reads => vec![key(product)],
        Some(_) => Vec::new(),
        None if !stage.node.is_elementwise() && steps > MOST_STEPS_IN_ROWS => vec![key(&cluster.root)],
        None if steps <= MOST_STEPS && reads(cluster) <= most_reads => Vec::new(),
        None => {
            let cuts = cut(cluster, most_reads);
            // Nothing inside helps: then all of it is made by itself, before whoever goes through its rows.
            let is_inside = key(&cluster.root) != key(&stage.node);
            if cuts.is_empty() && is_inside { vec![key(&cluster.root)] } else { cuts }
        }
    }
}

/// How many tensors a cluster reads.
fn reads(cluster: &Cluster) -> usize {
    let inside: BTreeSet<NodeAddress> = cluster.nodes.iter().chain(&cluster.ends).map(key).collect();
    let operands = cluster.nodes.iter().flat_map(|node| node.operands());
    operands.filter(|operand| !inside.contains(&key(operand))).map(read).collect::<BTreeSet<OutsideRead>>().len()
}

/// What is read from outside. A tensor is one, however often it was written down; what is gone through in another way is
/// another, as it is to the program that will read it.
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

/// Goes through a cluster, operands first. Where a node would need too much, the operand whose leaving helps most is made
/// by itself, and then the next.
fn cut(cluster: &Cluster, most_reads: usize) -> Vec<NodeAddress> {
    let mut numbers: BTreeMap<OutsideRead, u32> = BTreeMap::new();
    let mut number = |node: &SharedNode| {
        let next = numbers.len() as u32;
        *numbers.entry(read(node)).or_insert(next)
    };
    // How often each node of the cluster will still be asked for what it needs.
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
            // The last to ask takes it along: nothing that is used once is copied.
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
            // It may stand there twice.
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

/// What one kernel would need that makes a node: numbers of tensors that it reads and of nodes that it computes, each in
/// order.
#[derive(Clone)]
struct KernelNeeds {
    reads: Vec<u32>,
    steps: Vec<u32>,
}

impl KernelNeeds {
    /// Together with what operands need, but for one of them that is made by itself and read.
    fn with(&self, inner: &[(&SharedNode, KernelNeeds)], but: Option<usize>) -> KernelNeeds {
        let stay = inner.iter().enumerate().filter(|(at, _)| Some(*at) != but).map(|(_, (_, need))| need);
        let mut all = stay.fold(self.clone(), |all, need| KernelNeeds {
            reads: union(&all.reads, &need.reads),
            steps: union(&all.steps, &need.steps),
        });
        all.reads.extend(but.map(|_| u32::MAX));
        all
    }

    /// By how much it is beyond what a kernel may have.
    fn excess(&self, most_reads: usize) -> usize {
        self.reads.len().saturating_sub(most_reads).max(self.steps.len().saturating_sub(MOST_STEPS))
    }

    fn size(&self) -> usize {
        self.reads.len() + self.steps.len()
    }
}

/// What is in either, in order and once.
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
