//! Lesson 3: your own pixel function, for CPU and GPU. The runtime loops over pixels, and fuses the function with its
//! neighbours.
//!
//! `cargo run --release --example 03_own_pixel_function`

use vramp::gpu::Device;
use vramp::kernels::{FnArgs, PixelFn, RowArgs, Spans};
use vramp::prelude::*;
use vramp::verify::{Options, verify};

/// Darkens every second row. The CPU and the GPU get whole levels 0..=255 and one parameter, the remaining brightness
/// in 1/256.
static SCANLINES: PixelFn = PixelFn {
    name: "scanlines",
    wgsl: "fn scanlines(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
        let dark = (c.xyz * int(k) + 128) >> vec3<u32>(8u);
        return select(c, vec4<i32>(dark, c.w), at.y % 2 == 1);
    }",
    words: 1,
    row,
    spans,
    ..PixelFn::PLAIN
};

fn row(args: &RowArgs<'_>, pixels: &mut [[u8; 4]]) {
    let left = args.frame.words[0];
    for level in pixels.iter_mut().flat_map(|pixel| &mut pixel[..3]) {
        *level = ((u32::from(*level) * left + 128) >> 8) as u8;
    }
}

/// The part of a row that the function changes. The CPU skips rows that the function does not change.
fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    if y % 2 == 1 { Spans::all(args.size) } else { Spans::NONE }
}

struct Scanlines(u32);

impl Scanlines {
    /// The description that the planner uses before a handler exists. `Entry::FILTER` describes a pixel function in
    /// both spaces.
    pub const ENTRY: Entry = Entry {
        name: "scanlines",
        about: "darkens every second row",
        example: "pattern ! scanlines amount=0.5 ! null",
        settings: &[Setting::number("amount", 0.0..=1.0, "how much darker; 1 is black").default("0.5").live()],
        bare: Some("amount"),
        ..Entry::FILTER
    };

    fn new(setup: &Setup<'_>) -> Result<Scanlines, HandlerError> {
        Ok(Scanlines((256.0 * (1.0 - setup.number("amount")?)).round() as u32))
    }
}

impl PixelHandler for Scanlines {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&SCANLINES)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&[self.0], &[]);
        Ok(Flow::Produced)
    }
}

/// The built-in handlers and `scanlines`.
pub fn registry() -> Registry {
    let mut registry = vramp::registry();
    registry.add(&Scanlines::ENTRY, Scanlines::new).expect("no built-in handler is called scanlines");
    registry
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry();
    let text = "pattern kind=ball size=320x240 ! invert ! scanlines amount=0.4 ! gamma value=1.5 ! null";
    let builder = Pipeline::parse(text).registry(&registry).options(RunOptions::new().only(Space::Cpu));
    println!("{}", builder.plan()?);

    // Compare the frames, fused and handler by handler, on the CPU and, if there is a GPU, on the GPU.
    let device = Device::choose().open().inspect_err(|why| println!("cpu only: {why}")).ok();
    let spec = vramp::read(text, registry.catalog())?;
    println!("{}", verify(&spec, &registry, &Options { device, ..Options::default() })?);
    Ok(())
}
