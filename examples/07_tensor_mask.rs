//! Lesson 7: tensors inside a pipeline. Our handler treats each frame as a tensor, computes how much brighter each
//! pixel is than the mean, and stores the result as the pixel's alpha. `mix mode=over` then draws the frame over a
//! blurred image. Frame, ops, mask and mix stay on the GPU and share one submit.
//!
//! `cargo run --release --example 07_tensor_mask`

use vramp::gpu::Recording;
use vramp::prelude::*;
use vramp::tensor::{ChannelLayout, Context, DType, ImageSpec, Tensor, TensorError};

#[derive(Default)]
struct Standout {
    /// Made with the first frame, on that frame's device.
    context: Option<Context>,
    /// The weight of each colour in the brightness, uploaded once.
    weights: Option<Tensor>,
}

impl Standout {
    /// The handler has no kernel that could be fused, and runs in the memory space of its frames.
    pub const ENTRY: Entry = Entry {
        name: "standout",
        about: "sets alpha by how much a pixel stands out",
        example: "pattern ! standout ! null",
        spaces: &[Space::Gpu, Space::Cpu],
        kernel: KernelRule::None,
        ..Entry::FILTER
    };
}

impl FrameHandler for Standout {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        let device = call.device().cloned();
        let context = match &self.context {
            Some(context) => context.clone(),
            None => match &device {
                Some(device) => Context::on(device).map_err(HandlerError::failed)?,
                None => Context::on_host(),
            },
        };
        self.context = Some(context.clone());
        let weights = match &self.weights {
            Some(weights) => weights.clone(),
            None => context.tensor(&[0.2126_f32, 0.7152, 0.0722], &[3, 1]).map_err(HandlerError::failed)?,
        };
        self.weights = Some(weights.clone());
        let meta = *frame.meta();
        let shape = [meta.picture().size.height as usize, meta.picture().size.width as usize, 4];
        let made = match frame.buffer() {
            Some(buffer) => {
                // The tensor uses the frame's own memory, and the ops are recorded into the frame's own submit.
                let mut recording = Recording::new();
                let buffer = context.record_into(&mut recording, || {
                    standing_out(&context.tensor_over(buffer, &shape, DType::U8)?, &weights)?.as_buffer()
                });
                call.record(&mut recording)?;
                Frame::on_device(meta, buffer.map_err(HandlerError::failed)?)
            }
            None => {
                let tensor = context.tensor(&frame.bytes()[..], &shape);
                let bytes = tensor.and_then(|tensor| standing_out(&tensor, &weights)?.read::<u8>());
                let mut made = call.lend(meta.picture().format, meta.picture().size)?;
                if let Some(mut into) = made.fill() {
                    into.copy_from_slice(&bytes.map_err(HandlerError::failed)?);
                }
                made
            }
        };
        call.send(0, made);
        Ok(Flow::Produced)
    }

    /// Releases the handler's tensors. They use the pipeline's memory, and would be counted as leaks.
    fn stop(&mut self) -> Result<(), HandlerError> {
        (self.context, self.weights) = (None, None);
        Ok(())
    }

    fn leave_device(&mut self) -> bool {
        (self.context, self.weights) = (None, None);
        true
    }
}

/// The same colours, with an alpha that says how far each pixel's brightness is above the mean.
fn standing_out(frame: &Tensor, weights: &Tensor) -> Result<Tensor, TensorError> {
    let picture = ImageSpec { channels: "rgb".to_owned(), layout: ChannelLayout::Nhwc, ..ImageSpec::default() };
    let colours = frame.image_to_tensor(&picture)?;
    let luma = colours.matmul(weights)?;
    let mean = luma.reduce_all(vramp::tensor::Reduction::Mean)?;
    let alpha = luma.lazy().sub(&mean).mul(12.0).sigmoid();
    let with_alpha = vramp::tensor::Expr::concat(&[colours.lazy(), alpha], -1);
    with_alpha.tensor_to_image(&ImageSpec { channels: "rgba".to_owned(), ..picture }).run()
}

/// The built-in handlers and `standout`.
pub fn registry() -> Registry {
    let mut registry = vramp::registry();
    registry.add(&Standout::ENTRY, |_| Ok(Standout::default())).expect("no built-in handler is called standout");
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
