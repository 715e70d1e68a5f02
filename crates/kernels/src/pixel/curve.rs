//! `curve`: three rows around a given row in each column.
//!
//! Owns which pixels the curve covers.
//! Does not compute the curve: the row of each column is decided once per frame on the host.
//!
//! Always: rows outside the curve's reach are not visited.

use crate::function::{FnArgs, PixelFn, RowArgs, Spans};
use crate::picture::Pixel;

/// A curve over the picture. Small data: the middle row of each column. Parameters: colour, least and greatest row.
pub static CURVE: PixelFn =
    PixelFn { name: "curve", wgsl: include_str!("curve.wgsl"), words: 3, side: false, small: true, row, spans };

/// The parameter words for a curve of these middle rows.
pub fn pack(color: Pixel, rows: &[i32]) -> [u32; 3] {
    let least = rows.iter().min().copied().unwrap_or(0);
    let most = rows.iter().max().copied().unwrap_or(0);
    [u32::from_le_bytes(color), least.cast_unsigned(), most.cast_unsigned()]
}

fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    let y = i64::from(y);
    if y + 1 < i64::from(args.int(1)) || y - 1 > i64::from(args.int(2)) { Spans::NONE } else { Spans::all(args.size) }
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let color = args.frame.words[0].to_le_bytes();
    let middles = &args.frame.small[args.x as usize..];
    for (middle, pixel) in middles.iter().zip(pixels) {
        if (i64::from(args.y) - i64::from(middle.cast_signed())).abs() <= 1 {
            *pixel = color;
        }
    }
}
