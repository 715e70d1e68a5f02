//! Weighted sums of four values for many pixels at once: of four neighbours in an image, or of four entries of a colour
//! table.
//!
//! Values from arbitrary positions are fetched one by one. Their 16-bit numbers are then summed in pairs, because one
//! vector instruction multiplies both numbers of a pair and adds the products. The caller chooses positions and
//! weights.
//!
//! Invariants: all positions are checked before the first value is read. The four weights have the sum 16384. Sums have
//! 32 bits, and are rounded half up and clamped to 0..=255.

#![expect(
    unsafe_code,
    reason = "functions that are compiled for a level can only be called in `unsafe` blocks, and places are checked \
              many at a time"
)]

use crate::picture::Pixel;

use super::{Level, Loop};

/// Pixels that are fetched together.
pub(crate) const AT_ONCE: usize = 64;

/// The four neighbours of each of [`AT_ONCE`] pixels.
#[derive(Debug)]
pub(crate) struct NeighbourTaps {
    /// The upper two neighbours, with the left neighbour in the lower half.
    pub(crate) top: [u64; AT_ONCE],
    /// The lower two neighbours, with the left neighbour in the lower half.
    pub(crate) bottom: [u64; AT_ONCE],
    /// The weights in 16 bits each: first those of the two upper neighbours, then those of the two lower neighbours.
    pub(crate) weights: [[u32; 2]; AT_ONCE],
}

/// The four table entries of each of [`AT_ONCE`] pixels.
#[derive(Debug)]
pub(crate) struct Entries {
    /// Red, green, blue and zero, as signed 16-bit numbers.
    pub(crate) entries: [[u64; AT_ONCE]; 4],
    /// The weights of the four entries, in 16 bits each.
    pub(crate) weights: [[u32; 2]; AT_ONCE],
}

impl Default for NeighbourTaps {
    fn default() -> NeighbourTaps {
        NeighbourTaps { top: [0; AT_ONCE], bottom: [0; AT_ONCE], weights: [[0; 2]; AT_ONCE] }
    }
}

impl Default for Entries {
    fn default() -> Entries {
        Entries { entries: [[0; AT_ONCE]; 4], weights: [[0; 2]; AT_ONCE] }
    }
}

/// Fraction bits of weights.
const WEIGHT_BITS: u32 = 14;

impl NeighbourTaps {
    /// Fetches the neighbours of as many pixels as there are places. A place is the index of the upper left neighbour
    /// in an image of this width.
    ///
    /// # Panics
    /// If a place or its neighbour below and to the right is outside the image.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, picture: &[Pixel], width: usize, places: &[u32]) {
        let last = u64::from(places.iter().fold(0, |last, place| last.max(*place))) + width as u64 + 1;
        assert!(last < picture.len() as u64, "position {last} is outside an image of {} pixels", picture.len());
        for ((place, top), bottom) in places.iter().zip(&mut self.top).zip(&mut self.bottom) {
            let place = *place as usize;
            // SAFETY: the assertion above has checked that the greatest place has a neighbour below and to the right.
            let two = |at: usize| unsafe { picture.get_unchecked(at..at + 2) };
            *top = together(two(place));
            *bottom = together(two(place + width));
        }
    }
}

#[inline(always)]
fn together(two: &[Pixel]) -> u64 {
    u64::from_le_bytes(*two.as_flattened().first_chunk().unwrap_or(&[0; 8]))
}

impl Entries {
    /// Fetches one of the four entries for as many pixels as there are places.
    ///
    /// # Panics
    /// If a place is beyond the table.
    #[inline(always)]
    pub(crate) fn fetch(&mut self, corner: usize, from: &[[u32; 2]], places: &[u32]) {
        let last = places.iter().fold(0, |last, place| last.max(*place)) as usize;
        assert!(last < from.len(), "index {last} is outside a table of {} entries", from.len());
        for (place, to) in places.iter().zip(&mut self.entries[corner]) {
            // SAFETY: the assertion above has checked that the greatest place is within the table.
            let [low, high] = unsafe { *from.get_unchecked(*place as usize) };
            *to = u64::from(low) | (u64::from(high) << 32);
        }
    }
}

/// Computes all of `pixels`, at most [`AT_ONCE`], from as many taps.
pub(crate) fn mix(level: Level, taps: &NeighbourTaps, pixels: &mut [Pixel]) {
    let done = match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::mix(taps, pixels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::mix(taps, pixels) },
    };
    level.run(PlainMix { taps, done, pixels });
}

/// Computes red, green and blue of all of `pixels`, from entries with this many fraction bits. Alpha is kept.
pub(crate) fn mix_entries(level: Level, entries: &Entries, fraction_bits: u32, pixels: &mut [Pixel]) {
    let shift = WEIGHT_BITS + fraction_bits;
    let done = match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::mix_entries(entries, shift, pixels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::mix_entries(entries, shift, pixels) },
    };
    level.run(MixEntries { entries, shift, done, pixels });
}

/// The scalar loop, for pixels that vectors leave over and for the baseline.
struct PlainMix<'a> {
    taps: &'a NeighbourTaps,
    done: usize,
    pixels: &'a mut [Pixel],
}

impl Loop for PlainMix<'_> {
    #[inline(always)]
    fn run(self) {
        let groups = self.pixels[self.done..].chunks_mut(GROUP).zip(self.done / GROUP..);
        let (tops, bottoms) = (self.taps.top.as_chunks::<GROUP>().0, self.taps.bottom.as_chunks::<GROUP>().0);
        let weights = self.taps.weights.as_chunks::<GROUP>().0;
        for (pixels, at) in groups {
            let mut levels = [[[0_u8; 4]; GROUP]; 4];
            for (i, (top, bottom)) in tops[at].iter().zip(&bottoms[at]).enumerate() {
                levels[0][i] = (*top as u32).to_le_bytes();
                levels[1][i] = ((*top >> 32) as u32).to_le_bytes();
                levels[2][i] = (*bottom as u32).to_le_bytes();
                levels[3][i] = ((*bottom >> 32) as u32).to_le_bytes();
            }
            let mut four = Four::weighing(&weights[at]);
            for (taps, levels) in four.taps.as_flattened_mut().iter_mut().zip(levels.as_flattened()) {
                *taps = levels.map(i16::from);
            }
            pixels.copy_from_slice(&four.mixed(WEIGHT_BITS)[..pixels.len()]);
        }
    }
}

/// The scalar loop, for pixels that vectors leave over and for the baseline.
struct MixEntries<'a> {
    entries: &'a Entries,
    shift: u32,
    done: usize,
    pixels: &'a mut [Pixel],
}

impl Loop for MixEntries<'_> {
    #[inline(always)]
    fn run(self) {
        let groups = self.pixels[self.done..].chunks_mut(GROUP).zip(self.done / GROUP..);
        let weights = self.entries.weights.as_chunks::<GROUP>().0;
        for (pixels, at) in groups {
            let mut four = Four::weighing(&weights[at]);
            for (taps, entries) in four.taps.iter_mut().zip(&self.entries.entries) {
                for (taps, entry) in taps.iter_mut().zip(&entries.as_chunks::<GROUP>().0[at]) {
                    *taps = [*entry, entry >> 16, entry >> 32, entry >> 48].map(|v| (v as u16).cast_signed());
                }
            }
            for (pixel, mixed) in pixels.iter_mut().zip(four.mixed(self.shift)) {
                *pixel = [mixed[0], mixed[1], mixed[2], pixel[3]];
            }
        }
    }
}

/// Number of pixels that the scalar loops compute at once, so that compilers vectorise these loops. Vector loops
/// compute a multiple of this number.
const GROUP: usize = 8;

/// The inputs of one group of pixels, with the weights repeated for every channel.
#[derive(Default)]
struct Four {
    taps: [[[i16; 4]; GROUP]; 4],
    weights: [[[i16; 4]; GROUP]; 4],
}

impl Four {
    #[inline(always)]
    fn weighing(weights: &[[u32; 2]; GROUP]) -> Four {
        let mut four = Four::default();
        for (i, [one, other]) in weights.iter().enumerate() {
            for (to, weight) in four.weights.iter_mut().zip([*one, one >> 16, *other, other >> 16]) {
                to[i] = [(weight as u16).cast_signed(); 4];
            }
        }
        four
    }

    #[inline(always)]
    fn mixed(&self, shift: u32) -> [Pixel; GROUP] {
        let mut mixed = [[0; 4]; GROUP];
        for (i, mixed) in mixed.as_flattened_mut().iter_mut().enumerate() {
            let product =
                |k: usize| i32::from(self.taps[k].as_flattened()[i]) * i32::from(self.weights[k].as_flattened()[i]);
            let sum = product(0) + product(1) + product(2) + product(3) + (1 << (shift - 1));
            *mixed = (sum >> shift).clamp(0, 255) as u8;
        }
        mixed
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::__m128i;
        use std::arch::x86_64::_mm_cvtsi32_si128;
        use std::arch::x86_64::_mm_set1_epi32;
        use std::arch::x86_64::_mm_setr_epi32;
        use crate::picture::Pixel;
        use crate::simd::four::Entries;
        use crate::simd::four::NeighbourTaps;
        use crate::simd::four::WEIGHT_BITS;

        fn mix(taps: &NeighbourTaps, pixels: &mut [Pixel]) -> usize {
            let (zero, half) = (v::zero(), v::all_32(1 << (WEIGHT_BITS - 1)));
            // Interleaves the channels of two adjacent pixels, for two such pairs.
            let turn = v::repeat(_mm_setr_epi32(0x0501_0400, 0x0703_0602, 0x0d09_0c08, 0x0f0b_0e0a));
            let (groups, _) = pixels.as_chunks_mut::<{ v::BYTES / 4 }>();
            let (tops, _) = taps.top.as_chunks::<{ v::BYTES / 8 }>();
            let (bottoms, _) = taps.bottom.as_chunks::<{ v::BYTES / 8 }>();
            let (weights, _) = taps.weights.as_flattened().as_chunks::<{ v::BYTES / 4 }>();
            let mut done = 0;
            for (at, group) in groups.iter_mut().enumerate() {
                // No `map` here: the closure would not be inlined.
                let mut levels = [zero; 2];
                for (levels, at) in levels.iter_mut().zip(2 * at..) {
                    let top = v::shuffle_8(v::load_64(&tops[at]), turn);
                    let bottom = v::shuffle_8(v::load_64(&bottoms[at]), turn);
                    let weights = spread(v::load_32(&weights[at]));
                    let one = v::dot(half, v::unpack_low_8(top, zero), weights[0]);
                    let one = v::dot(one, v::unpack_low_8(bottom, zero), weights[1]);
                    let other = v::dot(half, v::unpack_high_8(top, zero), weights[2]);
                    let other = v::dot(other, v::unpack_high_8(bottom, zero), weights[3]);
                    *levels = v::pack_32(v::shift_32(one, 14), v::shift_32(other, 14));
                }
                let to = group.as_flattened_mut().first_chunk_mut().expect("four bytes to a pixel");
                v::store(to, v::in_turns(v::pack_16(levels[0], levels[1])));
                done += v::BYTES / 4;
            }
            done
        }

        fn mix_entries(entries: &Entries, shift: u32, pixels: &mut [Pixel]) -> usize {
            let half = v::all_32(1 << (shift - 1));
            let count: __m128i = _mm_cvtsi32_si128(shift.cast_signed());
            let alpha = v::repeat(_mm_set1_epi32(0xff00_0000_u32.cast_signed()));
            let (groups, _) = pixels.as_chunks_mut::<{ v::BYTES / 4 }>();
            let [first, second, third, fourth] = &entries.entries;
            let (first, _) = first.as_chunks::<{ v::BYTES / 8 }>();
            let (second, _) = second.as_chunks::<{ v::BYTES / 8 }>();
            let (third, _) = third.as_chunks::<{ v::BYTES / 8 }>();
            let (fourth, _) = fourth.as_chunks::<{ v::BYTES / 8 }>();
            let (weights, _) = entries.weights.as_flattened().as_chunks::<{ v::BYTES / 4 }>();
            let mut done = 0;
            for (at, group) in groups.iter_mut().enumerate() {
                let mut levels = [half; 2];
                for (levels, at) in levels.iter_mut().zip(2 * at..) {
                    let (a, b) = (v::load_64(&first[at]), v::load_64(&second[at]));
                    let (c, d) = (v::load_64(&third[at]), v::load_64(&fourth[at]));
                    let weights = spread(v::load_32(&weights[at]));
                    let one = v::dot(half, v::unpack_low_16(a, b), weights[0]);
                    let one = v::dot(one, v::unpack_low_16(c, d), weights[1]);
                    let other = v::dot(half, v::unpack_high_16(a, b), weights[2]);
                    let other = v::dot(other, v::unpack_high_16(c, d), weights[3]);
                    *levels = v::pack_32(v::shift_by_32(one, count), v::shift_by_32(other, count));
                }
                let group = group.as_flattened_mut().first_chunk_mut().expect("four bytes to a pixel");
                // Entries have a zero in place of alpha, which is still zero after rounding.
                let kept = v::and(v::load(group), alpha);
                v::store(group, v::xor(kept, v::in_turns(v::pack_16(levels[0], levels[1]))));
                done += v::BYTES / 4;
            }
            done
        }

        /// Repeats each pair of weights for all channels: the two pairs of the first pixel, then those of the second
        /// pixel.
        #[inline]
        fn spread(weights: v::Vector) -> [v::Vector; 4] {
            [
                v::shuffle_8(weights, v::repeat(_mm_set1_epi32(0x0302_0100))),
                v::shuffle_8(weights, v::repeat(_mm_set1_epi32(0x0706_0504))),
                v::shuffle_8(weights, v::repeat(_mm_set1_epi32(0x0b0a_0908))),
                v::shuffle_8(weights, v::repeat(_mm_set1_epi32(0x0f0e_0d0c))),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 11
    }

    /// Four weights with the sum 16384, including the extremes.
    fn weights(state: &mut u64) -> [u32; 2] {
        let mut cuts = [0; 3].map(|_: u64| random(state) % 20_000);
        cuts = cuts.map(|cut| cut.saturating_sub(1800).min(16_384));
        cuts.sort_unstable();
        [cuts[0] | ((cuts[1] - cuts[0]) << 16), (cuts[2] - cuts[1]) | ((16_384 - cuts[2]) << 16)].map(|v| v as u32)
    }

    #[test]
    fn every_level_mixes_alike_in_any_number() {
        let state = &mut 1;
        for count in (0..=AT_ONCE).chain([AT_ONCE; 40]) {
            let (mut taps, mut entries) = (NeighbourTaps::default(), Entries::default());
            for i in 0..AT_ONCE {
                let two = [random(state), random(state)].map(|v| v << 13 ^ v);
                (taps.top[i], taps.bottom[i], taps.weights[i]) = (two[0], two[1], weights(state));
                entries.weights[i] = weights(state);
                entries.entries.iter_mut().for_each(|entries| entries[i] = (random(state) << 7) & 0xffff_ffff_ffff);
            }
            let before: Vec<Pixel> = (0..count).map(|_| (random(state) as u32).to_le_bytes()).collect();
            let all = |level: Level| {
                let mut made = [before.clone(), before.clone(), before.clone()];
                mix(level, &taps, &mut made[0]);
                mix_entries(level, &entries, 7, &mut made[1]);
                mix_entries(level, &entries, 0, &mut made[2]);
                made
            };
            let plain = all(Level::BASELINE);
            for level in Level::available() {
                assert_eq!(all(level), plain, "{count} at {level}");
            }
        }
    }
}
