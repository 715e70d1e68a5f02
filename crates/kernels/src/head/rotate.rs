//! `rotate`: turned clockwise by quarter turns.
//!
//! Owns which source pixel goes where, and the rows that are turned together.
//! Does not turn by other angles: `warp` does.
//!
//! Always: pixels are copied as they are; a source pixel is read once in a band, functions in front included.

use crate::head::{Head, HeadArgs, Kept, SourceRows};
use crate::picture::Pixel;
use crate::simd::Loop;

/// Quarter turns. Parameters: how many, 1 to 3.
pub static ROTATE: Head =
    Head { name: "rotate", wgsl: include_str!("rotate.wgsl"), words: 1, source: true, small: false, passes: 1, row };

/// The parameter words.
pub fn pack(quarter_turns: u32) -> [u32; 1] {
    [quarter_turns % 4]
}

/// Rows of the output that are turned together: a row of the source then gives two lines of the cache at once.
const TOGETHER: usize = 32;
/// Rows of the source that are turned together.
const TILE: usize = 8;

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut Kept, y: u32, pixels: &mut [Pixel]) {
    let turns = args.frame.words[0];
    if turns == 2 {
        source.copy(args.source.height - 1 - y, pixels);
        return pixels.reverse();
    }
    // A line of the cache more, so that rows do not lie behind each other in it.
    let stride = 4 * pixels.len() + 64;
    if !(kept.rows.0..kept.rows.1).contains(&i64::from(y)) {
        let rows = TOGETHER.min((args.frame.size.height - y) as usize);
        kept.bytes.resize(TOGETHER * stride, 0);
        turn(args, source, y, turns == 1, rows, stride, &mut kept.bytes);
        kept.rows = (i64::from(y), i64::from(y) + rows as i64);
    }
    let at = (i64::from(y) - kept.rows.0) as usize * stride;
    let values = pixels.as_flattened_mut();
    values.copy_from_slice(&kept.bytes[at..][..values.len()]);
}

/// Turns columns of the source into rows `y..y + rows` of the output.
fn turn(
    args: &HeadArgs<'_>,
    source: &mut SourceRows<'_>,
    y: u32,
    clockwise: bool,
    rows: usize,
    stride: usize,
    to: &mut [u8],
) {
    let height = args.source.height;
    let first = if clockwise { y } else { args.source.width - y - rows as u32 };
    let unchanged = source.unchanged();
    let mut changed = [[[0; 4]; TOGETHER]; TILE];
    for x in (0..height).step_by(TILE) {
        let tall = TILE.min((height - x) as usize);
        let from = |i: usize| if clockwise { height - 1 - x - i as u32 } else { x + i as u32 };
        if unchanged.is_none() {
            for (i, part) in changed[..tall].iter_mut().enumerate() {
                source.copy_part(from(i), first, &mut part[..rows]);
            }
        }
        let parts: [&[Pixel]; TILE] = std::array::from_fn(|i| {
            let i = i.min(tall - 1);
            unchanged.map_or(&changed[i][..rows], |picture| &picture.row(from(i))[first as usize..][..rows])
        });
        let to = &mut to[4 * x as usize..];
        args.frame.level.run(Turn { parts, tall, clockwise, stride, to });
    }
}

/// Makes columns of parts of rows.
struct Turn<'a> {
    parts: [&'a [Pixel]; TILE],
    /// How many of them there are; the others are the last once more.
    tall: usize,
    clockwise: bool,
    stride: usize,
    to: &'a mut [u8],
}

impl Loop for Turn<'_> {
    #[inline(always)]
    fn run(self) {
        let Turn { parts, tall, clockwise, stride, to } = self;
        let rows = parts[0].len();
        let place = |j: usize| stride * if clockwise { j } else { rows - 1 - j };
        if tall < TILE || rows < TOGETHER {
            for (i, part) in parts[..tall].iter().enumerate() {
                for (j, pixel) in part.iter().enumerate() {
                    to[place(j) + 4 * i..][..4].copy_from_slice(pixel);
                }
            }
            return;
        }
        for j in (0..TOGETHER).step_by(TILE) {
            let tile: [[u32; TILE]; TILE] = parts.map(|part| std::array::from_fn(|i| u32::from_le_bytes(part[j + i])));
            for k in 0..TILE {
                let column: [[u8; 4]; TILE] = std::array::from_fn(|i| tile[i][k].to_le_bytes());
                to[place(j + k)..][..4 * TILE].copy_from_slice(column.as_flattened());
            }
        }
    }
}
