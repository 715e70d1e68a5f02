//! Parts that several test files share: the registry, a device, and handlers for tests.

use std::sync::OnceLock;

use vramp::gpu::Device;
use vramp::kernels::{PixelFn, RowArgs};
use vramp::plan::catalog::{Entry, Fallback, Liveness, Output, RateRule, Setting, SizeRule, ValueType};
use vramp::plan::{Format, Size};
use vramp::runtime::{Call, Flow, FrameHandler, HandlerError, Registry};

pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(vramp::registry)
}

/// One device for all tests, which may run on it at the same time.
pub fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| Device::choose().open().expect("an adapter; Mesa's software driver is one package away"))
}

/// Passes a frame through.
pub fn pass(call: &mut Call<'_>) -> Result<Flow, HandlerError> {
    let frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
    call.send(0, frame);
    Ok(Flow::Produced)
}

/// A sink whose handler stores frames; each test registers its own maker.
pub static KEEPS: Entry =
    Entry { name: "keeps", about: "keeps its frames", example: "pattern ! keeps", blocking: false, ..Entry::SINK };

pub const SIZE: Setting = Setting {
    name: "size",
    value: ValueType::Size,
    fallback: Fallback::Is("64x64"),
    liveness: Liveness::Fixed,
    about: "the first size",
};

pub static CHANGING: Entry = Entry {
    name: "changing",
    about: "frames whose size changes all the time",
    example: "changing ! null",
    outputs: &[Output { size: SizeRule::Probed(Some("size")), rate: RateRule::Probed(None), ..Output::VIDEO }],
    settings: &[SIZE],
    blocking: false,
    ..Entry::SOURCE
};

/// A source that changes the frame size after every few frames.
pub struct Changing {
    pub sizes: &'static [Size],
    pub every: u64,
}

impl FrameHandler for Changing {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let number = call.now().number;
        let mut frame = call.lend(Format::Rgba8, self.sizes[(number / self.every) as usize % self.sizes.len()])?;
        frame.fill().expect("it was just lent").fill(number as u8);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// A pixel function that adds its parameter to red.
pub const ADD_RED: PixelFn = PixelFn {
    name: "add_red",
    wgsl: "fn add_red(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    return vec4<i32>((c.x + int(k)) & 255, c.yzw);
}",
    words: 1,
    row: |args: &RowArgs<'_>, pixels: &mut [[u8; 4]]| {
        for pixel in pixels {
            pixel[0] = pixel[0].wrapping_add(args.frame.words[0] as u8);
        }
    },
    ..PixelFn::PLAIN
};
