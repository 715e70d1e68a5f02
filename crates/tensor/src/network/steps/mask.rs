//! Masks in pictures: one value per position of a network becomes the alpha, or the color, of a picture's pixels.
//!
//! Invariants: both sides interpolate with the same taps. Pixels that the network has not seen get 0.

use vramp_kernels::vectorised;

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
use crate::network::fit::{FittedAxis, OUTSIDE};
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{DeviceFacts, DeviceWork};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::ValueId;
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;

#[cfg(not(target_arch = "wasm32"))]
use super::by_word::WordKernel;

const OP: &str = "mask";

/// Pixels that are computed together on the host.
const AT_ONCE: usize = 64;

/// Where a mask goes in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MaskShow {
    /// Into alpha.
    #[default]
    Alpha,
    /// Into red, green and blue.
    Colors,
}

/// Inputs: pixels, mask, and the taps of columns and rows.
#[derive(Debug)]
struct Mask {
    /// Width and height of the picture.
    size: [usize; 2],
    /// Width of the mask.
    width: usize,
    /// Values above this are 255 and others 0.
    threshold: Option<f32>,
    show: MaskShow,
}

impl NetworkBuilder {
    /// The picture `pixels` with a mask `[height, width]` of values from 0 to 1, interpolated to the picture's size. The
    /// axes of width and height say how the picture was fitted to a network; a mask of another size than the network's
    /// input covers the same part.
    pub fn masked(
        &mut self,
        pixels: ValueId,
        mask: ValueId,
        fitted: [FittedAxis; 2],
        threshold: Option<f32>,
        show: MaskShow,
    ) -> Result<ValueId, TensorError> {
        let size = self.is_picture(OP, pixels)?;
        let &[height, width] = self.lengths(mask) else {
            let problem = format!("a mask is [height, width], got {:?}", self.lengths(mask));
            return Err(TensorError::Mismatch { op: OP, problem });
        };
        if self.kind(mask) != WordKind::F32 || width * height == 0 {
            let problem = format!("a mask [{height}, {width}] of {}", self.kind(mask).dtype());
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        let taps: Vec<u32> =
            fitted.iter().zip([width, height]).flat_map(|(axis, length)| axis.to_picture(length)).flatten().collect();
        let taps = self.integers(bytemuck::cast_vec(taps), &[2 * (size[0] + size[1])])?;
        let memories = [self.straight(pixels)?, self.straight(mask)?, self.straight(taps)?];
        let step = Mask { size, width, threshold, show };
        self.add_one(step, &memories, NewValue::straight(WordKind::I32, &[size[1], size[0]]))
    }
}

impl Mask {
    /// A line of pixels from two lines of the mask. Values are collected before they are mixed, because loops with loads
    /// from anywhere are not vectorised.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "vectorised! compiles it for each vector level")]
    fn line(&self, lines: [&[f32]; 2], share: f32, columns: &[[u32; 2]], pixels: &[u32], out: &mut [u32]) {
        let chunks = out.chunks_mut(AT_ONCE).zip(pixels.chunks(AT_ONCE)).zip(columns.chunks(AT_ONCE));
        let (mut taps, mut shares) = ([[0.0; AT_ONCE]; 4], [0.0; AT_ONCE]);
        for ((out, pixels), columns) in chunks {
            for (i, [at, across]) in columns.iter().enumerate() {
                shares[i] = f32::from_bits(*across);
                let (at, next) = (*at as usize, *at as usize + usize::from(shares[i] > 0.0));
                // What is outside becomes 0, as NaN does.
                let from = |line: usize, at: usize| lines[line].get(at).copied().unwrap_or(f32::NAN);
                (taps[0][i], taps[1][i]) = (from(0, at), from(0, next));
                (taps[2][i], taps[3][i]) = (from(1, at), from(1, next));
            }
            // Without a share nothing is added: the difference of two infinite values is not 0.
            let mixed = |one: f32, two: f32, share: f32| if share > 0.0 { one + (two - one) * share } else { one };
            let levels: [u32; AT_ONCE] = std::array::from_fn(
                #[inline(always)]
                |i| {
                    let [top, bottom] = [0, 2].map(|line| mixed(taps[line][i], taps[line + 1][i], shares[i]));
                    self.level(mixed(top, bottom, share))
                },
            );
            for ((out, pixel), level) in out.iter_mut().zip(pixels).zip(levels) {
                *out = self.put(*pixel, level);
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of a loop that is compiled for each vector level")]
    fn level(&self, value: f32) -> u32 {
        match self.threshold {
            Some(threshold) => 255 * u32::from(value > threshold),
            None => {
                let level = value * 255.0 + 0.5;
                // NaN becomes 0. Signed, because compilers convert such floats in vectors.
                let level = if level > 0.0 { level.min(255.0) } else { 0.0 };
                (level as i32).cast_unsigned()
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of a loop that is compiled for each vector level")]
    fn put(&self, pixel: u32, level: u32) -> u32 {
        match self.show {
            MaskShow::Alpha => pixel & 0xff_ffff | level << 24,
            MaskShow::Colors => pixel & 0xff00_0000 | (level * 0x01_0101),
        }
    }
}

impl Step for Mask {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let (pixels, mask, taps) = (call.inputs[0], call.floats(1), call.inputs[2]);
        let (columns, rows) = taps.as_chunks::<2>().0.split_at(self.size[0]);
        let width = self.size[0];
        let out = &mut *call.outputs[0];
        let work = out.len() * 4;
        spread(out, width, work, call.threads, |first, out| {
            let pixels = pixels[first * width..].chunks_exact(width);
            for ((out, pixels), [at, share]) in out.chunks_exact_mut(width).zip(pixels).zip(&rows[first..]) {
                if *at == OUTSIDE {
                    for (out, pixel) in out.iter_mut().zip(pixels) {
                        *out = self.put(*pixel, 0);
                    }
                    continue;
                }
                let (at, share) = (*at as usize, f32::from_bits(*share));
                let lines = [at, at + usize::from(share > 0.0)].map(|line| &mask[line * self.width..][..self.width]);
                vectorised!(self.line(lines, share, columns, pixels, out));
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let [width, height] = self.size;
        let level = match self.threshold {
            Some(_) => "select(0u, 255u, value > bitcast<f32>(p.threshold))",
            None => "u32(clamp(value * 255.0 + 0.5, 0.0, 255.0))",
        };
        let put = match self.show {
            MaskShow::Alpha => "(pixel & 0xffffffu) | (level << 24u)",
            MaskShow::Colors => "(pixel & 0xff000000u) | (level * 0x010101u)",
        };
        let kernel = WordKernel {
            name: &format!("mask {:?} {}", self.show, self.threshold.is_some()),
            inputs: &["pixels", "mask", "taps"],
            fields: &[
                ("width", width),
                ("mask_width", self.width),
                ("threshold", self.threshold.unwrap_or(0.0).to_bits() as usize),
            ],
            vectors: &[],
            wgsl: &format!(
                "
fn value_at(at: u32) -> f32 {{ return bitcast<f32>(mask[at]); }}

fn across(at: u32, share: f32) -> f32 {{
    let one = value_at(at);
    if share <= 0.0 {{ return one; }}
    return one + (value_at(at + 1u) - one) * share;
}}

fn element(i: u32) -> u32 {{
    let y = quotient(i, p.width);
    let x = i - y * p.width;
    let pixel = pixels[i];
    let column = taps[2u * x];
    let row = taps[2u * (p.width + y)];
    var level = 0u;
    if column != 0xffffffffu && row != 0xffffffffu {{
        let along = bitcast<f32>(taps[2u * x + 1u]);
        let down = bitcast<f32>(taps[2u * (p.width + y) + 1u]);
        let at = row * p.mask_width + column;
        var value = across(at, along);
        if down > 0.0 {{ value = value + (across(at + p.mask_width, along) - value) * down; }}
        if !is_nan(value) {{ level = {level}; }}
    }}
    return {put};
}}
"
            ),
            count: width * height,
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, noise};
    use super::*;
    use crate::network::{Fit, Span};

    #[test]
    fn infinite_values_reach_no_pixels_that_have_no_share_of_them() {
        let fitted = Fit::Stretch.axes([2, 2], [2, 2]);
        let pixels = Given::Integers(&[0; 4], &[2, 2]);
        let inf = f32::INFINITY;
        for (values, wanted) in [
            ([inf, inf, 0.0, 1.0], [255, 255, 0, 255]),
            ([1.0, -inf, inf, -inf], [255, 0, 255, 0]),
            ([-inf, inf, -inf, 0.0], [0, 255, 0, 0]),
        ] {
            for threshold in [None, Some(0.5)] {
                let made = both(&[pixels, Given::Floats(&values, &[2, 2])], |net, ids| {
                    Ok(vec![net.masked(ids[0], ids[1], fitted, threshold, MaskShow::Alpha)?])
                });
                for (side, words) in ["host", "device"].into_iter().zip(made[0].sides()) {
                    let levels: Vec<u32> = words.iter().map(|word| word >> 24).collect();
                    assert_eq!(levels, wanted, "{side}: {values:?} {threshold:?}");
                }
            }
        }
    }

    #[test]
    fn masks_are_stretched_over_the_part_that_was_seen() {
        for (picture, network, of_mask, fit) in [
            ([21, 13], [8, 8], [8, 8], Fit::Stretch),
            ([21, 13], [8, 8], [4, 4], Fit::Letterbox),
            ([64, 36], [64, 64], [4, 4], Fit::Letterbox),
            ([36, 64], [48, 32], [7, 5], Fit::Letterbox),
            ([100, 9], [40, 40], [10, 10], Fit::Letterbox),
            ([21, 13], [8, 8], [8, 8], Fit::Crop),
            ([5, 9], [16, 8], [16, 8], Fit::Letterbox),
            ([1, 1], [3, 3], [3, 3], Fit::Stretch),
        ] {
            let axes = fit.axes(picture, network);
            let pixels: Vec<i32> =
                (0..picture[0] * picture[1]).map(|at| (at as u32).wrapping_mul(0x9e37_79b9).cast_signed()).collect();
            let values: Vec<f32> = noise(of_mask[0] * of_mask[1], 9).iter().map(|value| value + 0.5).collect();
            for (threshold, show) in [(None, MaskShow::Alpha), (Some(0.5), MaskShow::Colors)] {
                let given = [
                    Given::Integers(&pixels, &[picture[1], picture[0]]),
                    Given::Floats(&values, &[of_mask[1], of_mask[0]]),
                ];
                let made = both(&given, |net, ids| Ok(vec![net.masked(ids[0], ids[1], axes, threshold, show)?]));
                let [host, device] = made[0].sides();
                for at in 0..pixels.len() {
                    let [x, y] = [at % picture[0], at / picture[0]];
                    // The coordinate of the mask, without clamping.
                    let seen = |axis: usize, at: usize| {
                        let axis_of = axes[axis];
                        let within = at.checked_sub(axis_of.part.start).filter(|at| *at < axis_of.part.length)?;
                        let per = of_mask[axis] as f64 / network[axis] as f64;
                        let place = (within as f64 + 0.5) * axis_of.place.length as f64 / axis_of.part.length as f64;
                        Some((place + axis_of.place.start as f64) * per - 0.5)
                    };
                    let unseen = seen(0, x).is_none() || seen(1, y).is_none();
                    for (side, words) in [("host", host), ("device", device)] {
                        let (got, pixel) = (words[at].to_le_bytes(), pixels[at].to_le_bytes());
                        let (level, kept, own) = match show {
                            MaskShow::Alpha => (got[3], got[..3].to_vec(), pixel[..3].to_vec()),
                            MaskShow::Colors => (got[0], vec![got[3]], vec![pixel[3]]),
                        };
                        assert_eq!(kept, own, "{side} {x} {y}");
                        assert!(!unseen || level == 0, "{side} {x} {y}: {level}");
                        if let (Some(u), Some(v), None) = (seen(0, x), seen(1, y), threshold) {
                            // Within the positions that the picture touches.
                            let clamped = |at: f64, axis: usize| {
                                let per = of_mask[axis] as f64 / network[axis] as f64;
                                let Span { start, length } = axes[axis].place;
                                let (first, end) = (start as f64 * per, (start + length) as f64 * per);
                                at.clamp(first.floor(), end.ceil() - 1.0)
                            };
                            let (u, v) = (clamped(u, 0), clamped(v, 1));
                            let value = |x: usize, y: usize| {
                                f64::from(values[y.min(of_mask[1] - 1) * of_mask[0] + x.min(of_mask[0] - 1)])
                            };
                            let line = |y: usize| {
                                value(u as usize, y) * (1.0 - u.fract()) + value(u as usize + 1, y) * u.fract()
                            };
                            let wanted = line(v as usize) * (1.0 - v.fract()) + line(v as usize + 1) * v.fract();
                            let wanted = (wanted * 255.0 + 0.5).floor().clamp(0.0, 255.0);
                            assert!((f64::from(level) - wanted).abs() <= 1.0, "{side} {x} {y}: {level}, not {wanted}");
                        }
                    }
                    assert!(
                        threshold.is_some() || host[at].to_le_bytes()[3].abs_diff(device[at].to_le_bytes()[3]) <= 1,
                        "{x} {y}"
                    );
                }
            }
        }
    }
}
