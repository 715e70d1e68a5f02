//! `mix`: blends another image of the same size into the frame, in one of six modes.
//!
//! The amount has 14 fraction bits, and 15 in mode `over`. Sums stay within 31 bits and are rounded once, half up,
//! after clamping. Mode `mix` mixes all four channels alike. Mode `over` composites with straight alpha, see `over.rs`.
//! The other modes change red, green and blue from a towards f(a, b), where f is not rounded separately, and keep a's
//! alpha.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{self, Loop};

use super::over;

/// Parameters: mode, amount. The other image is the extra input.
pub static MIX: PixelFn = PixelFn {
    name: "mix",
    wgsl: concat!(include_str!("over.wgsl"), include_str!("mix.wgsl")),
    words: 2,
    extra_input: true,
    row,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// A blend mode. Below, a is the frame's pixel and b is the other image's pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// (1 - amount) a + amount b, on all four channels.
    Mix,
    /// b over a, with b's alpha times the amount.
    Over,
    /// Towards a + b.
    Add,
    /// Towards a b.
    Multiply,
    /// Towards 1 - (1 - a)(1 - b).
    Screen,
    /// Towards |a - b|.
    Difference,
}

impl Mode {
    /// Every mode, in the order of the modes' numbers in the kernel.
    pub const ALL: [Mode; 6] = [Mode::Mix, Mode::Over, Mode::Add, Mode::Multiply, Mode::Screen, Mode::Difference];
}

/// An amount of one in fixed point.
const ONE: i32 = 1 << 14;

/// The parameter words; the amount is clamped to 0..=1.
pub fn pack(mode: Mode, amount: f64) -> [u32; 2] {
    let fixed = match mode {
        Mode::Over => over::amount(amount),
        _ => (amount.clamp(0.0, 1.0) * f64::from(ONE)).round() as u32,
    };
    [mode as u32, fixed]
}

/// Without an extra input, pixels stay unchanged.
fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let Some(extra) = args.extra_input else { return };
    let other = &extra.row(args.y)[args.x as usize..][..pixels.len()];
    let mode = Mode::ALL[(args.frame.words[0] as usize).min(Mode::ALL.len() - 1)];
    let (level, amount) = (args.frame.level, args.frame.int(1));
    if mode == Mode::Mix {
        let (a, b) = simd::mix::mix(level, pixels.as_flattened_mut(), other.as_flattened(), amount);
        mix(a, b, Split::of(amount));
    } else {
        level.run(Blend { pixels, other, mode, amount });
    }
}

struct Blend<'a> {
    pixels: &'a mut [Pixel],
    other: &'a [Pixel],
    mode: Mode,
    amount: i32,
}

impl Loop for Blend<'_> {
    #[inline(always)]
    fn run(self) {
        let Blend { pixels, other, mode, amount: t } = self;
        match mode {
            Mode::Mix => {}
            Mode::Over => over::over_row(pixels, other, t),
            Mode::Add => each_color(pixels, other, 0, |a, b| add(a, b, Split::of(t))),
            Mode::Multiply => each_color(pixels, other, 255, |a, b| multiply(a, b, t)),
            Mode::Screen => each_color(pixels, other, 0, |a, b| screen(a, b, t)),
            Mode::Difference => each_color(pixels, other, 0, |a, b| difference(a, b, Split::of(t))),
        }
    }
}

/// Pixels whose alpha is replaced at once.
const AT_ONCE: usize = 128;

/// Applies a loop over all channels so that only red, green and blue change. In the other image, alpha is replaced by a
/// neutral value, with which the loop keeps the frame's alpha.
#[inline(always)]
fn each_color(pixels: &mut [Pixel], other: &[Pixel], neutral: u8, f: impl Fn(&mut [u8], &[u8])) {
    let mut b = [[0; 4]; AT_ONCE];
    for (a, other) in pixels.chunks_mut(AT_ONCE).zip(other.chunks(AT_ONCE)) {
        let b = &mut b[..other.len()];
        for (b, other) in b.iter_mut().zip(other) {
            *b = [other[0], other[1], other[2], neutral];
        }
        f(a.as_flattened_mut(), b.as_flattened());
    }
}

#[inline(always)]
fn mix(a: &mut [u8], b: &[u8], t: Split) {
    for (a, b) in a.iter_mut().zip(b) {
        let d = i16::from(*b) - i16::from(*a);
        *a = (i16::from(*a) + part(d, t)) as u8;
    }
}

#[inline(always)]
fn add(a: &mut [u8], b: &[u8], t: Split) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = a.saturating_add(part(i16::from(*b), t) as u8);
    }
}

#[inline(always)]
fn difference(a: &mut [u8], b: &[u8], t: Split) {
    for (a, b) in a.iter_mut().zip(b) {
        let (from, to) = (i16::from(*a), i16::from(a.abs_diff(*b)));
        *a = (from + part(to - from, t)) as u8;
    }
}

#[inline(always)]
fn multiply(a: &mut [u8], b: &[u8], t: i32) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = in_255ths(i32::from(*a), -i32::from(*a) * i32::from(255 - *b), t);
    }
}

#[inline(always)]
fn screen(a: &mut [u8], b: &[u8], t: i32) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = in_255ths(i32::from(*a), i32::from(*b) * i32::from(255 - *a), t);
    }
}

/// An amount, split into its lower seven bits and the bits above, which are a number of at most 128.
#[derive(Debug, Clone, Copy)]
struct Split {
    upper: i16,
    lower: i16,
}

impl Split {
    fn of(t: i32) -> Split {
        Split { upper: (t >> 7) as i16, lower: (t & 127) as i16 }
    }
}

/// `(d t + 8192) >> 14` for a difference d of levels, computed in 16 bits, because baseline vectors multiply 16-bit
/// numbers four times faster than 32-bit numbers. The bits that the first shift cuts off from `d * t.lower` cannot
/// change the result.
#[inline(always)]
fn part(d: i16, t: Split) -> i16 {
    (d * t.upper + ((d * t.lower) >> 7) + 64) >> 7
}

/// Adds t times `d` to `a`, where `d` is in 1/255 of a level. The sum is never negative. v / 255 equals (v + 1 + v /
/// 256) / 256 for 16-bit v.
#[inline(always)]
fn in_255ths(a: i32, d: i32, t: i32) -> u8 {
    let v = (a * (255 * ONE) + d * t + 255 * ONE / 2) >> 14;
    ((v + 1 + (v >> 8)) >> 8) as u8
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    Mode::ALL.map(|mode| KernelSample::new(size, &pack(mode, chance.part()))).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    #[test]
    fn every_loop_equals_its_formula_in_wide_integers_for_every_pair_of_levels() {
        // The formulas of `mix.wgsl`.
        let toward = |a: i32, d: i32, t: i32| (a + ((d * t + 8192) >> 14)).min(255);
        let in_255ths = |a: i32, d: i32, t: i32| ((a * 4_177_920 + d * t + 2_088_960) >> 14) / 255;
        for t in [0, 1, 2, 3, 4915, 8191, 8192, 8193, 12345, 16383, 16384] {
            for b in 0..=255 {
                let check = |name: &str, f: &dyn Fn(&mut [u8], &[u8]), wanted: &dyn Fn(i32) -> i32| {
                    let mut a: Vec<u8> = (0..=255).collect();
                    f(&mut a, &[b; 256]);
                    assert!(a.iter().zip(0..).all(|(got, a)| i32::from(*got) == wanted(a)), "{name}: t {t}, b {b}");
                };
                let (split, wide) = (Split::of(t), i32::from(b));
                check("mix", &|a, b| mix(a, b, split), &|a| toward(a, wide - a, t));
                for level in Level::available() {
                    let one = |a: &mut [u8], b: &[u8]| {
                        let rest = simd::mix::mix(level, a, b, t).0.len();
                        assert!(rest == 0 || level == Level::BASELINE, "{level} mixes 256 levels at once");
                    };
                    if level > Level::BASELINE {
                        check("mix in vectors", &one, &|a| toward(a, wide - a, t));
                    }
                }
                check("add", &|a, b| add(a, b, split), &|a| toward(a, wide, t));
                check("difference", &|a, b| difference(a, b, split), &|a| toward(a, (a - wide).abs() - a, t));
                check("multiply", &|a, b| multiply(a, b, t), &|a| in_255ths(a, a * (wide - 255), t));
                check("screen", &|a, b| screen(a, b, t), &|a| in_255ths(a, wide * (255 - a), t));
            }
        }
    }

    #[test]
    fn the_words_are_the_number_of_the_mode_and_the_amount_in_fixed_point() {
        assert_eq!(pack(Mode::Mix, 0.5), [0, 8192]);
        assert_eq!(pack(Mode::Over, 0.5), [1, 16384]);
        assert_eq!(pack(Mode::Difference, 7.0), [5, 16384]);
        assert!(Mode::ALL.iter().enumerate().all(|(i, mode)| *mode as usize == i));
    }
}
