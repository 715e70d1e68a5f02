//! `rotate`: rotates clockwise by quarter turns. Pixels are copied unchanged. `warp` rotates by other angles.

use vramp_kernels::head::rotate;
use vramp_plan::Size;
use vramp_plan::catalog::{Entry, KernelDesc, KernelRule, Output, Setting, SizeRule};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "rotate",
    about: "rotates the image clockwise by quarter turns",
    example: "pattern size=64x48 ! rotate degrees=90 ! null",
    outputs: &[Output { size: SizeRule::Turned("degrees"), ..Output::VIDEO }],
    settings: &[Setting::choice("degrees", &["90", "180", "270"], "clockwise angle in degrees").default("90")],
    bare: Some("degrees"),
    kernel: KernelRule::Always(KernelDesc::GATHER),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Rotate {
    settings: Settings,
}

#[derive(Debug)]
struct Settings {
    quarter_turns: u32,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let quarter_turns = match setup.word("degrees")? {
            "90" => 1,
            "180" => 2,
            _ => 3,
        };
        Ok(Settings { quarter_turns })
    }
}

impl PixelHandler for Rotate {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&rotate::ROTATE)]
    }

    fn size(&self, source: Size) -> Size {
        match self.settings.quarter_turns {
            2 => source,
            _ => Size { width: source.height, height: source.width },
        }
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&rotate::pack(self.settings.quarter_turns), &[]);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(Rotate { settings: Settings::of(setup)? }))
}
