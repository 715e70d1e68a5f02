//! `ball`: a disc that bounces off the borders of a flat background. Disc and background change colour.
//!
//! Positions and colours are computed once per frame from size, rate and frame number, in integers. The frame number on
//! the image is drawn separately, as text.

use vramp_plan::{Rate, Size};

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

/// Parameters: background, colour of the disc, column and row of the disc's centre.
pub static BALL: Head = Head {
    name: "ball",
    wgsl: include_str!("ball.wgsl"),
    words: 4,
    source: false,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The disc's radius in pixels.
pub const RADIUS: u32 = 40;

/// The parameter words of frame number `n`.
pub fn pack(size: Size, rate: Rate, n: u64) -> [u32; 4] {
    let [x, y] = centre(size, rate, n);
    [u32::from_le_bytes(background(rate, n)), u32::from_le_bytes(color(rate, n)), x, y]
}

/// Column and row of the disc's centre in frame number `n`. The disc moves by 400 pixels per second horizontally and by
/// 300 pixels per second vertically, and is reflected at the borders.
pub fn centre(size: Size, rate: Rate, n: u64) -> [u32; 2] {
    [along(size.width, 800, rate, n), along(size.height, 600, rate, n)]
}

pub fn background(rate: Rate, n: u64) -> Pixel {
    rgb(hue(30, rate, n), 50, 80)
}

pub fn color(rate: Rate, n: u64) -> Pixel {
    rgb(hue(120, rate, n), 255, 255)
}

/// Paints the disc's part of a row.
pub(super) fn paint(y: u32, [cx, cy]: [u32; 2], color: Pixel, pixels: &mut [Pixel]) {
    let away = y.abs_diff(cy);
    if away <= RADIUS {
        // A column is inside the disc if its squared distance from the centre's column is at most 1600 - away^2. The
        // reach is the integer root of this number.
        let reach = (RADIUS * RADIUS - away * away).isqrt();
        let end = ((cx + reach) as usize + 1).min(pixels.len());
        let start = (cx.saturating_sub(reach) as usize).min(end);
        pixels[start..end].fill(color);
    }
}

/// The position of the centre along one axis. The centre moves back and forth between the borders by `speed` half
/// pixels per second.
fn along(side: u32, speed: u128, rate: Rate, n: u64) -> u32 {
    let Some(way) = side.checked_sub(2 * RADIUS).filter(|way| *way > 0) else { return side / 2 };
    let (num, den) = (u128::from(rate.num()), u128::from(rate.den()));
    let way = u128::from(way) * num;
    let u = (way + speed * u128::from(n) * den) % (4 * way);
    RADIUS + (u.min(4 * way - u) / (2 * num)) as u32
}

/// A hue that advances by `speed` per second. The full circle of hues is 0..180.
fn hue(speed: u128, rate: Rate, n: u64) -> u32 {
    (speed * u128::from(n) * u128::from(rate.den()) / u128::from(rate.num()) % 180) as u32
}

/// Hue 0..180, saturation and value 0..=255, as an opaque colour.
fn rgb(hue: u32, saturation: u32, value: u32) -> Pixel {
    let part = hue % 30;
    // The value, reduced by `share` parts of 7650 = 255 * 30, and rounded half up.
    let less = |share: u32| (2 * value * (7650 - share) + 7650) / (2 * 7650);
    let (low, falling, rising) = (less(30 * saturation), less(saturation * part), less(saturation * (30 - part)));
    let [r, g, b] = match hue / 30 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    };
    [r as u8, g as u8, b as u8, 255]
}

fn row(args: &HeadArgs<'_>, _: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let words = args.frame.words;
    pixels.fill(words[0].to_le_bytes());
    paint(y, [words[2], words[3]], words[1].to_le_bytes(), pixels);
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let drawn = [size, chance.size()].map(|size| {
        let (rate, n) = drawn_time(chance);
        KernelSample::new(size, &pack(size, rate, n))
    });
    drawn.to_vec()
}

/// A rate, which is 29.97 frames per second in half of the cases, and a frame number.
pub(super) fn drawn_time(chance: &mut Chance) -> (Rate, u64) {
    let (num, den) = if chance.flip() { (30_000, 1001) } else { (1 + chance.below(100_000), 1 + chance.below(2000)) };
    let rate = Rate::new(num, den).expect("numerator and denominator are above zero");
    (rate, if chance.flip() { u64::from(chance.below(10_000)) } else { u64::from(chance.bits()) << chance.below(33) })
}
