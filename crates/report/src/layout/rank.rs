//! Ranks boxes into layers: a box comes after everything that feeds it.

use super::Edge;

/// The layer of each box: the length of the longest path to it. A box that nothing feeds moves to the layer just before
/// its first consumer, so that a second source stands where its frames are needed.
pub(super) fn ranks(count: usize, edges: &[Edge]) -> Vec<usize> {
    let order = running_order(count, edges);
    let mut position = vec![0; count];
    order.iter().enumerate().for_each(|(at, own)| position[*own] = at);
    let is_forward = |edge: &&Edge| position[edge.from] < position[edge.to];
    let mut consumers = vec![Vec::new(); count];
    let mut is_fed = vec![false; count];
    for edge in edges.iter().filter(is_forward) {
        consumers[edge.from].push(edge.to);
        is_fed[edge.to] = true;
    }
    let mut ranks = vec![0; count];
    for own in &order {
        for to in &consumers[*own] {
            ranks[*to] = ranks[*to].max(ranks[*own] + 1);
        }
    }
    for own in (0..count).filter(|own| !is_fed[*own]) {
        if let Some(first) = consumers[own].iter().map(|to| ranks[*to]).min() {
            ranks[own] = first - 1;
        }
    }
    // Moving sources may leave the first layers empty.
    let least = ranks.iter().min().copied().unwrap_or(0);
    ranks.into_iter().map(|rank| rank - least).collect()
}

/// An order in which each box comes after its producers. In a cycle, the box with the smallest index comes first.
fn running_order(count: usize, edges: &[Edge]) -> Vec<usize> {
    let mut missing = vec![0_usize; count];
    let mut consumers = vec![Vec::new(); count];
    for edge in edges.iter().filter(|edge| edge.from != edge.to) {
        missing[edge.to] += 1;
        consumers[edge.from].push(edge.to);
    }
    let mut ready: std::collections::BTreeSet<usize> = (0..count).filter(|own| missing[*own] == 0).collect();
    let mut waiting: std::collections::BTreeSet<usize> = (0..count).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(own) = ready.pop_first().or_else(|| waiting.first().copied()) {
        waiting.remove(&own);
        order.push(own);
        for to in &consumers[own] {
            missing[*to] = missing[*to].saturating_sub(1);
            if missing[*to] == 0 && waiting.contains(to) {
                ready.insert(*to);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(count: usize, pairs: &[(usize, usize)]) -> Vec<usize> {
        let edge = |(from, to): &(usize, usize)| Edge { from: *from, to: *to, leaves_at: 0.0, enters_at: 0.0 };
        ranks(count, &pairs.iter().map(edge).collect::<Vec<_>>())
    }

    #[test]
    fn a_box_comes_after_its_longest_path() {
        assert_eq!(ranked(4, &[(0, 1), (1, 2), (0, 3), (2, 3)]), [0, 1, 2, 3]);
        assert_eq!(ranked(3, &[]), [0, 0, 0]);
    }

    #[test]
    fn a_second_source_stands_before_its_consumer() {
        assert_eq!(ranked(4, &[(0, 1), (1, 2), (3, 2)]), [0, 1, 2, 1]);
    }

    #[test]
    fn a_cycle_does_not_hang() {
        assert_eq!(ranked(3, &[(0, 1), (1, 2), (2, 1), (1, 1)]), [0, 1, 2]);
        assert_eq!(ranked(2, &[(0, 1), (1, 0)]), [0, 1]);
    }
}
