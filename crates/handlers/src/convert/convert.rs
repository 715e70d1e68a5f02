//! `convert`: changes the pixel format.
//!
//! Size and rate do not change. Converting to the format that a frame already has changes nothing. Conversions between
//! two formats other than rgba8 go through rgba8. `vramp_kernels::stored` computes the pixels.
//!
//! YUV is BT.601 below 720 lines and BT.709 from 720 lines on, in limited range, unless a frame is tagged otherwise.
//! YUV that was made from rgba8 has no matrix tag and limited range. 4:2:0 chroma is centred unless a frame is tagged
//! otherwise, and a stream that is converted to rgba8 and back keeps its siting. Interlaced frames are converted like
//! progressive frames; the plan mentions this.

use vramp_kernels::stored::{self, StoredFormat, Way};
use vramp_plan::catalog::{
    Class, Entry, Family, FormatRule, Input, KernelDesc, KernelRule, Output, Setting, Units, Work,
};
use vramp_plan::{Content, Format, Size};
use vramp_runtime::{
    Call, Flow, FrameHandler, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, StartContext, Worker,
    Yuv, YuvMatrix,
};

use crate::control::pass_on;

pub static ENTRY: Entry = Entry {
    name: "convert",
    family: Family::Convert,
    about: "changes the pixel format; the planner inserts this handler where formats differ",
    example: "pattern size=64x64 ! convert format=i420 ! null",
    inputs: &[Input::ANY],
    outputs: &[Output { format: FormatRule::Setting("format"), ..Output::SAME }],
    settings: &[Setting::format("format", "output format")],
    bare: Some("format"),
    // A conversion to rgba8 reads each pixel once, in its place, and later functions can be fused with the conversion.
    // A conversion from rgba8 stores pixels in blocks: earlier functions can be fused with the conversion and run once
    // per pixel, but later functions cannot be fused.
    kernel: KernelRule::By {
        setting: "format",
        cases: &[("rgba8", KernelDesc::POINTWISE)],
        otherwise: KernelDesc::GATHER,
    },
    // Applying a matrix and sampling the chroma take about as long as two pixel functions.
    work: Work { class: Class::Pixel, units: Units::PerPixel(2.0) },
    keeps_lines: |_, _| true,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Convert {
    settings: Settings,
}

/// Input and output format; `None` is rgba8.
#[derive(Debug)]
struct Settings {
    from: Option<&'static StoredFormat>,
    into: Option<&'static StoredFormat>,
}

impl Settings {
    /// Whether both formats have luma, so that the YUV tags keep their meaning.
    fn keeps_luma(&self) -> bool {
        let luma = |stored: Option<&StoredFormat>| stored.is_some_and(|stored| stored.format != Format::Rgb8);
        luma(self.from) && luma(self.into)
    }
}

impl PixelHandler for Convert {
    fn parts(&self) -> Vec<Part> {
        let Settings { from, into } = self.settings;
        from.map(Part::From).into_iter().chain(into.map(Part::Into)).collect()
    }

    fn yuv(&self, given: Yuv) -> Yuv {
        if self.settings.keeps_luma() { given } else { Yuv { siting: given.siting, ..Yuv::default() } }
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        if let Some(from) = self.settings.from {
            give.part(&from.load_words(way(info.yuv, info.source), info.source), &[]);
        }
        if let Some(into) = self.settings.into {
            give.part(&into.store_words(way(self.yuv(info.yuv), info.size), info.size), &[]);
        }
        Ok(Flow::Produced)
    }
}

/// How to interpret the YUV of frames with these tags and of this size.
fn way(yuv: Yuv, size: Size) -> Way {
    let by_height = if size.height < 720 { YuvMatrix::Bt601 } else { YuvMatrix::Bt709 };
    Way::new(yuv.matrix.unwrap_or(by_height) == YuvMatrix::Bt709, yuv.full_range).sited(yuv.siting)
}

/// Passes on frames that already have the right format, on the CPU or the GPU.
struct SameFormat;

impl FrameHandler for SameFormat {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(pass_on(call))
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let to = setup.settings.format("format");
    let to = to.ok_or_else(|| HandlerError::failed("the setting `format` is missing"))?;
    let coming = setup.inputs.first().and_then(Option::as_ref).and_then(Content::frame);
    let from = coming.ok_or_else(|| HandlerError::failed("the input is not linked, so its format is unknown"))?;
    if from.format == to && to != Format::Rgba8 {
        return Ok(Worker::frames(SameFormat));
    }
    let settings = Settings { from: stored::of(from.format), into: stored::of(to) };
    Ok(Worker::pixels(Convert { settings }))
}
