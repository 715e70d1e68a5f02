use vramp::tensor::{Context, TensorError};

pub fn main() -> Result<(), TensorError> {
    let (context, why) = Context::open(); // the best device, or the CPU
    println!("{why}");
    let x = context.tensor(&[1.0_f32, -2.0, 3.0, -4.0], &[2, 2])?;
    let y = x.matmul(&x)?.softmax(-1)?; // one op after another

    // A lazy expression runs as a whole: product, sum and activation are one kernel.
    let z = x.lazy().matmul(&x).add(&y).gelu().run()?;
    println!("{:?}", z.read::<f32>()?);
    Ok(())
}
