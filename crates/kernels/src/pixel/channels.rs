//! `channels`: looks up red, green and blue, each in its own table of 256 entries. Alpha is kept.
//!
//! `channels` does not fold with neighbouring tables. If the three tables are equal, use `table`: it gives the same
//! pixels, and neighbouring tables are combined into one.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

use super::color;
use super::table::{self, LookupTable};

pub static CHANNELS: PixelFn = PixelFn {
    name: "channels",
    wgsl: include_str!("channels.wgsl"),
    words: 192,
    row,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// The parameter words of three tables.
pub fn pack(tables: &[LookupTable; 3]) -> [u32; 192] {
    let words = tables.each_ref().map(table::pack);
    std::array::from_fn(|i| words[i / 64][i % 64])
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let mut tables = [[0; 256]; 3];
    for (four, word) in tables.as_flattened_mut().as_chunks_mut().0.iter_mut().zip(args.frame.words) {
        *four = word.to_le_bytes();
    }
    let [red, green, blue] = &tables;
    for pixel in pixels {
        let [r, g, b, a] = *pixel;
        *pixel = [red[usize::from(r)], green[usize::from(g)], blue[usize::from(b)], a];
    }
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let drawn = [0; 3].map(|_| color::drawn(chance));
    let bent = [color::gamma(0.4), color::invert(), color::contrast(chance.between(-1.0, 2.0), 0.5)];
    [drawn, bent].iter().map(|tables| KernelSample::new(size, &pack(tables))).collect()
}
