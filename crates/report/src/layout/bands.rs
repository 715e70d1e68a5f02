//! Cuts the layers into bands that fit the width, one below the other, and gives every box and stroke its coordinates.
//!
//! A band ends where few edges lead on, if there is such a place in its last third. An edge to the next band goes around
//! the right side of its own band, below it, and enters the next band from the left. If a band has one layer, edges to
//! later bands pass it in the left margin.

use std::collections::BTreeMap;

use super::{BoxSize, Drawing, Hop, Layered, PlacedBox, Stroke, StrokeWay};

/// Between two layers.
const LAYER_GAP: f64 = 42.0;
/// Between the ends of the drawing and the boxes.
const MARGIN: f64 = 12.0;
/// Between a band and the first edge that goes around it, and between two such edges.
const DETOUR: f64 = 14.0;
const DETOUR_STEP: f64 = 7.0;

/// A band: its layers, and where it is on the drawing.
struct Band {
    layers: std::ops::Range<usize>,
    /// Added to heights to get coordinates.
    shift: f64,
    bottom: f64,
    right: f64,
}

pub(super) fn draw(graph: &Layered, heights: &[f64], sizes: &[BoxSize], most_width: f64) -> Drawing {
    let widths: Vec<f64> = graph.layers.iter().map(|layer| layer_width(graph, layer, sizes)).collect();
    let leading_on = leading_on(graph);
    let cuts = cuts(&widths, &leading_on, most_width - 2.0 * MARGIN);
    // All bands begin at the same place, so that the longest detour decides about the margin.
    let most_detours = cuts.iter().skip(1).map(|at| leading_on[at - 1]).max().unwrap_or(0);
    let detour = |edges: usize| if edges == 0 { 0.0 } else { DETOUR + DETOUR_STEP * edges as f64 };
    let left = MARGIN + detour(most_detours);

    let (mut bands, mut x_of) = (Vec::<Band>::new(), vec![0.0; widths.len()]);
    let mut top = MARGIN;
    for (at, first) in cuts.iter().enumerate() {
        let layers = *first..cuts.get(at + 1).copied().unwrap_or(widths.len());
        let mut x = left;
        for layer in layers.clone() {
            x_of[layer] = x;
            x += widths[layer] + LAYER_GAP;
        }
        let inside = || graph.layers[layers.clone()].iter().flatten();
        let upper = inside().map(|own| heights[*own] - graph.vertices[*own].height / 2.0).fold(f64::MAX, f64::min);
        let lower = inside().map(|own| heights[*own] + graph.vertices[*own].height / 2.0).fold(f64::MIN, f64::max);
        let shift = top - upper;
        bands.push(Band { layers: layers.clone(), shift, bottom: lower + shift, right: x - LAYER_GAP });
        let below = if at + 1 < cuts.len() { leading_on[layers.end - 1] } else { 0 };
        top = lower + shift + detour(below) + DETOUR;
    }

    let mut band_of = vec![0; widths.len()];
    for (at, band) in bands.iter().enumerate() {
        band.layers.clone().for_each(|layer| band_of[layer] = at);
    }
    let y_of = |vertex: usize| heights[vertex] + bands[band_of[graph.vertices[vertex].layer]].shift;
    let mut boxes = Vec::with_capacity(sizes.len());
    for (at, size) in sizes.iter().enumerate() {
        let layer = graph.vertices[at].layer;
        let x = x_of[layer] + (widths[layer] - size.width) / 2.0;
        let y = y_of(at) - size.height / 2.0;
        boxes.push(PlacedBox { x, y, width: size.width, height: size.height, layer, band: band_of[layer] });
    }

    // In a band of one layer, as on a phone, an edge to a later band stays beside the box, in the left margin.
    let is_beside = |own: usize| {
        let vertex = &graph.vertices[own];
        vertex.shows.is_none() && bands[band_of[vertex.layer]].layers.len() == 1
    };
    let side = |vertex: usize, right: bool| match graph.vertices[vertex].shows {
        Some(own) => boxes[own].x + if right { boxes[own].width } else { 0.0 },
        None => x_of[graph.vertices[vertex].layer] + if right { widths[graph.vertices[vertex].layer] } else { 0.0 },
    };
    let mut strokes = Vec::with_capacity(graph.hops.len());
    let mut width = bands.iter().map(|band| band.right).fold(0.0, f64::max);
    let mut detours: Vec<Vec<&Hop>> = vec![Vec::new(); bands.len()];
    for hop in &graph.hops {
        let (from_layer, to_layer) = (graph.vertices[hop.from].layer, graph.vertices[hop.to].layer);
        let from = (side(hop.from, true), y_of(hop.from) + hop.leaves);
        let to = (side(hop.to, false), y_of(hop.to) + hop.enters);
        let arrives = graph.vertices[hop.to].shows.is_some();
        if band_of[from_layer] == band_of[to_layer] {
            strokes.push(Stroke { edge: hop.edge, arrives, way: StrokeWay::Across { from, to } });
        } else {
            detours[band_of[from_layer]].push(hop);
        }
        if !arrives && !is_beside(hop.to) {
            let through = (side(hop.to, true), to.1);
            strokes.push(Stroke { edge: hop.edge, arrives, way: StrokeWay::Through { from: to, to: through } });
        }
    }
    // Where edges beside a band are.
    let mut beside_at: BTreeMap<usize, f64> = BTreeMap::new();
    for (own, mut hops) in bands.iter().zip(detours) {
        // Detours are nested. Edges that were beside this band stay outside; of the others, the first goes furthest.
        let outside = |hop: &&Hop| beside_at.get(&hop.from).copied().unwrap_or(f64::MAX);
        hops.sort_by(|one, two| outside(one).total_cmp(&outside(two)));
        let count = hops.len();
        for (at, hop) in hops.into_iter().enumerate() {
            let out = DETOUR + DETOUR_STEP * (count - 1 - at) as f64;
            let (right, low, back) = (own.right + out, own.bottom + out, left - out);
            let (from_y, to_y) = (y_of(hop.from) + hop.leaves, y_of(hop.to) + hop.enters);
            let (from, around) = match beside_at.get(&hop.from) {
                Some(x) => ((*x, from_y), *x),
                None => ((side(hop.from, true), from_y), right),
            };
            let to = if is_beside(hop.to) {
                beside_at.insert(hop.to, back);
                (back, to_y)
            } else {
                (side(hop.to, false), to_y)
            };
            width = width.max(around);
            let points = [from, (around, from_y), (around, low), (back, low), (back, to_y), to];
            let arrives = graph.vertices[hop.to].shows.is_some();
            strokes.push(Stroke { edge: hop.edge, arrives, way: StrokeWay::Below { points } });
        }
    }
    let height = bands.last().map_or(0.0, |band| band.bottom) + MARGIN;
    Drawing { width: width + MARGIN, height, boxes, strokes }
}

fn layer_width(graph: &Layered, layer: &[usize], sizes: &[BoxSize]) -> f64 {
    layer.iter().filter_map(|own| graph.vertices[*own].shows).map(|own| sizes[own].width).fold(8.0, f64::max)
}

/// How many hops lead from each layer to the next.
fn leading_on(graph: &Layered) -> Vec<usize> {
    let mut counts = vec![0; graph.layers.len()];
    graph.hops.iter().for_each(|hop| counts[graph.vertices[hop.from].layer] += 1);
    counts
}

/// The first layer of each band.
fn cuts(widths: &[f64], leading_on: &[usize], most_width: f64) -> Vec<usize> {
    // How much of a band may stay empty to cut fewer edges.
    const MOST_EMPTY: f64 = 0.35;
    let detours = |at: usize| 2.0 * (DETOUR + DETOUR_STEP * leading_on[at - 1] as f64);
    let mut cuts = vec![0];
    let mut first = 0;
    loop {
        let rest: f64 = widths[first..].iter().sum::<f64>() + LAYER_GAP * (widths.len() - first - 1) as f64;
        // A band after the first has a detour on its left side only.
        if rest + if first > 0 { detours(first) / 2.0 } else { 0.0 } <= most_width {
            return cuts;
        }
        let mut best: Option<(usize, usize)> = None;
        let mut width = 0.0;
        for at in first + 1..widths.len() {
            width += widths[at - 1] + if at > first + 1 { LAYER_GAP } else { 0.0 };
            if width + detours(at) > most_width && best.is_some() {
                break;
            }
            let is_better = best.is_none_or(|(edges, _)| leading_on[at - 1] <= edges);
            if best.is_none() || is_better || width < most_width * (1.0 - MOST_EMPTY) {
                best = Some((leading_on[at - 1], at));
            }
        }
        match best {
            Some((_, at)) => {
                cuts.push(at);
                first = at;
            }
            None => return cuts,
        }
    }
}
