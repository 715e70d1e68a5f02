//! Floats as whole numbers of 8 bits, and back.
//!
//! Owns symmetric quantisation: x is about q * scale, with one scale for all values or one per channel.
//! Does not multiply quantised values: `matmul8` does.
//!
//! Always: a scale is max|x| / 127 of the finite values, a multiplier, never subnormal, and 1 where all are 0; q is x / scale
//! rounded half to even, within -127..=127 (-128 is not used); so finite values come back within scale / 2. NaN is 0, and
//! +-Inf is +-127.

use crate::host::lanes;
use crate::host::math::ROUNDING;
use crate::host::rows::{PART, Rows};
use crate::host::spread::spread;
use crate::host::vector::vectorised;
use crate::shape::Around;

/// Finds the scale of every channel, of which there are `channels.length` (1 for all values together: `outer` 1, `length` 1).
pub(crate) fn scales<R: Rows>(input: &R, channels: Around, scales: &mut [f32]) {
    assert_eq!(scales.len(), channels.length, "a scale per channel");
    scales.fill(0.0);
    let Around { outer, length, inner } = channels;
    if inner == 1 {
        vectorised!(largest_sizes(input, outer, scales));
    } else {
        for slab in 0..outer {
            for (channel, scale) in scales.iter_mut().enumerate() {
                *scale = scale.max(vectorised!(largest_size(input, (slab * length + channel) * inner, inner)));
            }
        }
    }
    for scale in scales {
        *scale = if *scale == 0.0 { 1.0 } else { (*scale / 127.0).max(f32::MIN_POSITIVE) };
    }
}

/// x / scale of its channel, as whole numbers.
pub(crate) fn quantize<R: Rows>(input: &R, channels: Around, scales: &[f32], out: &mut [i8], threads: usize) {
    let Around { outer, length, inner } = channels;
    assert_eq!(scales.len(), length, "a scale per channel");
    assert_eq!(out.len(), outer * length * inner, "whole numbers around {channels:?}");
    let values = out.len();
    if inner == 1 {
        return spread(out, length, values, threads, |first, out| {
            vectorised!(quantize_lines(input, first * length, scales, out));
        });
    }
    spread(out, inner, values, threads, |first, out| {
        for (at, out) in out.chunks_mut(inner).enumerate() {
            let row = first + at;
            vectorised!(quantize_row(input, row * inner, scales[row % length], out));
        }
    });
}

/// q * scale of its channel.
pub(crate) fn dequantize(input: &[i8], channels: Around, scales: &[f32], out: &mut [f32], threads: usize) {
    let Around { outer, length, inner } = channels;
    assert_eq!(scales.len(), length, "a scale per channel");
    assert_eq!(
        (input.len(), out.len()),
        (outer * length * inner, outer * length * inner),
        "floats around {channels:?}"
    );
    let values = out.len();
    if inner == 1 {
        return spread(out, length, values, threads, |first, out| {
            vectorised!(dequantize_lines(&input[first * length..][..out.len()], scales, out));
        });
    }
    spread(out, inner, values, threads, |first, out| {
        for (at, out) in out.chunks_mut(inner).enumerate() {
            let row = first + at;
            vectorised!(dequantize_row(&input[row * inner..][..inner], scales[row % length], out));
        }
    });
}

#[inline(always)]
fn largest_size<R: Rows>(input: &R, start: usize, len: usize) -> f32 {
    let mut scratch = [0.0; PART];
    let mut largest = 0.0;
    let mut at = 0;
    while at < len {
        let part = input.part(start + at, PART.min(len - at), &mut scratch);
        largest = larger_size(largest, lanes::fold(part, 0.0, larger_size, larger_size));
        at += part.len();
    }
    largest
}

/// The larger size of the two, of which the second counts only if it is finite.
#[inline(always)]
fn larger_size(most: f32, value: f32) -> f32 {
    let size = value.abs();
    // False of NaN, too.
    let finite = size < f32::INFINITY;
    if finite && size > most { size } else { most }
}

#[inline(always)]
fn quantize_row<R: Rows>(input: &R, start: usize, scale: f32, out: &mut [i8]) {
    let mut scratch = [0.0; PART];
    for (at, out) in out.chunks_mut(PART).enumerate() {
        let part = input.part(start + at * PART, out.len(), &mut scratch);
        for (out, value) in out.iter_mut().zip(part) {
            *out = nearest(*value / scale);
        }
    }
}

/// The nearest whole number, half to even, within -127..=127; 0 of NaN.
#[inline(always)]
fn nearest(scaled: f32) -> i8 {
    let scaled = if scaled.is_nan() { 0.0 } else { scaled };
    let scaled = if scaled > 127.0 { 127.0 } else { scaled };
    let scaled = if scaled < -127.0 { -127.0 } else { scaled };
    (scaled + ROUNDING).to_bits() as i8
}

/// Where the last axis has the channels: a scale per column.
#[inline(always)]
fn largest_sizes<R: Rows>(input: &R, lines: usize, sizes: &mut [f32]) {
    let mut scratch = [0.0; PART];
    let length = sizes.len();
    for line in 0..lines {
        for (at, sizes) in sizes.chunks_mut(PART).enumerate() {
            let part = input.part(line * length + at * PART, sizes.len(), &mut scratch);
            for (most, value) in sizes.iter_mut().zip(part) {
                *most = larger_size(*most, *value);
            }
        }
    }
}

#[inline(always)]
fn quantize_lines<R: Rows>(input: &R, start: usize, scales: &[f32], out: &mut [i8]) {
    let mut scratch = [0.0; PART];
    let length = scales.len();
    for (line, out) in out.chunks_mut(length).enumerate() {
        for (at, (out, scales)) in out.chunks_mut(PART).zip(scales.chunks(PART)).enumerate() {
            let part = input.part(start + line * length + at * PART, out.len(), &mut scratch);
            for ((out, value), scale) in out.iter_mut().zip(part).zip(scales) {
                *out = nearest(*value / scale);
            }
        }
    }
}

#[inline(always)]
fn dequantize_lines(input: &[i8], scales: &[f32], out: &mut [f32]) {
    for (out, input) in out.chunks_mut(scales.len()).zip(input.chunks(scales.len())) {
        for ((out, q), scale) in out.iter_mut().zip(input).zip(scales) {
            *out = f32::from(*q) * scale;
        }
    }
}

#[inline(always)]
fn dequantize_row(input: &[i8], scale: f32, out: &mut [f32]) {
    for (out, q) in out.iter_mut().zip(input) {
        *out = f32::from(*q) * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Around = Around { outer: 1, length: 1, inner: 0 };

    fn quantized(input: &[f32], channels: Around) -> (Vec<f32>, Vec<i8>, Vec<f32>) {
        let mut scale = vec![0.0; channels.length];
        scales(&input, channels, &mut scale);
        let (mut out, mut back) = (vec![0; input.len()], vec![0.0; input.len()]);
        quantize(&input, channels, &scale, &mut out, 2);
        dequantize(&out, channels, &scale, &mut back, 2);
        (scale, out, back)
    }

    #[test]
    fn values_come_back_within_half_a_scale_and_the_ends_are_exact() {
        let input: Vec<f32> = (0..5000_i16).map(|at| f32::from(at - 2500) * 0.0508).collect();
        let (scale, out, back) = quantized(&input, Around { inner: input.len(), ..ALL });
        assert_eq!(scale, [127.0 / 127.0]);
        assert_eq!((out[0], input[0]), (-127, -127.0));
        for (value, back) in input.iter().zip(back) {
            assert!((value - back).abs() <= scale[0] * 0.500_001, "{value} came back as {back}");
        }
    }

    #[test]
    fn halves_go_to_the_even_number() {
        let (_, out, _) = quantized(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5], Around { inner: 7, ..ALL });
        assert_eq!(out, [127, 0, 2, 2, 0, -2, -2]);
    }

    #[test]
    fn what_is_not_finite_does_not_spoil_the_scale() {
        let input = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 254.0, -2.0];
        let (scale, out, _) = quantized(&input, Around { inner: 5, ..ALL });
        assert_eq!((scale[0], out.as_slice()), (2.0, [0, 127, -127, 127, -1].as_slice()));
        let (scale, out, back) = quantized(&[0.0, -0.0], Around { inner: 2, ..ALL });
        assert_eq!((scale[0], out.as_slice(), back.as_slice()), (1.0, [0, 0].as_slice(), [0.0, 0.0].as_slice()));
        let (scale, _, back) = quantized(&[1e-40, -1e-37], Around { inner: 2, ..ALL });
        assert!(scale[0] == f32::MIN_POSITIVE && (back[1] + 1e-37).abs() <= scale[0]);
    }

    #[test]
    fn every_channel_has_its_own_scale() {
        let (scale, out, _) =
            quantized(&[127.0, 1.0, 254.0, 2.0, 64.0, 127.0, 2.0, -254.0], Around { outer: 2, length: 2, inner: 2 });
        assert_eq!(scale, [1.0, 2.0]);
        assert_eq!(out, [127, 1, 127, 1, 64, 127, 1, -127]);
        let (scale, out, back) = quantized(&[127.0, 1.0, -64.0, 254.0], Around { outer: 2, length: 2, inner: 1 });
        assert_eq!((scale.as_slice(), out.as_slice()), ([1.0, 2.0].as_slice(), [127, 0, -64, 127].as_slice()));
        assert_eq!(back, [127.0, 0.0, -64.0, 254.0]);
    }
}
