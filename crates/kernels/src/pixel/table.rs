//! `table`: looks up red, green and blue in one table of 256 entries. Alpha is kept.
//!
//! Brightness, contrast, gamma and invert are all tables. Two tables in sequence give exactly the same pixels as the
//! folded table.

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{self, Loop};

use super::color;

pub static TABLE: PixelFn = PixelFn {
    name: "table",
    wgsl: include_str!("table.wgsl"),
    words: 64,
    row,
    made: Some(made),
    samples: Some(samples),
    ..PixelFn::PLAIN
};

pub type LookupTable = [u8; 256];

/// The table of a function of levels: clamped, then rounded half up.
pub fn table_of(f: impl Fn(f64) -> f64) -> LookupTable {
    std::array::from_fn(|v| (f(v as f64).clamp(0.0, 255.0) + 0.5).floor() as u8)
}

/// One table with the same effect as `first` followed by `second`.
pub fn fold(first: &LookupTable, second: &LookupTable) -> LookupTable {
    first.map(|v| second[usize::from(v)])
}

/// The parameter words of a table.
pub fn pack(table: &LookupTable) -> [u32; 64] {
    std::array::from_fn(|i| u32::from_le_bytes([table[4 * i], table[4 * i + 1], table[4 * i + 2], table[4 * i + 3]]))
}

/// [`fold`] on words, in place: applies `next` after the table in `words`.
pub fn fold_words(words: &mut [u32], next: &[u32]) {
    let next = unpack(next);
    for word in words {
        *word = u32::from_le_bytes(word.to_le_bytes().map(|v| next[usize::from(v)]));
    }
}

fn unpack(words: &[u32]) -> LookupTable {
    let mut table = [0; 256];
    for (four, word) in table.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    table
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let table = unpack(args.frame.words);
    if table == INVERT {
        args.frame.level.run(Invert(pixels));
    } else {
        look_up(simd::table::look_up(args.frame.level, pixels, &table), &table);
    }
}

/// Computes pixels from source pixels if that takes no longer than a copy, which is the case only for `INVERT`.
fn made(args: &FnArgs<'_>, from: &[Pixel], pixels: &mut [Pixel]) -> bool {
    let inverts = args.words.iter().zip(INVERT.as_chunks().0).all(|(word, four)| *word == u32::from_le_bytes(*four));
    if inverts {
        args.level.run(Inverted { from, pixels });
    }
    inverts
}

/// The only table that has its own loop, because vectors invert bits in a tenth of the time of a lookup.
const INVERT: LookupTable = {
    let mut table = [0; 256];
    let mut v = 0;
    while v < 256 {
        table[v] = 255 - v as u8;
        v += 1;
    }
    table
};

struct Inverted<'a> {
    from: &'a [Pixel],
    pixels: &'a mut [Pixel],
}

impl Loop for Inverted<'_> {
    #[inline(always)]
    fn run(self) {
        for (pixel, from) in self.pixels.iter_mut().zip(self.from) {
            *pixel = (u32::from_le_bytes(*from) ^ 0x00ff_ffff).to_le_bytes();
        }
    }
}

struct Invert<'a>(&'a mut [Pixel]);

impl Loop for Invert<'_> {
    #[inline(always)]
    fn run(self) {
        for pixel in self.0 {
            *pixel = (u32::from_le_bytes(*pixel) ^ 0x00ff_ffff).to_le_bytes();
        }
    }
}

/// The scalar loop, for pixels that vectors leave over and for the baseline. It reads and writes whole pixels, which is
/// a fifth faster than changing single channels.
#[inline]
fn look_up(pixels: &mut [Pixel], table: &LookupTable) {
    for pixel in pixels {
        let [r, g, b, a] = *pixel;
        *pixel = [table[usize::from(r)], table[usize::from(g)], table[usize::from(b)], a];
    }
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let tables = [
        color::gamma(chance.between(0.2, 3.4)),
        color::contrast(chance.between(-1.0, 2.0), 0.5),
        color::brightness(chance.between(-0.5, 0.5)),
        color::invert(),
        color::drawn(chance),
    ];
    tables.iter().map(|table| KernelSample::new(size, &pack(table))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    #[test]
    fn folding_equals_one_after_the_other() {
        let (a, b) = (table_of(|v| 255.0 - v), table_of(|v| v * 1.3 - 20.0));
        let both = fold(&a, &b);
        assert!((0..256).all(|v| both[v] == b[usize::from(a[v])]));
        assert_eq!(unpack(&pack(&both)), both);
        let mut words = pack(&a);
        fold_words(&mut words, &pack(&b));
        assert_eq!(words, pack(&both));
    }

    #[test]
    fn every_entry_of_any_table_is_found_at_every_level() {
        let pixels: Vec<Pixel> = (0..=255).map(|v| [v, v ^ 0x81, 255 - v, v]).collect();
        for seed in 1..50_u32 {
            let table: LookupTable =
                std::array::from_fn(|v| (seed.wrapping_mul(2_654_435_761 + 2 * v as u32) >> 19) as u8);
            let mut wanted = pixels.clone();
            look_up(&mut wanted, &table);
            for level in Level::available() {
                let mut found = pixels.clone();
                look_up(simd::table::look_up(level, &mut found, &table), &table);
                assert_eq!(found, wanted, "{level}");
            }
        }
    }

    #[test]
    fn turning_bits_over_equals_looking_up() {
        let mut one: Vec<Pixel> = (0..=255).map(|v| [v, 255 - v, v ^ 0x5a, v]).collect();
        let mut other = one.clone();
        Invert(&mut one).run();
        look_up(&mut other, &INVERT);
        assert_eq!(one, other);
        assert_eq!(INVERT, super::super::color::invert());
    }

    #[test]
    fn rounding_is_half_up_after_clamping() {
        let halves = table_of(|v| v / 2.0);
        assert_eq!((halves[0], halves[1], halves[3], halves[255]), (0, 1, 2, 128));
        assert_eq!(table_of(|v| v * 1e9)[1], 255);
        assert_eq!(table_of(|v| -v)[9], 0);
    }
}
