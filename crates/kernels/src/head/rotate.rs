//! `rotate`: the source rotated clockwise by quarter turns. `warp` rotates by other angles.
//!
//! Source pixels are read once, and the functions before the head are applied to them once. If the source's format is
//! not rgba8, quarter turns do so once per band.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::turn::{Reversed, TILE, TurnedColumns};

/// Parameters: number of quarter turns, 1 to 3.
pub static ROTATE: Head = Head {
    name: "rotate",
    wgsl: include_str!("rotate.wgsl"),
    words: 1,
    rows_at_once: ROWS_AT_ONCE,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words.
pub fn pack(quarter_turns: u32) -> [u32; 1] {
    [quarter_turns % 4]
}

/// Rows of the output that are computed at once, so that each row of the source writes whole cache lines.
pub(super) const ROWS_AT_ONCE: usize = 128;

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let width = args.frame.size.width as usize;
    match args.frame.words[0] {
        2 => {
            for (y, to) in (y..).zip(pixels.chunks_exact_mut(width)) {
                let from = source.row(i64::from(args.source.height - 1 - y));
                args.frame.level.run(Reversed { from, soon: &[], to });
            }
        }
        turns => quarter(args, source, y, turns == 1, pixels),
    }
}

/// Turns columns of the source into rows of the output, from row `y` on. It reads a few rows of the source at a time.
fn quarter(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, y: u32, clockwise: bool, pixels: &mut [Pixel]) {
    let (width, height) = (args.frame.size.width as usize, args.source.height);
    let rows = (pixels.len() / width).min(ROWS_AT_ONCE);
    let first = if clockwise { y } else { args.source.width - y - rows as u32 };
    let unchanged = source.unchanged();
    let mut changed = [[[0; 4]; ROWS_AT_ONCE]; TILE];
    for x in (0..height).step_by(TILE) {
        let tall = TILE.min((height - x) as usize);
        let from = |i: usize| if clockwise { height - 1 - x - i as u32 } else { x + i as u32 };
        if unchanged.is_none() {
            for (i, part) in changed[..tall].iter_mut().enumerate() {
                source.copy_part_again(from(i), first, &mut part[..rows]);
            }
        }
        let mut parts: [&[Pixel]; TILE] = [&[]; TILE];
        for (i, part) in parts[..tall].iter_mut().enumerate() {
            *part = match unchanged {
                Some(picture) => &picture.row(from(i))[first as usize..][..rows],
                None => &changed[i][..rows],
            };
        }
        let columns = TurnedColumns { of: &parts[..tall], upwards: !clockwise, x: x as usize, width };
        columns.put(args.frame.level, pixels);
    }
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    let turned = Size { width: source.height, height: source.width };
    [(1, turned), (2, source), (3, turned)].map(|(turns, size)| KernelSample::new(size, &pack(turns))).to_vec()
}
