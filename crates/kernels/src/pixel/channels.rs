//! `channels`: red, green and blue through a table of 256 entries each.
//!
//! Owns the packing of three tables and the row loop.
//! Does not fold with neighbours: where the three are one, `table` does the same and folds.
//!
//! Always: alpha is kept.

use crate::function::{PixelFn, RowArgs, everywhere};
use crate::picture::Pixel;

use super::table::{self, Table};

/// Red, green and blue through a table each.
pub static CHANNELS: PixelFn = PixelFn {
    name: "channels",
    wgsl: include_str!("channels.wgsl"),
    words: 192,
    side: false,
    small: false,
    row,
    made: None,
    spans: everywhere,
};

/// Three tables as parameter words.
pub fn pack(tables: &[Table; 3]) -> [u32; 192] {
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
