//! Lesson 4: tensors. Values are uploaded with the first op and downloaded when the program reads them.
//!
//! `cargo run --release --example 04_tensors`

use vramp::tensor::Context;

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The best device, or the CPU. Every op runs on either.
    let (context, why) = Context::open();
    println!("{why}");

    // Two rows of three values, and one row that is added to each of the two.
    let values = context.tensor(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let row = context.tensor(&[0.5_f32, 0.0, -0.5], &[3])?;

    // Op by op: each runs at once, and the memory of dropped tensors is reused.
    let shares = values.add(&row)?.softmax(-1)?;

    // As one expression: ops are fused into as few kernels as possible, without intermediate tensors.
    let together = values.lazy().mul(2.0).add(&row).gelu().run()?;

    // Nothing has been downloaded so far. A view shares the memory of its tensor.
    assert_eq!(context.transfers().host_reads, 0);
    let last = together.view(3, 3)?;
    for (name, tensor) in [("shares", &shares), ("together", &together), ("its last row", &last)] {
        println!("{name} {}: {:.3?}", tensor.shape(), tensor.read::<f32>()?);
    }

    let total: f32 = shares.read::<f32>()?.iter().sum();
    assert!((total - 2.0).abs() < 1e-5, "the shares of each row add up to 1");
    println!("{:?}", context.transfers());
    Ok(())
}
