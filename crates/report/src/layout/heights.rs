//! Places the vertices of each layer at heights at which their edges are nearly straight.
//!
//! Sweeps move each vertex towards its neighbours. Within a layer, the heights that are nearest to the wanted ones, by
//! the sum of squares, under the distances that vertices must keep, follow from pooling adjacent violators.

use super::Layered;

const GAP: f64 = 18.0;
const WAYPOINT_GAP: f64 = 10.0;
const SWEEPS: usize = 8;

/// The middle of each vertex.
pub(super) fn heights(graph: &Layered) -> Vec<f64> {
    let mut middles = vec![0.0; graph.vertices.len()];
    for layer in &graph.layers {
        let wanted = vec![(0.0, 1.0); layer.len()];
        settle(graph, layer, &wanted, &mut middles);
    }
    // For each vertex: its neighbours, with the height at which they would be if the edge were straight, and the weight.
    let mut before = vec![Vec::new(); graph.vertices.len()];
    let mut after = vec![Vec::new(); graph.vertices.len()];
    for hop in &graph.hops {
        let is_waypoint = |vertex: usize| graph.vertices[vertex].shows.is_none();
        // Long edges are straightened first, because bends in the middle of nowhere look worst.
        let weight = if is_waypoint(hop.from) && is_waypoint(hop.to) { 8.0 } else { 1.0 };
        before[hop.to].push((hop.from, hop.leaves - hop.enters, weight));
        after[hop.from].push((hop.to, hop.enters - hop.leaves, weight));
    }
    for sweep in 0..SWEEPS {
        let count = graph.layers.len();
        let order: Vec<usize> = if sweep % 2 == 0 { (0..count).collect() } else { (0..count).rev().collect() };
        for layer in order {
            let vertices = &graph.layers[layer];
            let wanted: Vec<(f64, f64)> = vertices
                .iter()
                .map(|own| {
                    let first = if sweep % 2 == 0 { &before[*own] } else { &after[*own] };
                    let all = if first.is_empty() {
                        if sweep % 2 == 0 { &after[*own] } else { &before[*own] }
                    } else {
                        first
                    };
                    let weight: f64 = all.iter().map(|(.., weight)| weight).sum();
                    let sum: f64 = all.iter().map(|(other, shift, weight)| (middles[*other] + shift) * weight).sum();
                    if weight > 0.0 { (sum / weight, weight) } else { (middles[*own], 0.5) }
                })
                .collect();
            settle(graph, vertices, &wanted, &mut middles);
        }
    }
    middles
}

/// Places the vertices of a layer as near as possible to their wanted heights, each of which has a weight.
fn settle(graph: &Layered, layer: &[usize], wanted: &[(f64, f64)], middles: &mut [f64]) {
    // Blocks of vertices that touch each other: the wanted height of their common shift, the weight, and their number.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    let mut offsets = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (at, (want, weight)) in wanted.iter().enumerate() {
        if at > 0 {
            offset += distance(graph, layer[at - 1], layer[at]);
        }
        offsets.push(offset);
        blocks.push((want - offset, *weight, 1));
        while let [.., one, two] = blocks[..]
            && one.0 > two.0
        {
            let weight = one.1 + two.1;
            blocks.truncate(blocks.len() - 2);
            blocks.push(((one.0 * one.1 + two.0 * two.1) / weight, weight, one.2 + two.2));
        }
    }
    let shifts = blocks.into_iter().flat_map(|(shift, _, count)| std::iter::repeat_n(shift, count));
    for ((vertex, offset), shift) in layer.iter().zip(offsets).zip(shifts) {
        middles[*vertex] = offset + shift;
    }
}

/// The least distance between the middles of two vertices, one below the other.
fn distance(graph: &Layered, upper: usize, lower: usize) -> f64 {
    let (upper, lower) = (graph.vertices[upper], graph.vertices[lower]);
    let gap = if upper.shows.is_none() && lower.shows.is_none() { WAYPOINT_GAP } else { GAP };
    f64::midpoint(upper.height, lower.height) + gap
}
