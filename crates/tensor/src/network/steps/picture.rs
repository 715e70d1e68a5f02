//! Pictures as values: the pixels of a frame, fitted to the size that a network wants, scaled and with their channels in the
//! order that it wants, in one step.
//!
//! A picture is one word per pixel: red in the lowest byte, then green, blue and alpha.
//!
//! Invariant: the levels are those of the handler `resize` (and then `grayscale`), to the bit, on both sides.

use smallvec::SmallVec;
use vramp_kernels::head::bilinear::FRACTION_BITS;
use vramp_kernels::vectorised;

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
use crate::network::fit::{Fit, OUTSIDE};
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{DeviceFacts, DeviceWork};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::ValueId;
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;

#[cfg(not(target_arch = "wasm32"))]
use super::by_word::WordKernel;

const OP: &str = "picture";

/// The level beside a letterboxed picture.
const BESIDE: u32 = 114;

const ONE: u32 = 1 << FRACTION_BITS;

/// Positions that are computed together on the host.
const AT_ONCE: usize = 64;

/// How a picture becomes the values of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureSpec {
    /// Width and height of the values.
    pub size: [usize; 2],
    pub fit: Fit,
    pub channels: SmallVec<[PictureChannel; 4]>,
}

/// A channel of a network's input: `factor` times the level of `from`, and `offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PictureChannel {
    pub from: PictureLevel,
    pub factor: f32,
    pub offset: f32,
}

/// What a channel is made of: a level from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PictureLevel {
    Red = 0,
    Green = 1,
    Blue = 2,
    /// The three colors as one, as in the handler `grayscale`.
    Gray = 3,
}

/// Inputs: pixels, and the places of columns and rows.
#[derive(Debug)]
struct Picture {
    /// Width and height of the picture.
    from: [usize; 2],
    spec: PictureSpec,
}

impl NetworkBuilder {
    /// The values `[1, channels, height, width]` of a picture `[height, width]` of pixels.
    pub fn picture(&mut self, pixels: ValueId, spec: &PictureSpec) -> Result<ValueId, TensorError> {
        let from = self.is_picture(OP, pixels)?;
        let ([width, height], channels) = (spec.size, spec.channels.len());
        if width * height * channels == 0 || from.iter().any(|side| *side >= 1 << (32 - FRACTION_BITS)) {
            let problem = format!("a picture of {from:?} cannot become {channels} channels of {width}x{height} values");
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        let [columns, rows] = spec.fit.axes(from, spec.size);
        let places = [columns.to_network(), rows.to_network()].concat();
        let places = self.integers(bytemuck::cast_vec(places), &[width + height])?;
        let memories = [self.straight(pixels)?, self.straight(places)?];
        let step = Picture { from, spec: spec.clone() };
        self.add_one(step, &memories, NewValue::channels_last(WordKind::F32, &[1, channels, height, width]))
    }

    /// The width and the height of a value that is a picture with pixels.
    pub(super) fn is_picture(&self, op: &'static str, pixels: ValueId) -> Result<[usize; 2], TensorError> {
        match (self.kind(pixels), self.lengths(pixels)) {
            (WordKind::I32, &[height, width]) if height * width > 0 => Ok([width, height]),
            (kind, lengths) => {
                let problem = format!("{lengths:?} of {}; expected pixels [height, width] of i32", kind.dtype());
                Err(TensorError::Mismatch { op, problem })
            }
        }
    }
}

impl Picture {
    /// A line of values from two lines of pixels, of which the second one has this share. Pixels are collected before
    /// they are mixed, because loops with loads from anywhere are not vectorised.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "vectorised! compiles it for each vector level")]
    fn line(&self, lines: [&[u32]; 2], share: u32, columns: &[u32], out: &mut [f32]) {
        let count = self.spec.channels.len();
        let (mut words, mut shares) = ([[0; AT_ONCE]; 4], [0; AT_ONCE]);
        for (out, columns) in out.chunks_mut(AT_ONCE * count).zip(columns.chunks(AT_ONCE)) {
            for (i, place) in columns.iter().enumerate() {
                shares[i] = place & (ONE - 1);
                let at = (place >> FRACTION_BITS) as usize;
                let next = at + usize::from(shares[i] > 0);
                let from = |line: usize, at: usize| lines[line].get(at).copied().unwrap_or_default();
                (words[0][i], words[1][i]) = (from(0, at), from(0, next));
                (words[2][i], words[3][i]) = (from(1, at), from(1, next));
            }
            let level = |color: u32| -> [u32; AT_ONCE] {
                std::array::from_fn(
                    #[inline(always)]
                    |i| {
                        let [a, b, c, d] = [0, 1, 2, 3].map(|tap: usize| words[tap][i] >> (8 * color) & 255);
                        let mixed = |one: u32, two: u32| (one * (ONE - shares[i]) + two * shares[i] + 16) >> 5;
                        (mixed(a, b) * (ONE - share) + mixed(c, d) * share + (1 << 18)) >> 19
                    },
                )
            };
            let gray = |red: u32, green: u32, blue: u32| (9798 * red + 19235 * green + 3735 * blue + 16384) >> 15;
            for (to, channel) in self.spec.channels.iter().enumerate() {
                let levels = if channel.from == PictureLevel::Gray {
                    let [red, green, blue] = [0, 1, 2].map(level);
                    std::array::from_fn(|i| gray(red[i], green[i], blue[i]))
                } else {
                    level(channel.from as u32)
                };
                let values = levels.map(|level| level as f32 * channel.factor + channel.offset);
                for (out, value) in out[to..].iter_mut().step_by(count).zip(values) {
                    *out = value;
                }
            }
        }
        for (out, _) in out.chunks_exact_mut(count).zip(columns).filter(|(_, place)| **place == OUTSIDE) {
            self.values([BESIDE; 4], out);
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of a loop that is compiled for each vector level")]
    fn values(&self, levels: [u32; 4], out: &mut [f32]) {
        for (out, channel) in out.iter_mut().zip(&self.spec.channels) {
            *out = levels[channel.from as usize] as f32 * channel.factor + channel.offset;
        }
    }
}

impl Step for Picture {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (pixels, places, threads) = (call.inputs[0], call.inputs[1], call.threads);
        let (columns, rows) = places.split_at(self.spec.size[0]);
        let width = self.from[0];
        let row = self.spec.size[0] * self.spec.channels.len();
        let out = call.floats_out(0);
        // A value takes about four times as long as one of an elementwise step.
        let work = out.len() * 4;
        spread(out, row, work, threads, |first, out| {
            for (out, place) in out.chunks_exact_mut(row).zip(&rows[first..]) {
                if *place == OUTSIDE {
                    out.chunks_exact_mut(self.spec.channels.len()).for_each(|out| self.values([BESIDE; 4], out));
                    continue;
                }
                let (at, share) = ((place >> FRACTION_BITS) as usize, place & (ONE - 1));
                let lines = [at, at + usize::from(share > 0)].map(|line| &pixels[line * width..][..width]);
                vectorised!(self.line(lines, share, columns, out));
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let ([width, height], channels) = (self.spec.size, &self.spec.channels);
        let vectors: Vec<[u32; 4]> = channels
            .iter()
            .map(|channel| [channel.from as u32, channel.factor.to_bits(), channel.offset.to_bits(), 0])
            .collect();
        let kernel = WordKernel {
            name: &format!("picture of {} channels", channels.len()),
            inputs: &["pixels", "places"],
            fields: &[("from_width", self.from[0]), ("width", width), ("channels", channels.len())],
            vectors: &vectors,
            wgsl: include_str!("picture.wgsl"),
            count: width * height * channels.len(),
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, close};
    use super::*;

    /// Pixels that look random.
    fn pixels(count: usize) -> Vec<i32> {
        let mut state = 1_u32;
        let next = || {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            (state ^ (state >> 15)).cast_signed()
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    /// The value of each channel of each position, as `resize` and arithmetic define it.
    fn plainly(pixels: &[i32], from: [usize; 2], spec: &PictureSpec) -> Vec<f32> {
        let [columns, rows] = spec.fit.axes(from, spec.size);
        let mut out = Vec::new();
        for channel in &spec.channels {
            for (y, x) in (0..spec.size[1]).flat_map(|y| (0..spec.size[0]).map(move |x| (y, x))) {
                let seen = |axis: crate::network::FittedAxis, at: usize| {
                    let within = at.checked_sub(axis.place.start).filter(|within| *within < axis.place.length)?;
                    let step = axis.part.length as f64 / axis.place.length as f64;
                    let last = (axis.part.length - 1) as f64;
                    let place = ((within as f64 + 0.5) * step - 0.5).clamp(0.0, last);
                    let place = (place * 4096.0 + 0.5).floor() / 4096.0 + axis.part.start as f64;
                    Some((place.floor() as usize, place.fract()))
                };
                let level = |color: usize| match (seen(columns, x), seen(rows, y)) {
                    (Some((x, along)), Some((y, down))) => {
                        let byte = |x: usize, y: usize| {
                            let (x, y) = (x.min(from[0] - 1), y.min(from[1] - 1));
                            f64::from(pixels[y * from[0] + x].to_le_bytes()[color])
                        };
                        let line = |y: usize| {
                            let exact = byte(x, y) * (1.0 - along) + byte(x + 1, y) * along;
                            (exact * 128.0 + 0.5).floor() / 128.0
                        };
                        (line(y) * (1.0 - down) + line(y + 1) * down + 0.5).floor()
                    }
                    _ => 114.0,
                };
                let [red, green, blue] = [0, 1, 2].map(level);
                let level = match channel.from {
                    PictureLevel::Red => red,
                    PictureLevel::Green => green,
                    PictureLevel::Blue => blue,
                    PictureLevel::Gray => {
                        ((9798.0 * red + 19235.0 * green + 3735.0 * blue + 16384.0) / 32768.0).floor()
                    }
                };
                out.push((level * f64::from(channel.factor) + f64::from(channel.offset)) as f32);
            }
        }
        out
    }

    #[test]
    fn pictures_are_fitted_scaled_and_reordered_on_both_sides() {
        use PictureLevel::{Blue, Gray, Green, Red};
        let channel = |from, factor, offset| PictureChannel { from, factor, offset };
        let one = 1.0 / 255.0;
        let rgb = [channel(Red, one, -0.5), channel(Green, one, 0.0), channel(Blue, one, 0.25)];
        let bgr = [Blue, Green, Red].map(|from| channel(from, 1.0, 0.0));
        let gray = [channel(Gray, one, 0.0)];
        let cases = [
            ([20, 12], [8, 8], Fit::Stretch, &rgb[..]),
            ([20, 12], [20, 12], Fit::Stretch, &bgr),
            ([7, 5], [31, 17], Fit::Stretch, &gray),
            ([20, 12], [16, 16], Fit::Letterbox, &rgb),
            ([12, 20], [9, 16], Fit::Crop, &bgr),
            ([1, 1], [5, 4], Fit::Letterbox, &rgb),
            ([40, 3], [4, 4], Fit::Crop, &gray),
        ];
        for (from, size, fit, channels) in cases {
            let spec = PictureSpec { size, fit, channels: SmallVec::from_slice(channels) };
            let pixels = pixels(from[0] * from[1]);
            let made = both(&[Given::Integers(&pixels, &[from[1], from[0]])], |net, ids| {
                Ok(vec![net.picture(ids[0], &spec)?])
            });
            close(&made[0], &plainly(&pixels, from, &spec), &format!("{from:?} {spec:?}"));
        }
    }
}
