//! Topological order, shared by checking and planning.
//!
//! Among the nodes that are ready, the smallest index comes first, so the order is deterministic.

use std::collections::BTreeSet;

/// Returns an order of `0..count` in which every edge leads forward, and for each node the number of edges that the
/// node still waits for. The order does not contain nodes on a cycle or after a cycle. For all nodes in the order the
/// number is 0.
pub(crate) fn running_order(
    count: usize,
    edges: impl Iterator<Item = (usize, usize)> + Clone,
) -> (Vec<usize>, Vec<usize>) {
    let mut waiting = vec![0usize; count];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in edges {
        waiting[to] += 1;
        next[from].push(to);
    }
    let mut ready: BTreeSet<usize> = (0..count).filter(|v| waiting[*v] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(v) = ready.pop_first() {
        order.push(v);
        for &to in &next[v] {
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.insert(to);
            }
        }
    }
    (order, waiting)
}
