//! `overlay`: an image composited over the frame, with straight alpha (see `over.rs`).
//!
//! The image's pixels are small data, one word each. The image is not scaled. Only the image's rectangle is visited,
//! clipped to the frame.

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs, Spans};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;

use super::over;

/// Small data: the image's pixels. Parameters: the image's left, top, width and height, and the factor of its alpha.
pub static OVERLAY: PixelFn = PixelFn {
    name: "overlay",
    wgsl: concat!(include_str!("over.wgsl"), include_str!("overlay.wgsl")),
    words: 5,
    small: true,
    row,
    spans,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// The parameter words of an image of `size` with its upper left corner at `left`, `top` of the frame. The image's
/// alpha is multiplied by `alpha`, which is clamped to 0..=1.
pub fn pack(left: i32, top: i32, size: Size, alpha: f64) -> [u32; 5] {
    [left.cast_unsigned(), top.cast_unsigned(), size.width, size.height, over::amount(alpha)]
}

/// The position of an image along one axis. The image begins `offset` pixels after the near edge of the frame, or, if
/// `offset` is negative, ends `-offset` pixels before the far edge.
pub fn resolve(offset: i32, picture: u32, frame: u32) -> i32 {
    if offset >= 0 { offset } else { (i64::from(frame) - i64::from(picture) + i64::from(offset)) as i32 }
}

/// The small data of an image.
pub fn small(pixels: &[Pixel]) -> impl Iterator<Item = u32> {
    pixels.iter().map(|p| u32::from_le_bytes(*p))
}

fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    let down = i64::from(y) - i64::from(args.int(1));
    if down < 0 || down >= i64::from(args.words[3]) {
        return Spans::NONE;
    }
    let left = i64::from(args.int(0));
    Spans::NONE.and(left, left + i64::from(args.words[2]), args.size)
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let frame = &args.frame;
    // Callers may pass whole rows. Pixels left and right of the image are skipped.
    let (width, amount) = (i64::from(frame.words[2]), frame.int(4));
    let down = i64::from(args.y) - i64::from(frame.int(1));
    let right = i64::from(args.x) - i64::from(frame.int(0));
    let (skipped, from) = ((-right).max(0) as usize, right.max(0));
    if down < 0 || down >= i64::from(frame.words[3]) || from >= width || skipped >= pixels.len() {
        return;
    }
    let pixels = &mut pixels[skipped..];
    let picture = &frame.small[(down * width + from) as usize..][..pixels.len().min((width - from) as usize)];
    frame.level.run(Cover { below: pixels, picture, amount });
}

struct Cover<'a> {
    below: &'a mut [Pixel],
    picture: &'a [u32],
    amount: i32,
}

impl Loop for Cover<'_> {
    #[inline(always)]
    fn run(self) {
        let mut top = [[0; 4]; AT_ONCE];
        for (words, below) in self.picture.chunks(AT_ONCE).zip(self.below.chunks_mut(AT_ONCE)) {
            let top = &mut top[..words.len()];
            top.iter_mut().zip(words).for_each(|(pixel, word)| *pixel = word.to_le_bytes());
            let visible = below.len().min(words.len());
            over::over_row(&mut below[..visible], top, self.amount);
        }
    }
}

/// Pixels that are unpacked together.
const AT_ONCE: usize = 64;

/// An image inside the frame, across an edge of the frame, or outside of the frame.
fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let picture = Size { width: 1 + chance.below(9), height: 1 + chance.below(9) };
    let words = pack(chance.near(size.width), chance.near(size.height), picture, chance.part());
    vec![KernelSample::new(size, &words).small(small(&chance.picture(picture)).collect::<Vec<_>>())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_offsets_leave_that_many_pixels_to_the_far_edge() {
        assert_eq!((resolve(7, 10, 100), resolve(0, 10, 100)), (7, 0));
        assert_eq!((resolve(-1, 10, 100), resolve(-20, 10, 100)), (89, 70));
        assert_eq!(resolve(-1, 200, 100), -101);
    }
}
