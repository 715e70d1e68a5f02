//! Lesson 4: tensors. Values go to the device with the first op and come back when somebody reads.
//!
//! `cargo run --release --example 04_tensors`

use vramp::tensor::Context;

/// The lesson.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The best device there is, or the host: every op runs on both.
    let (context, why) = Context::open();
    println!("{why}");

    // Two rows of three values, and one row that is added to each of them.
    let values = context.tensor(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let row = context.tensor(&[0.5_f32, 0.0, -0.5], &[3])?;

    // Op by op: each is done, and memory of what is dropped is used again.
    let shares = values.add(&row)?.softmax(-1)?;

    // As one expression: whatever can be is one kernel, and nothing in between is ever stored.
    let together = values.lazy().mul(2.0).add(&row).gelu().run()?;

    // Until here nothing came back. A view shares the memory that it looks at.
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
