//! Formats other than rgba8: how what is stored becomes pixels, and pixels what is stored.
//!
//! Owns the description of a format as data: its WGSL and its rows, both ways, and the parameters of a frame.
//! Does not change pixels, and does not spread anything over threads.
//!
//! Always: chroma is the mean of two by two pixels' area around its place, and is bilinear between its places on the way
//! back; its place is the centre of the pixels it covers, except for 4:2:0 that is sited otherwise. Alpha is
//! 255 on the way to pixels and dropped on the way from them. gray8 is the luma of a picture. Bytes that fill a row up
//! are zero.

pub(crate) mod pack;
pub(crate) mod planes;
mod sited;
pub(crate) mod unpack;
pub(crate) mod way;

mod gray8;
mod i420;
mod i422;
mod i444;
mod nv12;
mod rgb8;

pub use planes::PlaneRows;
pub use way::Way;

use vramp_plan::{Format, Size};

use crate::picture::Pixel;
use pack::Packing;
use planes::Planes;
use unpack::{Between, Unpacking};

/// A format on both sides.
#[derive(Debug)]
pub struct StoredFormat {
    /// The format; its word is that of its WGSL functions and of both files.
    pub format: Format,
    /// WGSL that defines `fn NAME_load(at: vec2<i32>, k: u32) -> vec4<i32>`, the pixel at a place, and `fn
    /// NAME_store(block: vec2<i32>, k: u32)`, which stores a block of pixels. `stored_level(k, plane, at)` and
    /// `stored_word(k, plane, column, row)` read what is stored, `made(at)` is a pixel to be stored, and
    /// `put(k, plane, column, row, w)` stores a word.
    pub(crate) wgsl: &'static str,
    /// Width and height of the blocks that are stored: whole words of every plane.
    pub(crate) block: [u32; 2],
    /// Makes one row of pixels.
    pub(crate) unpack: fn(&Unpacking<'_>, &mut Between, y: usize, &mut [Pixel]),
    /// Stores two rows, or one that is the last: then both are the same.
    pub(crate) pack: fn(&Packing, &mut Between, PixelRows<'_>, &mut PlaneRows<'_>, y: usize),
}

/// Two rows of pixels that are stored together, and their neighbours; at the border a row is its own neighbour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PixelRows<'a> {
    pub(crate) own: [&'a [Pixel]; 2],
    /// The rows above and below; only chroma that is sited on lines looks at them.
    pub(crate) around: [&'a [Pixel]; 2],
}

/// Words that reading a stored frame takes.
pub(crate) const LOAD_WORDS: usize = 14;
/// Words that storing one takes.
pub(crate) const STORE_WORDS: usize = 18;

/// How a format is stored; none for rgba8, which is pixels.
pub fn of(format: Format) -> Option<&'static StoredFormat> {
    Some(match format {
        Format::Rgba8 => return None,
        Format::Rgb8 => &rgb8::RGB8,
        Format::I444 => &i444::I444,
        Format::I422 => &i422::I422,
        Format::I420 => &i420::I420,
        Format::Nv12 => &nv12::NV12,
        Format::Gray8 => &gray8::GRAY8,
    })
}

impl StoredFormat {
    /// The parameter words for reading frames of this size.
    pub fn load_words(&self, way: Way, size: Size) -> [u32; LOAD_WORDS] {
        let up = way.up();
        let factors = [up.black, up.luma, up.red_v, up.green_u, up.green_v, up.blue_u];
        let mut words = [0; LOAD_WORDS];
        words[0] = way.number();
        words[1..7].copy_from_slice(&factors.map(|factor| i32::from(factor).cast_unsigned()));
        words[7..13].copy_from_slice(&self.plane_words(size));
        words[13] = way::load_weights(way.siting());
        words
    }

    /// The parameter words for storing frames of this size.
    pub fn store_words(&self, way: Way, size: Size) -> [u32; STORE_WORDS] {
        let down = way.down();
        let mut words = [0; STORE_WORDS];
        (words[0], words[1]) = (way.number(), down.black.cast_unsigned());
        for (at, factors) in [(2, down.luma), (5, down.u), (8, down.v)] {
            words[at..at + 3].copy_from_slice(&factors.map(i32::cast_unsigned));
        }
        words[11..17].copy_from_slice(&self.plane_words(size));
        words[17] = way::store_weights(way.siting());
        words
    }

    /// Blocks that a frame of this size is stored in.
    pub fn blocks(&self, size: Size) -> u64 {
        let [width, height] = self.block;
        u64::from(size.width.div_ceil(width)) * u64::from(size.height.div_ceil(height))
    }

    pub(crate) fn has_luma(&self) -> bool {
        self.format != Format::Rgb8
    }

    /// Where planes begin and how long their rows are, in words.
    fn plane_words(&self, size: Size) -> [u32; 6] {
        let Planes(planes) = Planes::of(self.format, size);
        let mut words = [0; 6];
        for (at, plane) in planes.iter().enumerate() {
            (words[at], words[3 + at]) = ((plane.start / 4) as u32, (plane.stride / 4) as u32);
        }
        words
    }
}
