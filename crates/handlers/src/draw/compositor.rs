//! `compositor`: places up to eight images in one frame.
//!
//! Only linked inputs count, in the order of their numbers. A grid has as many columns as rows, or one column more.
//! `pip` fills the output with the first input and puts the other inputs over it. Each of the other inputs is a quarter
//! as wide and as high as the output. These small images are placed from the lower right corner to the left, four in a
//! row, and then in the row above.
//!
//! Images are stretched to their cells and replace what is below them, alpha included. Every pixel is written: pixels
//! without an input are opaque black, and an input that has not sent a frame yet is transparent. Inputs may have any
//! size, and their sizes may change. A cell of a tiny output may have no pixels.

use vramp_kernels::head::compositor::{self, COMPOSITOR, CompositorLayout};
use vramp_plan::Size;
use vramp_plan::catalog::{
    Class, Entry, Family, Input, KernelDesc, KernelRule, Output, Setting, SizeRule, Units, Work,
};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "compositor",
    family: Family::Draw,
    about: "places up to eight images in one frame",
    example: "pattern size=64x48 ! compositor size=96x54 name=all ! null; pattern kind=bars size=32x32 ! all.in1",
    inputs: &[
        Input { name: "in0", ..Input::VIDEO },
        Input { name: "in1", required: false, ..Input::VIDEO },
        Input { name: "in2", required: false, ..Input::VIDEO },
        Input { name: "in3", required: false, ..Input::VIDEO },
        Input { name: "in4", required: false, ..Input::VIDEO },
        Input { name: "in5", required: false, ..Input::VIDEO },
        Input { name: "in6", required: false, ..Input::VIDEO },
        Input { name: "in7", required: false, ..Input::VIDEO },
    ],
    outputs: &[Output { size: SizeRule::SettingOrInput("size"), ..Output::VIDEO }],
    settings: &[
        // The CPU computes the cells and passes them to the kernel as parameters.
        Setting::choice(
            "layout",
            &["grid", "row", "column", "pip"],
            "layout of the inputs; pip puts the other inputs as small images over the first input",
        )
        .default("grid")
        .live(),
        Setting::size("size", "output size; defaults to the size of the lead input").optional(),
    ],
    bare: Some("layout"),
    kernel: KernelRule::Always(KernelDesc { reads_per_pixel: 4, ..KernelDesc::GATHER }),
    small: Some(|_, _, size| compositor::most_small_bytes(size)),
    work: Work { class: Class::Sample, units: Units::PerPixel(1.0) },
    ..Entry::FILTER
};

#[derive(Debug)]
struct Compositor {
    settings: Settings,
    state: State,
}

#[derive(Debug)]
struct Settings {
    layout: CompositorLayout,
    size: Option<Size>,
    /// Number of linked inputs.
    linked: usize,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let layout = match setup.settings.text("layout") {
            Some("grid") | None => CompositorLayout::Grid,
            Some("row") => CompositorLayout::Row,
            Some("column") => CompositorLayout::Column,
            Some("pip") => CompositorLayout::Pip,
            Some(other) => {
                return Err(HandlerError::failed(format!(
                    "layout={other} is not a layout; use grid, row, column or pip"
                )));
            }
        };
        let linked = setup.inputs.iter().flatten().count();
        Ok(Settings { layout, size: setup.settings.size("size"), linked: linked.max(1) })
    }
}

/// The cells of the last frame, and the sizes that they were computed for.
#[derive(Debug, Default)]
struct State {
    /// The input sizes of the next frame, and the index of the lead input.
    coming: (Vec<Size>, usize),
    /// The input sizes and the output size that the cells were computed for.
    made_for: Option<(Vec<Size>, Size)>,
    words: [u32; 1],
    small: Vec<u32>,
}

impl PixelHandler for Compositor {
    fn parts(&self) -> Vec<Part> {
        vec![Part::HeadOf(&COMPOSITOR, self.settings.linked - 1)]
    }

    fn pictures(&mut self, sizes: &[Size], lead: usize) {
        let (own, leads) = &mut self.state.coming;
        own.clear();
        own.extend_from_slice(sizes);
        *leads = lead;
    }

    fn size(&self, source: Size) -> Size {
        // With a single input, only `source` has the size of that input.
        if self.settings.linked == 1 {
            return self.settings.size.unwrap_or(source);
        }
        let (sizes, lead) = &self.state.coming;
        self.settings.size.or_else(|| sizes.get(*lead).copied()).unwrap_or(source)
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let State { coming: (sizes, _), made_for, words, small } = &mut self.state;
        if self.settings.linked == 1 {
            sizes.clear();
            sizes.push(info.source);
        }
        if made_for.as_ref().is_none_or(|(pictures, size)| pictures != sizes || *size != info.size) {
            let cells = compositor::cells(self.settings.layout, sizes.len(), info.size);
            (*words, *small) = (compositor::pack(&cells), compositor::small(&cells, sizes, info.size));
            *made_for = Some((sizes.clone(), info.size));
        }
        give.part(words, small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(Compositor { settings: Settings::of(setup)?, state: State::default() }))
}
