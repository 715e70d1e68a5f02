//! Laws of the layout: boxes do not overlap, edges go forward, and every box and edge is drawn once.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use proptest::prelude::*;
use vramp::report::layout::{BoxSize, Drawing, Edge, PlacedBox, StrokeWay, draw};

/// A graph without cycles, and a width.
fn graphs() -> impl Strategy<Value = (Vec<BoxSize>, Vec<Edge>, f64)> {
    let size = (40.0..300.0_f64, 20.0..200.0_f64).prop_map(|(width, height)| BoxSize { width, height });
    let sizes = prop::collection::vec(size, 1..40);
    let edges = prop::collection::vec((any::<u32>(), any::<u32>(), 0.0..1.0_f64, 0.0..1.0_f64), 0..80);
    (sizes, edges, 200.0..2000.0_f64).prop_map(|(sizes, edges, width)| {
        let count = sizes.len() as u32;
        let edge = |(one, two, leaves, enters): (u32, u32, f64, f64)| {
            let (from, to) = ((one % count).min(two % count) as usize, (one % count).max(two % count) as usize);
            let (leaves_at, enters_at) = (leaves * sizes[from].height, enters * sizes[to].height);
            Edge { from, to, leaves_at, enters_at }
        };
        let edges = edges.into_iter().map(edge).filter(|edge| edge.from != edge.to).collect();
        (sizes, edges, width)
    })
}

fn overlap(one: &PlacedBox, two: &PlacedBox) -> bool {
    one.x < two.x + two.width && two.x < one.x + one.width && one.y < two.y + two.height && two.y < one.y + one.height
}

/// A chain of boxes of the usual size.
fn chain(count: usize) -> (Vec<BoxSize>, Vec<Edge>) {
    let edges = (1..count).map(|to| Edge { from: to - 1, to, leaves_at: 30.0, enters_at: 30.0 });
    (vec![BoxSize { width: 176.0, height: 60.0 }; count], edges.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn boxes_do_not_overlap_and_stay_inside((sizes, edges, width) in graphs()) {
        let drawing = draw(&sizes, &edges, width);
        prop_assert_eq!(drawing.boxes.len(), sizes.len());
        for (at, own) in drawing.boxes.iter().enumerate() {
            prop_assert_eq!((own.width, own.height), (sizes[at].width, sizes[at].height));
            prop_assert!(own.x >= 0.0 && own.y >= 0.0, "{own:?}");
            prop_assert!(own.x + own.width <= drawing.width && own.y + own.height <= drawing.height, "{own:?}");
            for other in &drawing.boxes[at + 1..] {
                prop_assert!(!overlap(own, other), "{own:?} and {other:?}");
            }
        }
    }

    #[test]
    fn edges_go_forward_from_box_to_box((sizes, edges, width) in graphs()) {
        let Drawing { boxes, strokes, .. } = draw(&sizes, &edges, width);
        for edge in &edges {
            let (from, to) = (boxes[edge.from], boxes[edge.to]);
            prop_assert!(from.layer < to.layer && from.band <= to.band);
            prop_assert!(from.band < to.band || from.x + from.width < to.x, "{from:?} to {to:?}");
        }
        // Every edge arrives once, at its own port.
        let arrivals: Vec<_> = strokes.iter().filter(|stroke| stroke.arrives).collect();
        prop_assert_eq!(arrivals.len(), edges.len());
        let mut arrived: Vec<usize> = arrivals.iter().map(|stroke| stroke.edge).collect();
        arrived.sort_unstable();
        prop_assert!(arrived.iter().copied().eq(0..edges.len()));
        for stroke in arrivals {
            let (edge, end) = (edges[stroke.edge], ends(&stroke.way).1);
            let to = boxes[edge.to];
            prop_assert!((end.0 - to.x).abs() < 1e-6 && (end.1 - to.y - edge.enters_at).abs() < 1e-6, "{stroke:?}");
        }
    }

    #[test]
    fn strokes_of_an_edge_are_connected((sizes, edges, width) in graphs()) {
        let Drawing { boxes, strokes, .. } = draw(&sizes, &edges, width);
        for stroke in &strokes {
            let start = ends(&stroke.way).0;
            let edge = edges[stroke.edge];
            let from = boxes[edge.from];
            let near = |one: (f64, f64), two: (f64, f64)| (one.0 - two.0).abs() + (one.1 - two.1).abs() < 1e-6;
            let at_box = near(start, (from.x + from.width, from.y + edge.leaves_at));
            prop_assert!(at_box || strokes.iter().any(|other| near(ends(&other.way).1, start)), "{stroke:?}");
        }
    }

    #[test]
    fn the_width_is_kept_if_each_layer_fits(count in 1..120_usize, width in 352.0..2000.0_f64) {
        let (sizes, edges) = chain(count);
        let drawing = draw(&sizes, &edges, width);
        prop_assert!(drawing.width <= width, "{} of {width}", drawing.width);
    }
}

fn ends(way: &StrokeWay) -> ((f64, f64), (f64, f64)) {
    match way {
        StrokeWay::Across { from, to } | StrokeWay::Through { from, to } => (*from, *to),
        StrokeWay::Below { points } => (points[0], points[5]),
    }
}

#[test]
fn a_fork_that_joins_again_does_not_cross_itself() {
    // 0 feeds 1 and 3; 1 feeds 2; 2 feeds the lower port of 3, and 0 its upper port.
    let sizes = [BoxSize { width: 100.0, height: 60.0 }; 4];
    let edge = |from, to, enters_at| Edge { from, to, leaves_at: 30.0, enters_at };
    let drawing = draw(&sizes, &[edge(0, 1, 30.0), edge(1, 2, 30.0), edge(2, 3, 45.0), edge(0, 3, 15.0)], 2000.0);
    let way = |index: usize| drawing.strokes.iter().find(|own| own.edge == index && own.arrives).unwrap().way.clone();
    let (upper, lower) = (ends(&way(3)).0, ends(&way(2)).0);
    assert!(upper.1 < lower.1, "{upper:?} is below {lower:?}");
}

#[test]
fn a_long_chain_continues_in_bands_below() {
    let (sizes, edges) = chain(300);
    let drawing = draw(&sizes, &edges, 1150.0);
    assert!(drawing.boxes.iter().any(|own| own.band > 50) && drawing.width <= 1150.0);
    assert_eq!(drawing, draw(&sizes, &edges, 1150.0), "the same graph gives the same drawing");
}

#[test]
fn an_empty_graph_and_a_single_box_are_drawn() {
    assert_eq!(draw(&[], &[], 500.0), Drawing::default());
    let one = draw(&[BoxSize { width: 100.0, height: 40.0 }], &[], 500.0);
    assert_eq!((one.boxes.len(), one.strokes.len()), (1, 0));
}
