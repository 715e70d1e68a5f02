//! Large expressions: planning time is linear for wide ones, and deep ones need no stack.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::sides::both;
use vramp_tensor::{Context, Expr, Tensor};

/// Adds neighbours pairwise until one is left.
fn joined(mut row: Vec<Expr>) -> Expr {
    while row.len() > 1 {
        row = row.chunks(2).map(|pair| pair.get(1).map_or_else(|| pair[0].clone(), |two| pair[0].add(two))).collect();
    }
    row.remove(0)
}

#[test]
fn a_sum_of_fifty_thousand_tensors_is_planned_and_right() {
    // Searching all nodes for their inputs, once per kernel that is split off, would take hours.
    const COUNT: usize = 50_000;
    let context = Context::on_host();
    let leaves: Vec<_> = (0..COUNT).map(|at| context.tensor(&[(at % 7) as f32], &[1]).unwrap()).collect();
    let wants = (0..COUNT).map(|at| (at % 7) as f32).sum::<f32>();
    let balanced = joined(leaves.iter().map(Tensor::lazy).collect());
    assert_eq!(balanced.run().unwrap().read::<f32>().unwrap(), [wants]);
    let in_a_row = leaves[1..].iter().fold(leaves[0].lazy(), |sum, leaf| sum.add(leaf));
    assert_eq!(in_a_row.run().unwrap().read::<f32>().unwrap(), [wants]);
    let from_the_end = leaves[1..].iter().fold(leaves[0].lazy(), |sum, leaf| leaf.lazy().add(&sum));
    assert_eq!(from_the_end.run().unwrap().read::<f32>().unwrap(), [wants]);
}

#[test]
fn a_hundred_thousand_ops_in_a_row_are_written_shown_computed_and_dropped() {
    const COUNT: usize = 100_000;
    let context = Context::on_host();
    let x = context.tensor(&[1.0_f32, -1.0], &[2]).unwrap();
    let deep = (0..COUNT).fold(x.lazy(), |expr, _| expr.add(1.0));
    assert_eq!(format!("{deep:?}"), "Expr(add -> [2] of f32)");
    assert_eq!(deep.run().unwrap().read::<f32>().unwrap(), [100_001.0, 99_999.0]);
    assert_eq!(deep.run_unfused().unwrap().read::<f32>().unwrap(), [100_001.0, 99_999.0]);
    // Each is used twice by the next: expanded, it would have 2^20,000 ops.
    let twice = (0..COUNT / 5).fold(x.lazy(), |expr, _| expr.mul(0.5).add(expr.mul(0.5)));
    assert_eq!(twice.run().unwrap().read::<f32>().unwrap(), [1.0, -1.0]);
    drop((deep, twice));
    assert_eq!((context.memory().tensors, context.memory().buffers), (1, 1));
}

#[test]
fn deep_and_wide_expressions_are_right_on_either_side() {
    for (side, context) in both() {
        let leaves: Vec<_> = (0..60_u8).map(|at| context.tensor(&[f32::from(at); 3], &[3]).unwrap()).collect();
        let sum = leaves[1..].iter().fold(leaves[0].lazy(), |sum, leaf| leaf.lazy().add(&sum));
        assert_eq!(sum.run().unwrap().read::<f32>().unwrap(), [1770.0; 3], "{side}");
        let deep = (0..1200).fold(leaves[0].lazy(), |expr, _| expr.add(1.0));
        assert_eq!(deep.run().unwrap().read::<f32>().unwrap(), [1200.0; 3], "{side}");
        let rows = joined(leaves.iter().map(Tensor::lazy).collect()).softmax(0);
        let (fused, alone) = (rows.run().unwrap(), rows.run_unfused().unwrap());
        assert_eq!(fused.read::<f32>().unwrap(), alone.read::<f32>().unwrap(), "{side}");
    }
}
