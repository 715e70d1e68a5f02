//! Lesson 3: a pixel function of your own, for both sides. The runtime owns the loop and fuses it with its neighbours.
//!
//! `cargo run --release --example 03_own_pixel_function`

use vramp::gpu::Device;
use vramp::kernels::{FnArgs, PixelFn, RowArgs, Spans};
use vramp::plan::catalog::{Fallback, Liveness, Setting, Status, ValueType};
use vramp::prelude::*;
use vramp::runtime::{Flow, Given, HandlerError, Kinds, Part, PixelHandler, PixelInfo, Worker};
use vramp::verify::{Options, verify};

/// Darkens every second row. Both sides see whole levels 0..=255 and one parameter, the brightness left in 1/256.
static SCANLINES: PixelFn = PixelFn {
    name: "scanlines",
    wgsl: "fn scanlines(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
        let dark = (c.xyz * int(k) + 128) >> vec3<u32>(8u);
        return select(c, vec4<i32>(dark, c.w), at.y % 2 == 1);
    }",
    words: 1,
    side: false,
    small: false,
    row,
    made: None,
    spans,
};

fn row(args: &RowArgs<'_>, pixels: &mut [[u8; 4]]) {
    let left = args.frame.words[0];
    for level in pixels.iter_mut().flat_map(|pixel| &mut pixel[..3]) {
        *level = ((u32::from(*level) * left + 128) >> 8) as u8;
    }
}

/// Where it has an effect: rows that it leaves alone are not visited on the cpu.
fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    if y % 2 == 1 { Spans::all(args.size) } else { Spans::NONE }
}

/// What is known of it before there is one; a pixel function in both spaces is what a filter is unless it says so.
pub static ENTRY: Entry = Entry {
    name: "scanlines",
    about: "darkens every second row",
    example: "pattern ! scanlines amount=0.5 ! null",
    settings: &[Setting {
        name: "amount",
        value: ValueType::Number { min: 0.0, max: 1.0 },
        fallback: Fallback::Is("0.5"),
        liveness: Liveness::Live,
        about: "how much darker; 1 is black",
    }],
    bare: Some("amount"),
    status: Status::Runs,
    ..Entry::FILTER
};

struct Scanlines(u32);

impl PixelHandler for Scanlines {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&SCANLINES)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut Given<'_>) -> Result<Flow, HandlerError> {
        give.part(&[self.0], &[]);
        Ok(Flow::Produced)
    }
}

/// The built-in kinds, and this one.
pub fn kinds() -> Result<Kinds, Box<dyn std::error::Error>> {
    let mut kinds = vramp::kinds();
    kinds.add(&ENTRY, |setup| {
        let amount = setup.settings.number("amount").unwrap_or(0.5);
        Ok(Worker::pixels(Scanlines((256.0 * (1.0 - amount)).round() as u32)))
    })?;
    Ok(kinds)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kinds = kinds()?;
    let text = "pattern kind=ball size=320x240 ! invert ! scanlines amount=0.4 ! gamma value=1.5 ! null";
    let spec = vramp::read(text, kinds.catalog())?;
    let graph = Graph::check(&spec, kinds.catalog(), &FileProbe)?;
    println!("{}", Session::of(&graph, &kinds).only(Space::Cpu).plan()?.to_text(false));

    // The same frames, fused and one by one, on the cpu and, where there is one, on the device.
    let device = Device::choose().open().inspect_err(|why| println!("cpu only: {why}")).ok();
    println!("{}", verify(&spec, &kinds, &Options { device, ..Options::default() })?);
    Ok(())
}
