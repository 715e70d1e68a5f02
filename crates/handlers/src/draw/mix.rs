//! `mix`: blends two images of the same size. Amount 0 gives the first image.

use vramp_kernels::pixel::mix::{self, MIX, Mode};
use vramp_plan::catalog::{Entry, Family, Input, Setting};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "mix",
    family: Family::Draw,
    about: "blends two images of the same size",
    example: "pattern ! mix amount=0.3 name=both ! null; pattern kind=bars ! both.b",
    inputs: &[Input { name: "a", ..Input::VIDEO }, Input { name: "b", ..Input::VIDEO }],
    settings: &[
        Setting::number("amount", 0.0..=1.0, "share of the second image; 0 gives only the first").default("0.5").live(),
        Setting::choice("mode", &["mix", "over", "add", "multiply", "screen", "difference"], "blend mode")
            .default("mix")
            .live(),
    ],
    bare: Some("amount"),
    equal_sizes: true,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Mix {
    state: State,
}

#[derive(Debug)]
struct Settings {
    mode: Mode,
    amount: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Settings {
        let mode = match setup.settings.text("mode") {
            Some("over") => Mode::Over,
            Some("add") => Mode::Add,
            Some("multiply") => Mode::Multiply,
            Some("screen") => Mode::Screen,
            Some("difference") => Mode::Difference,
            _ => Mode::Mix,
        };
        Settings { mode, amount: setup.settings.number("amount").unwrap_or(0.5) }
    }
}

/// The parameters, which never change.
#[derive(Debug)]
struct State {
    words: [u32; 2],
}

impl PixelHandler for Mix {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&MIX)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &[]);
        Ok(Flow::Produced)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { mode, amount } = Settings::of(setup);
    Ok(Worker::pixels(Mix { state: State { words: mix::pack(mode, amount) } }))
}
