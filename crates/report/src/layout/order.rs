//! Orders the vertices of each layer so that few edges cross: sweeps that sort each layer by the mean position of its
//! neighbours, of which the best order is kept.

use super::Layered;

const SWEEPS: usize = 12;

pub(super) fn order(graph: &mut Layered) {
    let mut before = vec![Vec::new(); graph.vertices.len()];
    let mut after = vec![Vec::new(); graph.vertices.len()];
    for hop in &graph.hops {
        before[hop.to].push((hop.from, port(graph, hop.from, hop.leaves)));
        after[hop.from].push((hop.to, port(graph, hop.to, hop.enters)));
    }
    let mut best = (crossings(graph), graph.layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let count = graph.layers.len();
        if sweep % 2 == 0 {
            (1..count).for_each(|layer| sort(graph, layer, layer - 1, &before));
        } else {
            (0..count.saturating_sub(1)).rev().for_each(|layer| sort(graph, layer, layer + 1, &after));
        }
        let now = crossings(graph);
        if now < best.0 {
            best = (now, graph.layers.clone());
        }
    }
    graph.layers = best.1;
}

/// Where an edge reaches a vertex, as a part of a position: edges that reach a box further up come first.
fn port(graph: &Layered, vertex: usize, height: f64) -> f64 {
    (height / graph.vertices[vertex].height.max(1.0)).clamp(-0.49, 0.49)
}

/// Sorts a layer by the mean position of each vertex's neighbours in another layer. Vertices without neighbours there
/// keep their position.
fn sort(graph: &mut Layered, layer: usize, other: usize, neighbours: &[Vec<(usize, f64)>]) {
    let position = positions(graph, other);
    let own = &graph.layers[layer];
    let mut keyed: Vec<(f64, usize)> = own
        .iter()
        .enumerate()
        .map(|(at, vertex)| {
            let all = &neighbours[*vertex];
            let sum: f64 = all.iter().map(|(other, port)| position[*other] as f64 + port).sum();
            (if all.is_empty() { at as f64 } else { sum / all.len() as f64 }, *vertex)
        })
        .collect();
    keyed.sort_by(|one, two| one.0.total_cmp(&two.0));
    graph.layers[layer] = keyed.into_iter().map(|(_, vertex)| vertex).collect();
}

/// The position in its layer of each vertex of one layer.
fn positions(graph: &Layered, layer: usize) -> Vec<usize> {
    let mut position = vec![0; graph.vertices.len()];
    graph.layers[layer].iter().enumerate().for_each(|(at, vertex)| position[*vertex] = at);
    position
}

/// The number of pairs of hops that cross.
fn crossings(graph: &Layered) -> usize {
    let mut position = vec![0; graph.vertices.len()];
    for layer in &graph.layers {
        layer.iter().enumerate().for_each(|(at, vertex)| position[*vertex] = at);
    }
    let mut by_layer = vec![Vec::new(); graph.layers.len()];
    for hop in &graph.hops {
        // Positions in 1/1000, so that the ports of one box count too.
        let end =
            |vertex: usize, height: f64| ((position[vertex] as f64 + 0.5 + port(graph, vertex, height)) * 1e3) as usize;
        by_layer[graph.vertices[hop.from].layer].push((end(hop.from, hop.leaves), end(hop.to, hop.enters)));
    }
    by_layer.into_iter().map(inversions).sum()
}

/// Counts the pairs that are in one order at their beginnings and in the other order at their ends.
fn inversions(mut pairs: Vec<(usize, usize)>) -> usize {
    pairs.sort_unstable();
    let mut ends: Vec<usize> = pairs.iter().map(|(_, to)| *to).collect();
    ends.sort_unstable();
    ends.dedup();
    for (_, to) in &mut pairs {
        *to = ends.partition_point(|end| end < to);
    }
    let most = ends.len();
    // A Fenwick tree of the ends so far.
    let mut tree = vec![0_usize; most + 2];
    let mut sum = 0;
    for (seen, (_, to)) in pairs.iter().enumerate() {
        let (mut at, mut smaller) = (to + 1, 0);
        while at > 0 {
            smaller += tree[at];
            at &= at - 1;
        }
        sum += seen - smaller;
        at = to + 1;
        while at < tree.len() {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_counted_as_by_comparing_all_pairs() {
        let pairs: Vec<(usize, usize)> = (0..40).map(|at| (at * 7 % 11, at * 5 % 13)).collect();
        let cross = |one: &(usize, usize), two: &(usize, usize)| one.0 < two.0 && one.1 > two.1;
        let slow = pairs.iter().map(|one| pairs.iter().filter(|two| cross(one, two)).count()).sum::<usize>();
        assert_eq!(inversions(pairs), slow);
        assert_eq!(inversions(vec![(0, 1), (1, 0)]), 1);
        assert_eq!(inversions(Vec::new()), 0);
    }
}
