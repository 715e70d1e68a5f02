//! `lut`: maps colours through the table of a `.cube` file. Alpha is kept.
//!
//! A file becomes one of three kernels: one table for all channels, one table for each channel, or a cube of colours.
//! `cube_file` reads the file once, at the start. The positions of levels in a table, and the curves before a cube, are
//! then computed in double precision.

mod cube_file;

use vramp_kernels::PixelFn;
use vramp_kernels::pixel::channels::{self, CHANNELS};
use vramp_kernels::pixel::cube::{self, CUBE};
use vramp_kernels::pixel::table::{self, TABLE, table_of};
use vramp_plan::catalog::{Class, Entry, PathUse, Setting, Units, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use cube_file::CubeFile;

pub static ENTRY: Entry = Entry {
    name: "lut",
    about: "applies the colour table of a .cube file",
    example: "pattern size=64x64 ! lut path=film.cube ! null",
    settings: &[Setting::path("path", PathUse::Read, ".cube file with a 1-D or 3-D table").rebuild()],
    bare: Some("path"),
    // For each pixel, the four corners of a tetrahedron in the cube are read and weighted.
    work: Work { class: Class::Pixel, units: Units::PerPixel(4.0) },
    small: Some(|_, _, _| cube::small_bytes(cube::MOST_ALONG)),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Lut {
    state: State,
}

#[derive(Debug)]
struct Settings<'a> {
    path: &'a str,
}

impl<'a> Settings<'a> {
    fn of(setup: &'a Setup<'_>) -> Result<Settings<'a>, HandlerError> {
        Ok(Settings { path: setup.text("path")? })
    }
}

/// The kernel for a file.
#[derive(Debug)]
struct State {
    function: &'static PixelFn,
    words: Vec<u32>,
    small: Vec<u32>,
}

impl State {
    fn of(file: &CubeFile) -> Option<State> {
        let shaped = |channel: usize, level: usize| {
            let v = level as f64 / 255.0;
            file.curves.as_ref().map_or(v, |curves| curves.at(channel, v))
        };
        if let Some(cube) = &file.cube {
            let places = std::array::from_fn(|c| std::array::from_fn(|v| cube.domain[c].place(shaped(c, v))));
            let cube::Packed { words, small } = cube::pack(cube.along, &cube.entries, &places)?;
            return Some(State { function: &CUBE, words: words.to_vec(), small });
        }
        let tables: [table::LookupTable; 3] = std::array::from_fn(|c| table_of(|v| 255.0 * shaped(c, v as usize)));
        let (function, words): (&'static PixelFn, _) = match tables {
            [r, g, b] if r == g && g == b => (&TABLE, table::pack(&r).to_vec()),
            _ => (&CHANNELS, channels::pack(&tables).to_vec()),
        };
        Some(State { function, words, small: Vec::new() })
    }
}

impl PixelHandler for Lut {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(self.state.function)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &self.state.small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { path } = Settings::of(setup)?;
    let file = CubeFile::read(path).map_err(HandlerError::failed)?;
    let state = State::of(&file).ok_or_else(|| HandlerError::failed(format!("`{path}` has no table")))?;
    Ok(Worker::pixels(Lut { state }))
}
