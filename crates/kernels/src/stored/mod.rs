//! Storage formats other than rgba8, and the conversions from and to pixels.
//!
//! A format is described as data: its WGSL, its row functions in both directions, and its parameters. A recipe may read
//! its source from a storage format, and store its output in a storage format. Reading implements `load`, so any head
//! can read any format. Storing is the last step of a kernel: each invocation computes and writes a block of pixels
//! that fills whole words, so every pixel is usually computed once. A conversion between any two formats is one
//! dispatch.
//!
//! The frame's `Siting` determines where 4:2:0 chroma is sited: centred (420jpeg, the default), on the left pixel
//! (420mpeg2), or on the left pixel with Cr on the first line of a pair and Cb on the second (420paldv, as mjpegtools
//! and Xiph's tools define it). Reading interpolates bilinearly between these positions, with weights in quarters per
//! axis. Storing takes the mean of an area of two by two pixels around the position. Along an axis, the weights are
//! 1-2-1 if the position is on a pixel, and 2-2 if the position is between two pixels. rgba8 frames keep the siting of
//! their source, so that a stream is converted back to its original siting. 4:2:2 is always centred. Interlaced 4:2:0
//! is converted like progressive 4:2:0, and a note in the plan says so.
//!
//! Reading sets alpha to 255, and storing drops alpha. gray8 is the luma of an image. The bytes that pad a row are
//! zero.

mod halves;
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

/// A storage format for the GPU and for the CPU.
#[derive(Debug)]
pub struct StoredFormat {
    /// The format. Its name is the prefix of the WGSL functions, and the name of the `.rs` and `.wgsl` files.
    pub format: Format,
    /// WGSL that defines `fn NAME_load(at: vec2<i32>, k: u32) -> vec4<i32>`, which reads a pixel, and `fn
    /// NAME_store(block: vec2<i32>, k: u32)`, which stores a block of pixels. `stored_level(k, plane, at)` and
    /// `stored_word(k, plane, column, row)` read stored values, `made(at)` computes a pixel to be stored, and `put(k,
    /// plane, column, row, w)` stores a word.
    pub(crate) wgsl: &'static str,
    /// Width and height in pixels of the blocks that are stored. A block fills whole words of every plane.
    pub(crate) block: [u32; 2],
    /// Computes one row of pixels.
    pub(crate) unpack: fn(&Unpacking<'_>, &mut Between, y: usize, &mut [Pixel]),
    /// Stores two rows. If only the last row is left, it is passed twice.
    pub(crate) pack: fn(&Packing, &mut Between, PixelRows<'_>, &mut PlaneRows<'_>, y: usize),
}

/// Two rows of pixels that are stored together, and the rows above and below them. At the border, a row is its own
/// neighbour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PixelRows<'a> {
    pub(crate) own: [&'a [Pixel]; 2],
    /// The rows above and below, which are read only for chroma that is sited on lines.
    pub(crate) around: [&'a [Pixel]; 2],
}

/// Parameter words for reading a stored frame.
pub(crate) const LOAD_WORDS: usize = 14;
/// Parameter words for storing a frame.
pub(crate) const STORE_WORDS: usize = 18;

/// The description of a format; `None` for rgba8, which needs no conversion.
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

    /// Number of blocks in a frame of this size.
    pub fn blocks(&self, size: Size) -> u64 {
        let [width, height] = self.block;
        u64::from(size.width.div_ceil(width)) * u64::from(size.height.div_ceil(height))
    }

    pub(crate) fn has_luma(&self) -> bool {
        self.format != Format::Rgb8
    }

    /// The offset of each plane and the length of its rows, in words.
    fn plane_words(&self, size: Size) -> [u32; 6] {
        let Planes(planes) = Planes::of(self.format, size);
        let mut words = [0; 6];
        for (at, plane) in planes.iter().enumerate() {
            (words[at], words[3 + at]) = ((plane.start / 4) as u32, (plane.stride / 4) as u32);
        }
        words
    }
}
