//! The order in which nodes can run: each after the nodes that produce its inputs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The nodes cannot be ordered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// A node of the cycle.
    pub(super) node: usize,
    /// The node before it in the cycle, the producer of one of its inputs.
    pub(super) from: usize,
}

/// The order of `count` nodes. `producers` gives the nodes that a node's inputs come from. Files are nearly always in
/// order, and then the order is that of the file; otherwise it is as close to the order of the file as possible.
pub(super) fn order<P: Iterator<Item = usize>>(
    count: usize,
    producers: impl Fn(usize) -> P,
) -> Result<Vec<usize>, Cycle> {
    if (0..count).all(|node| producers(node).all(|producer| producer < node)) {
        return Ok((0..count).collect());
    }

    // The consumers of node `n` are consumers[starts[n]..starts[n + 1]].
    let mut starts = vec![0; count + 1];
    let mut waits_for = vec![0usize; count];
    for (node, waits) in waits_for.iter_mut().enumerate() {
        for producer in producers(node) {
            starts[producer + 1] += 1;
            *waits += 1;
        }
    }
    for node in 0..count {
        starts[node + 1] += starts[node];
    }
    let mut consumers = vec![0; starts[count]];
    let mut filled = starts.clone();
    for node in 0..count {
        for producer in producers(node) {
            consumers[filled[producer]] = node;
            filled[producer] += 1;
        }
    }

    let mut ready: BinaryHeap<_> = (0..count).filter(|node| waits_for[*node] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for consumer in &consumers[starts[node]..starts[node + 1]] {
            waits_for[*consumer] -= 1;
            if waits_for[*consumer] == 0 {
                ready.push(Reverse(*consumer));
            }
        }
    }
    if order.len() == count { Ok(order) } else { Err(cycle(&waits_for, producers)) }
}

/// A cycle among the nodes that still wait. Each of them waits for another one of them, so a walk against the links
/// must come back to a node that it has seen.
fn cycle<P: Iterator<Item = usize>>(waits_for: &[usize], producers: impl Fn(usize) -> P) -> Cycle {
    let before = |node| producers(node).find(|producer| waits_for[*producer] > 0);
    let mut seen = vec![false; waits_for.len()];
    let mut node = waits_for.iter().position(|waits| *waits > 0).expect("a node that was not ordered still waits");
    loop {
        seen[node] = true;
        let from = before(node).expect("a node waits for a node that was not ordered");
        if seen[from] {
            return Cycle { node, from };
        }
        node = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(producers: &[&[usize]]) -> Result<Vec<usize>, Cycle> {
        order(producers.len(), |node| producers[node].iter().copied())
    }

    #[test]
    fn nodes_in_order_keep_it() {
        assert_eq!(ordered(&[&[], &[0], &[0, 0], &[1, 2]]), Ok(vec![0, 1, 2, 3]));
        assert_eq!(ordered(&[]), Ok(vec![]));
    }

    #[test]
    fn a_node_runs_after_its_producers() {
        assert_eq!(ordered(&[&[3, 3], &[], &[1], &[1, 2]]), Ok(vec![1, 2, 3, 0]));
        let reversed: Vec<Vec<usize>> =
            (0..50_000).map(|node| if node < 49_999 { vec![node + 1] } else { vec![] }).collect();
        let order = order(reversed.len(), |node| reversed[node].iter().copied()).unwrap();
        assert!(order.into_iter().eq((0..50_000).rev()));
    }

    #[test]
    fn a_cycle_is_found_also_from_a_node_behind_it() {
        assert_eq!(ordered(&[&[0]]), Err(Cycle { node: 0, from: 0 }));
        assert_eq!(ordered(&[&[1], &[2], &[3], &[1]]), Err(Cycle { node: 3, from: 1 }));
    }
}
