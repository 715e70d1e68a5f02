//! `crop`: cuts out a rectangle. A rectangle that reaches beyond the frame is refused, not padded.

use vramp_kernels::head::crop;
use vramp_plan::Size;
use vramp_plan::catalog::{Entry, KernelDesc, KernelRule, Output, Setting, SizeRule};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "crop",
    about: "cuts out a rectangle",
    example: "pattern size=64x64 ! crop x=10 y=5 size=32x24 ! null",
    outputs: &[Output { size: SizeRule::Cut("x", "y", "size"), ..Output::VIDEO }],
    settings: &[
        Setting::int("x", 0..=65_535, "left edge of the rectangle in pixels").default("0").live(),
        Setting::int("y", 0..=65_535, "top edge of the rectangle in pixels").default("0").live(),
        Setting::size("size", "width and height of the rectangle"),
    ],
    bare: Some("size"),
    kernel: KernelRule::Always(KernelDesc::GATHER),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Crop {
    settings: Settings,
}

#[derive(Debug)]
struct Settings {
    x: u32,
    y: u32,
    size: Size,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { x: setup.int("x")?, y: setup.int("y")?, size: setup.size("size")? })
    }
}

impl PixelHandler for Crop {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&crop::CROP)]
    }

    fn size(&self, _: Size) -> Size {
        self.settings.size
    }

    /// Checks the rectangle again: the plan has checked the size of the first frame, but later frames may have other
    /// sizes.
    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let (Settings { x, y, size }, from) = (&self.settings, info.source);
        if x + size.width > from.width || y + size.height > from.height {
            return Err(HandlerError::failed(format!(
                "{size} at {x},{y} is not within the frame of {from}; choose x, y and size within {from}, or \
                 put a `resize` before `crop`"
            )));
        }
        give.part(&crop::pack(*x, *y), &[]);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(Crop { settings: Settings::of(setup)? }))
}
