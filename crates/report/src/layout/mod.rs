//! Places the boxes of a graph without cycles on a drawing, and routes its edges.
//!
//! Frames flow from left to right. Boxes are ranked into layers by their longest path from a source (`rank`), ordered
//! within each layer so that few edges cross (`order`), placed at heights at which edges are nearly straight (`heights`),
//! and cut into bands, so that a long chain continues below like a line of text (`bands`). An edge over several layers
//! passes a waypoint in each layer between. Edges of one output share their waypoints.
//!
//! Invariants: boxes do not overlap. The end of an edge is in a later layer than its beginning, and therefore further
//! right or in a band below. The same graph gives the same drawing.

mod bands;
mod heights;
mod order;
mod rank;

/// The size of a box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxSize {
    pub width: f64,
    pub height: f64,
}

/// An edge between two boxes, with the heights at which it leaves and enters them, from their upper sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub leaves_at: f64,
    pub enters_at: f64,
}

/// A box on the drawing. `x` and `y` are its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedBox {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub layer: usize,
    pub band: usize,
}

/// A part of an edge, from one layer to the next. Edges of one output may share it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stroke {
    /// The first edge that uses the stroke.
    pub edge: usize,
    /// Whether the stroke ends at a box, and not at a waypoint.
    pub arrives: bool,
    pub way: StrokeWay,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StrokeWay {
    /// To the next layer, between two points. Both ends are horizontal.
    Across { from: (f64, f64), to: (f64, f64) },
    /// Straight through a layer.
    Through { from: (f64, f64), to: (f64, f64) },
    /// To the band below: horizontal and vertical lines through these points.
    Below { points: [(f64, f64); 6] },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    /// In the order of the sizes.
    pub boxes: Vec<PlacedBox>,
    pub strokes: Vec<Stroke>,
}

/// A box or a waypoint in a layer.
#[derive(Debug, Clone, Copy)]
struct Vertex {
    /// The box; `None` for a waypoint.
    shows: Option<usize>,
    layer: usize,
    height: f64,
}

/// A connection of vertices in neighbouring layers, with the heights of its ends relative to the vertices' middles.
#[derive(Debug, Clone, Copy)]
struct Hop {
    from: usize,
    to: usize,
    leaves: f64,
    enters: f64,
    edge: usize,
}

/// The layered graph that all steps work on.
#[derive(Debug)]
struct Layered {
    vertices: Vec<Vertex>,
    hops: Vec<Hop>,
    /// Vertices by layer, from top to bottom.
    layers: Vec<Vec<usize>>,
}

const WAYPOINT_HEIGHT: f64 = 6.0;

/// Draws a graph. `most_width` limits the width, unless a single layer is wider. Edges that would close a cycle, and
/// edges from a box to itself, are left out.
pub fn draw(sizes: &[BoxSize], edges: &[Edge], most_width: f64) -> Drawing {
    if sizes.is_empty() {
        return Drawing::default();
    }
    let ranks = rank::ranks(sizes.len(), edges);
    let mut graph = layered(sizes, edges, &ranks);
    order::order(&mut graph);
    let heights = heights::heights(&graph);
    bands::draw(&graph, &heights, sizes, most_width)
}

/// Adds the waypoints of edges over several layers.
fn layered(sizes: &[BoxSize], edges: &[Edge], ranks: &[usize]) -> Layered {
    let mut vertices: Vec<Vertex> = sizes
        .iter()
        .zip(ranks)
        .enumerate()
        .map(|(at, (size, layer))| Vertex { shows: Some(at), layer: *layer, height: size.height })
        .collect();
    let mut hops: Vec<Hop> = Vec::new();
    // The last waypoint of each output, with the height at which the output leaves its box.
    let mut chains: Vec<(usize, u64, Vec<usize>)> = Vec::new();
    for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| ranks[edge.from] < ranks[edge.to]) {
        let (first, last) = (ranks[edge.from] + 1, ranks[edge.to]);
        let leaves = edge.leaves_at - sizes[edge.from].height / 2.0;
        let key = edge.leaves_at.to_bits();
        let known = chains.iter().position(|(from, height, _)| (*from, *height) == (edge.from, key));
        let chain = known.unwrap_or_else(|| {
            chains.push((edge.from, key, Vec::new()));
            chains.len() - 1
        });
        let chain = &mut chains[chain].2;
        for layer in first + chain.len()..last {
            let (from, leaves) = chain.last().map_or((edge.from, leaves), |last| (*last, 0.0));
            vertices.push(Vertex { shows: None, layer, height: WAYPOINT_HEIGHT });
            hops.push(Hop { from, to: vertices.len() - 1, leaves, enters: 0.0, edge: index });
            chain.push(vertices.len() - 1);
        }
        let before = (last - first).checked_sub(1).map(|at| chain[at]);
        let (from, leaves) = before.map_or((edge.from, leaves), |waypoint| (waypoint, 0.0));
        let enters = edge.enters_at - sizes[edge.to].height / 2.0;
        hops.push(Hop { from, to: edge.to, leaves, enters, edge: index });
    }
    let mut layers = vec![Vec::new(); ranks.iter().max().map_or(0, |most| most + 1)];
    for (at, vertex) in vertices.iter().enumerate() {
        layers[vertex.layer].push(at);
    }
    Layered { vertices, hops, layers }
}
