//! `boxblur`: replaces each pixel by the mean of the square around it.
//!
//! The side of the square is an odd number of pixels. Pixels beyond the border repeat the outermost pixels.

use vramp_kernels::head::boxblur;
use vramp_plan::Size;
use vramp_plan::catalog::{self, Class, Entry, KernelDesc, KernelRule, Setting, Units, ValueType, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "boxblur",
    about: "blurs with the mean of a square",
    example: "pattern size=64x64 ! boxblur size=9 ! null",
    settings: &[Setting::of(
        "size",
        ValueType::Odd { max: boxblur::MOST_SIDE as i64, zero: false },
        "side of the square in pixels",
    )
    .default("9")
    .live()],
    bare: Some("size"),
    kernel: KernelRule::Reading(KernelDesc::separable(9), side),
    work: Work { class: Class::Tap, units: Units::PerPixelBy(|settings| f64::from(2 * side(settings))) },
    ..Entry::FILTER
};

fn side(settings: &catalog::SettingValues) -> u32 {
    settings.int("size").unwrap_or(9) as u32
}

#[derive(Debug)]
struct BoxBlur {
    settings: Settings,
}

#[derive(Debug)]
struct Settings {
    side: u32,
}

impl PixelHandler for BoxBlur {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&boxblur::BOXBLUR)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        // The parameters are packed for each frame, because they depend on its size: a frame of a single row or column
        // is summed along one axis only.
        let words = boxblur::pack(self.settings.side, info.source).ok_or_else(|| refused(self.settings.side))?;
        give.part(&words, &[]);
        Ok(Flow::Produced)
    }
}

fn refused(side: u32) -> HandlerError {
    let most = boxblur::MOST_SIDE;
    HandlerError::failed(format!("a square of side {side} is not supported: the side must be odd and at most {most}"))
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings { side: side(setup.settings) };
    // An unsupported side is refused here, not only with the first frame.
    boxblur::pack(settings.side, Size { width: 1, height: 1 }).ok_or_else(|| refused(settings.side))?;
    Ok(Worker::pixels(BoxBlur { settings }))
}
