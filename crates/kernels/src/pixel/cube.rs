//! `cube`: a 3D colour table, with tetrahedral interpolation between four entries. Alpha is kept.
//!
//! The position of each level in the cube is computed once, in doubles, and has 14 fraction bits. Entries have as many
//! fraction bits as 16 bits allow, from 7 if all values are between -1 and 1, down to 3. A sum is rounded once, half
//! up. If a cube needs more memory than a table of all colours, that table replaces the cube. The table's entries are
//! bytes.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;
use crate::simd::four::{self, AT_ONCE, Entries};

/// Parameters: number of entries along an edge, fraction bits of the entries' values, whether the entries are bytes.
/// Small data: the positions of the levels of red, green and blue, then the entries, with red changing fastest.
pub static CUBE: PixelFn = PixelFn {
    name: "cube",
    wgsl: include_str!("cube.wgsl"),
    words: 3,
    small: true,
    row,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// The maximum number of entries along an edge.
pub const MOST_ALONG: u32 = 256;
/// The maximum absolute value of an entry. For greater values, neither 16-bit entries nor 14 fraction bits of positions
/// would give results within one level.
pub const MOST_VALUE: f64 = 16.0;

/// A packed cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub words: [u32; 3],
    pub small: Vec<u32>,
}

/// Packs a cube with `along` entries along an edge, with red changing fastest. The value 1 in an entry is level 255.
/// `places` holds the position of each level of red, green and blue, from 0 to 1. Returns `None` if the number of
/// entries does not match, if an edge has less than 2 or more than [`MOST_ALONG`] entries, or if a value is not a
/// number or its absolute value exceeds [`MOST_VALUE`].
pub fn pack(along: u32, entries: &[[f32; 3]], places: &[[f64; 256]; 3]) -> Option<Packed> {
    let edge = along as usize;
    let most = entries.as_flattened().iter().fold(0.0_f64, |most, v| most.max(f64::from(v.abs())));
    let numbers = entries.as_flattened().iter().all(|v| v.is_finite());
    if !(2..=MOST_ALONG).contains(&along) || entries.len() != edge * edge * edge || !numbers || most > MOST_VALUE {
        return None;
    }
    if 2 * entries.len() > ALL_COLORS {
        return Some(all_colors(along, entries, places));
    }
    let bits = (0..=MOST_BITS).rev().find(|bits| most * 255.0 * f64::from(1 << bits) + 0.5 < 32_768.0).unwrap_or(0);
    let fixed = |v: f32| (f64::from(v) * 255.0 * f64::from(1 << bits)).round() as i16;
    let mut small = positions(along, places);
    small.extend(entries.iter().flat_map(|entry| {
        let [r, g, b] = entry.map(|v| u32::from(fixed(v).cast_unsigned()));
        [r | (g << 16), b]
    }));
    Some(Packed { words: [along, bits, 0], small })
}

/// Bytes of small data of a cube with this many entries along an edge.
pub fn small_bytes(along: u32) -> u64 {
    let entries = 2 * u64::from(along.min(MOST_ALONG)).pow(3);
    4 * (3 * 256 + entries.min(ALL_COLORS as u64))
}

/// Words of a table of all colours.
const ALL_COLORS: usize = 1 << 24;
/// The maximum number of fraction bits with which a full level fits 16 signed bits.
const MOST_BITS: u32 = 7;
const FRACTION_BITS: u32 = 14;
const ONE: i32 = 1 << FRACTION_BITS;
/// Words of the positions, which precede the entries.
const PLACES: usize = 768;

/// The position of each level: the number of the entry below the level, and the fraction of the distance from there to
/// the next entry. At the last entry, this fraction is 1.
fn positions(along: u32, places: &[[f64; 256]; 3]) -> Vec<u32> {
    let last = f64::from(along - 1);
    let position = |place: &f64| {
        let at = place.clamp(0.0, 1.0) * last;
        let below = at.floor().min(last - 1.0);
        ((below as u32) << 16) | ((at - below) * f64::from(ONE)).round() as u32
    };
    places.as_flattened().iter().map(position).collect()
}

/// The table of all colours, computed from a cube that would be larger than the table.
fn all_colors(along: u32, entries: &[[f32; 3]], places: &[[f64; 256]; 3]) -> Packed {
    let (edge, last) = (along as usize, f64::from(along - 1));
    let split = |place: f64| {
        let at = place.clamp(0.0, 1.0) * last;
        let below = at.floor().min(last - 1.0);
        (below as usize, at - below)
    };
    let places = places.map(|levels| levels.map(split));
    let steps = [1, edge, edge * edge];
    let level = |v: f64| ((v * 255.0).clamp(0.0, 255.0) + 0.5).floor() as u32;
    let straight: [[f64; 256]; 3] = [std::array::from_fn(|v| v as f64 / 255.0); 3];
    let mut small = positions(MOST_ALONG, &straight);
    for color in 0..ALL_COLORS {
        let here = [places[0][color & 255], places[1][color >> 8 & 255], places[2][color >> 16]];
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| here[*b].1.total_cmp(&here[*a].1));
        let mut at: usize = here.iter().zip(steps).map(|(place, step)| place.0 * step).sum();
        let (mut sum, mut before) = ([0.0; 3], 1.0);
        let mut add = |at: usize, weight: f64| {
            sum.iter_mut().zip(entries[at]).for_each(|(sum, v)| *sum += weight * f64::from(v));
        };
        for axis in order {
            add(at, before - here[axis].1);
            before = here[axis].1;
            at += steps[axis];
        }
        add(at, before);
        let [r, g, b] = sum.map(level);
        small.push(r | (g << 8) | (b << 16));
    }
    Packed { words: [MOST_ALONG, 0, 1], small }
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let &[along, bits, bytes] = args.frame.words.first_chunk().expect("three words were declared");
    let (places, entries) = args.frame.small.split_at(PLACES);
    let places = places.first_chunk().expect("the positions are split off");
    let level = args.frame.level;
    let mut found = Entries::default();
    for pixels in pixels.chunks_mut(AT_ONCE) {
        level.run(Find { pixels, along, places, entries, bytes: bytes != 0, found: &mut found });
        four::mix_entries(level, &found, bits, pixels);
    }
}

/// Finds the four entries of each pixel and their weights.
struct Find<'a> {
    pixels: &'a [Pixel],
    along: u32,
    places: &'a [u32; PLACES],
    entries: &'a [u32],
    bytes: bool,
    found: &'a mut Entries,
}

impl Loop for Find<'_> {
    #[inline(always)]
    fn run(self) {
        let Find { pixels, along, places, entries, bytes, found } = self;
        let mut place = [[0_u32; AT_ONCE]; 3];
        let [red, green, blue] = &mut place;
        for (((pixel, red), green), blue) in pixels.iter().zip(red).zip(green).zip(blue) {
            let [r, g, b, _] = pixel.map(usize::from);
            (*red, *green, *blue) = (places[r], places[256 + g], places[512 + b]);
        }
        let (across, down) = (along, along * along);
        let mut corners = [[0_u32; AT_ONCE]; 4];
        for i in 0..AT_ONCE {
            let [x, y, z] = [place[0][i], place[1][i], place[2][i]];
            let base = (x >> 16) + (y >> 16) * across + (z >> 16) * down;
            let [x, y, z] = [x, y, z].map(|v| (v & 0xffff).cast_signed());
            let first = if x >= y && x >= z {
                1
            } else if y >= z {
                across
            } else {
                down
            };
            let last = if z <= x && z <= y {
                down
            } else if y <= x {
                across
            } else {
                1
            };
            let (most, least) = (x.max(y).max(z), x.min(y).min(z));
            let middle = x + y + z - most - least;
            let weights = [ONE - most, most - middle, middle - least, least].map(i32::cast_unsigned);
            found.weights[i] = [weights[0] | (weights[1] << 16), weights[2] | (weights[3] << 16)];
            let top = base + 1 + across + down;
            (corners[0][i], corners[1][i], corners[2][i], corners[3][i]) = (base, base + first, top - last, top);
        }
        for (corner, places) in corners.iter().enumerate() {
            let places = &places[..pixels.len()];
            if bytes {
                for (at, to) in places.iter().zip(&mut found.entries[corner]) {
                    let [r, g, b, _] = entries[*at as usize].to_le_bytes().map(u64::from);
                    *to = r | (g << 16) | (b << 32);
                }
            } else {
                found.fetch(corner, entries.as_chunks().0, places);
            }
        }
    }
}

/// Cubes with small values and with the greatest values, and cubes that become a table of all colours.
fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let mut drawn = Vec::new();
    for most in [1.0, 2.0, MOST_VALUE] {
        let along = 2 + chance.below(5);
        let count = along.pow(3) as usize;
        let entries: Vec<[f32; 3]> = (0..count).map(|_| [0; 3].map(|_| chance.between(-most, most) as f32)).collect();
        let places = [0; 3].map(|_| {
            let by = chance.between(0.5, 1.5);
            std::array::from_fn(|v| v as f64 / 255.0 * by)
        });
        let packed = pack(along, &entries, &places).expect("few entries within the limits");
        let mut table = packed.small[..PLACES].to_vec();
        table.extend((0..count).map(|_| chance.below(1 << 24)));
        drawn.push(KernelSample::new(size, &packed.words).small(packed.small));
        drawn.push(KernelSample::new(size, &[along, 0, 1]).small(table));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straight() -> [[f64; 256]; 3] {
        [std::array::from_fn(|v| v as f64 / 255.0); 3]
    }

    /// A cube that keeps every colour, except that red is inverted.
    fn same(along: u32) -> Vec<[f32; 3]> {
        let value = |v: u32| v as f32 / (along - 1) as f32;
        let colors = (0..along.pow(3)).map(|i| [i % along, i / along % along, i / along / along].map(value));
        colors.map(|[r, g, b]| [1.0 - r, g, b]).collect()
    }

    #[test]
    fn a_cube_has_as_many_fraction_bits_as_fit() {
        for (most, bits) in [(0.1, 7), (1.0, 7), (1.01, 6), (2.0, 6), (3.9, 5), (16.0, 3)] {
            let mut entries = same(2);
            entries[3] = [0.0, -most, most];
            let packed = pack(2, &entries, &straight()).unwrap();
            assert_eq!(packed.words, [2, bits, 0], "{most}");
            assert_eq!(packed.small.len(), PLACES + 16);
        }
    }

    #[test]
    fn data_that_is_not_a_cube_is_refused() {
        assert_eq!(pack(3, &same(2), &straight()), None);
        assert_eq!(pack(1, &[[0.0; 3]], &straight()), None);
        assert_eq!(pack(257, &[], &straight()), None);
        for wrong in [f32::NAN, f32::INFINITY, 16.1, -1e30] {
            let mut entries = same(2);
            entries[7][1] = wrong;
            assert_eq!(pack(2, &entries, &straight()), None, "{wrong}");
        }
    }

    #[test]
    fn a_cube_larger_than_all_colours_is_the_table_of_them() {
        let largest = 203;
        assert!(2 * u64::from(largest + 1_u32).pow(3) > ALL_COLORS as u64);
        assert!(2 * u64::from(largest).pow(3) <= ALL_COLORS as u64);
        let packed = pack(largest + 1, &same(largest + 1), &straight()).unwrap();
        assert_eq!((packed.words, packed.small.len()), ([256, 0, 1], PLACES + ALL_COLORS));
        for color in (0..ALL_COLORS).step_by(4093) {
            let [r, g, b] = [color, color >> 8, color >> 16].map(|v| (v & 255) as u32);
            assert_eq!(packed.small[PLACES + color], (255 - r) | (g << 8) | (b << 16));
        }
    }
}
