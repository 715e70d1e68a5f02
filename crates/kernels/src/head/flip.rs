//! `flip`: the source mirrored left to right, top to bottom, or in both directions.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::turn::{Copied, Reversed};

pub static FLIP: Head = Head {
    name: "flip",
    wgsl: include_str!("flip.wgsl"),
    words: 2,
    rows_at_once: 4,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words.
pub fn pack(left_right: bool, top_bottom: bool) -> [u32; 2] {
    [u32::from(left_right), u32::from(top_bottom)]
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let (height, picture) = (args.source.height, source.unchanged());
    let [left_right, top_bottom] = [0, 1].map(|at| args.frame.words[at] != 0);
    let place = |y: u32| if top_bottom { height - 1 - y } else { y };
    for (y, to) in (y..).zip(pixels.chunks_exact_mut(args.frame.size.width as usize)) {
        let soon = picture.filter(|_| y + 1 < height).map_or(&[][..], |picture| picture.row(place(y + 1)));
        match picture {
            _ if left_right => args.frame.level.run(Reversed { from: source.row(i64::from(place(y))), soon, to }),
            Some(picture) => args.frame.level.run(Copied { from: picture.row(place(y)), soon, to }),
            None => source.copy(place(y), to),
        }
    }
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    ways.map(|(left_right, top_bottom)| KernelSample::new(source, &pack(left_right, top_bottom))).to_vec()
}
