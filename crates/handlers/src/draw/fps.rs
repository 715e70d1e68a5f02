//! `fps`: writes frame rate, frame time and number of handlers in the top left corner.
//!
//! Frame rate and frame time come with the frame: they were measured once, at the source.

use vramp_kernels::Pixel;
use vramp_kernels::pixel::glyphs::GLYPHS;
use vramp_plan::Size;
use vramp_plan::catalog::{self, Class, Entry, Family, Units, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::letters::{Fonts, Template, TemplatePiece, TextBlock, TextPlacement, TextValue, TextValues, coverage_bytes};

use super::line;

pub static ENTRY: Entry = Entry {
    name: "fps",
    family: Family::Draw,
    about: "writes frame rate, frame time and number of handlers on the frame",
    example: "pattern ! fps ! null",
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    // The coverage of the text.
    small: Some(small_bytes),
    ..Entry::FILTER
};

/// Number of pixels of one large line ("FPS: 123.4") and three small lines, of which one ("dt: 12.3ms") has about ten
/// characters and the other two have about twenty characters each.
fn touched(_: &catalog::SettingValues, _: Size, frame: Size) -> f64 {
    let lines = line(10, 36.0, frame) + line(10, 18.0, frame) + 2.0 * line(20, 18.0, frame);
    lines.min(frame.pixels() as f64)
}

const GREEN: Pixel = [0, 255, 0, 255];
const WHITE: Pixel = [255; 4];
/// Number of coverage bytes of two text blocks, one per colour. Each block has two lines with a gap between them; five
/// lines are an upper bound of the height of a block.
fn small_bytes(_: &catalog::SettingValues, _: Size, frame: Size) -> u64 {
    2 * coverage_bytes(
        [(12, LARGE_PX), (24, SMALL_PX), (24, SMALL_PX), (24, SMALL_PX), (24, SMALL_PX)].into_iter(),
        frame,
    )
}

const LARGE_PX: u32 = 36;
const SMALL_PX: u32 = 18;

struct Fps {
    state: State,
}

/// The number of handlers in the graph. The user cannot set anything.
#[derive(Debug)]
struct Settings {
    handlers: usize,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Settings {
        Settings { handlers: setup.handlers }
    }
}

/// One text block per colour.
struct State {
    green: TextBlock,
    white: TextBlock,
}

impl PixelHandler for Fps {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&GLYPHS); 2]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let values = TextValues::of(info);
        for writing in [&mut self.state.green, &mut self.state.white] {
            let (words, small) = writing.set(&values, info.size).map_err(HandlerError::failed)?;
            give.part(words, small);
        }
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { handlers } = Settings::of(setup);
    let large =
        |y: i32, pieces: Vec<TemplatePiece>| (Template::line(pieces), TextPlacement { x: 20, y, size_px: LARGE_PX });
    let small =
        |y: i32, pieces: Vec<TemplatePiece>| (Template::line(pieces), TextPlacement { x: 20, y, size_px: SMALL_PX });
    let green = [
        large(40, vec![TemplatePiece::fixed("FPS: "), TemplatePiece::Value(TextValue::Fps)]),
        small(135, vec![TemplatePiece::fixed("Delta Time: Enabled")]),
    ];
    let white = [
        small(
            75,
            vec![TemplatePiece::fixed("dt: "), TemplatePiece::Value(TextValue::Delta), TemplatePiece::fixed("ms")],
        ),
        small(105, vec![TemplatePiece::fixed(format!("Pipeline: {handlers} Handlers"))]),
    ];
    let mut fonts = Fonts::embedded();
    let green = TextBlock::of(&mut fonts, GREEN, &green).map_err(HandlerError::failed)?;
    let white = TextBlock::of(&mut fonts, WHITE, &white).map_err(HandlerError::failed)?;
    Ok(Worker::pixels(Fps { state: State { green, white } }))
}
