//! Lesson 7: tensors inside a pipeline. Our handler treats each frame as a tensor, computes how much brighter each
//! pixel is than the mean, and stores the result as the pixel's alpha. `mix mode=over` then draws the frame over a
//! blurred image. Frame, ops, mask and mix stay on the GPU and share one submit.
//!
//! `cargo run --release --example 07_tensor_mask`

use vramp::prelude::*;
use vramp::tensor::{ChannelLayout, Context, Expr, ImageSpec, Reduction, Tensor, TensorError};

/// The weight of each colour in the brightness.
#[derive(Default)]
struct Standout(Option<Tensor>);

impl TensorHandler for Standout {
    fn start(&mut self, context: &Context, _: &mut StartContext<'_>) -> Result<(), TensorError> {
        self.0 = Some(context.tensor(&[0.2126_f32, 0.7152, 0.0722], &[3, 1])?);
        Ok(())
    }

    fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
        let weights = self.0.as_ref().expect("made at the start");
        let picture = ImageSpec { channels: "rgb".to_owned(), layout: ChannelLayout::Nhwc, ..ImageSpec::default() };
        let colours = inputs[0].image_to_tensor(&picture)?;
        let luma = colours.matmul(weights)?;
        let mean = luma.reduce_all(Reduction::Mean)?;
        let alpha = luma.lazy().sub(&mean).mul(12.0).sigmoid();
        let with_alpha = Expr::concat(&[colours.lazy(), alpha], -1);
        with_alpha.tensor_to_image(&ImageSpec { channels: "rgba".to_owned(), ..picture }).run()
    }
}

/// Tensor handlers have no kernel that could be fused. By default a filter runs on either side.
static ENTRY: Entry = Entry {
    name: "standout",
    about: "sets alpha by how much a pixel stands out",
    example: "pattern ! standout ! null",
    kernel: KernelRule::None,
    ..Entry::FILTER
};

/// The built-in handlers and `standout`.
pub fn registry() -> Registry {
    let mut registry = vramp::registry();
    registry.add(&ENTRY, |_| Ok(tensors(Standout::default()))).expect("no built-in handler is called standout");
    registry
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join("vramp-standout.png");
    let text = format!(
        "pattern kind=ball size=320x240 frames=10 label=false name=cam ! blur sigma=12 ! mix mode=over amount=1 name=out ! \
         every n=9 ! png path={}; cam. ! standout ! out.b",
        path.display()
    );
    let mut pipeline = Pipeline::parse(text).registry(&registry()).build()?;
    println!("{}", pipeline.plan());
    let report = pipeline.run()?;
    println!(
        "{} frames, {} transfers; {}",
        report.frames,
        report.counters.uploads + report.counters.downloads,
        path.display()
    );
    Ok(())
}
