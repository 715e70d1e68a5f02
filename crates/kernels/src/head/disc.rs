//! `disc`: the gradient of `gradient`, with the disc of `ball` drawn on it.

use vramp_plan::{Rate, Size};

use crate::head::{BandState, Head, HeadArgs, SourceRows, ball, gradient};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

/// Parameters: blue of the gradient, colour of the disc, column and row of the disc's centre.
pub static DISC: Head = Head {
    name: "disc",
    wgsl: include_str!("disc.wgsl"),
    words: 4,
    source: false,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words of frame number `n`.
pub fn pack(size: Size, rate: Rate, n: u64) -> [u32; 4] {
    let [x, y] = ball::centre(size, rate, n);
    [gradient::blue(n), u32::from_le_bytes(ball::color(rate, n)), x, y]
}

fn row(args: &HeadArgs<'_>, _: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let words = args.frame.words;
    gradient::slopes(args, kept, y, words[0], pixels);
    ball::paint(y, [words[2], words[3]], words[1].to_le_bytes(), pixels);
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let drawn = [size, chance.size()].map(|size| {
        let (rate, n) = ball::drawn_time(chance);
        KernelSample::new(size, &pack(size, rate, n))
    });
    drawn.to_vec()
}
