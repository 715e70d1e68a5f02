//! The kernels between pixels and tensors. [`FromPixels`] resizes, normalises and reorders rgba8 pixels. [`ToPixels`]
//! converts values back to pixels. Neither kernel knows colour spaces: values are pixel values divided by 255.
//!
//! Invariants: bilinear resizing interpolates between the four nearest pixel centres, which are at half-integers;
//! pixels at the edges repeat. Resizing to the same size changes nothing. The conversion from values to pixels rounds
//! halves up, and turns NaN into 0; alpha defaults to 255.

use smallvec::SmallVec;
use vramp_plan::Shader;

use crate::ops::dtype::DType;

use super::hook::Hook;
use super::text::{KernelText, Launch, MATH};
use super::words::{self, OutputRuns};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SamplingFilter {
    /// Interpolates between the four nearest pixels.
    Bilinear,
    /// The nearest pixel.
    Nearest,
}

/// The order of values in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PixelOrder {
    /// Channel by channel.
    Planes,
    /// Pixel by pixel.
    Pixels,
}

/// The kernel from pixels to values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FromPixels {
    pub filter: SamplingFilter,
    pub order: PixelOrder,
    /// One to four channels in the wanted order, given as indices: r, g, b and a are 0 to 3.
    pub channels: SmallVec<[u8; 4]>,
}

/// The sizes and constants of one launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ImageLaunch {
    /// Width and height of the source.
    pub from: [usize; 2],
    /// The first pixel of the source.
    pub offset: usize,
    /// Width and height of the result.
    pub to: [usize; 2],
    /// Subtracted from each pixel value / 255; one number per channel, in the order of the channels.
    pub mean: [f32; 4],
    /// The divisor of the difference pixel value / 255 - `mean`; one number per channel, in the order of the channels.
    pub std: [f32; 4],
}

const FIELDS: [&str; 6] = ["offset", "in_w", "in_h", "out_w", "out_h", "pixels"];

const BILINEAR: &str =
    "    let at_x = clamp((f32(x) + 0.5) * (f32(p.in_w) / f32(p.out_w)) - 0.5, 0.0, f32(p.in_w - 1u));
    let at_y = clamp((f32(y) + 0.5) * (f32(p.in_h) / f32(p.out_h)) - 0.5, 0.0, f32(p.in_h - 1u));
    let x0 = u32(at_x);
    let y0 = u32(at_y);
    let x1 = min(x0 + 1u, p.in_w - 1u);
    let y1 = min(y0 + 1u, p.in_h - 1u);
    let top = mix(pixel_at(x0, y0), pixel_at(x1, y0), at_x - f32(x0));
    let bottom = mix(pixel_at(x0, y1), pixel_at(x1, y1), at_x - f32(x0));
    return mix(top, bottom, at_y - f32(y0));";

/// Sampling of the nearest pixel. Positions are computed in integers, so that a position exactly between two pixels
/// gives the same pixel on every device.
const NEAREST: &str = "    let near_x = quotient((2u * x + 1u) * p.in_w, 2u * p.out_w);
    let near_y = quotient((2u * y + 1u) * p.in_h, 2u * p.out_h);
    return pixel_at(near_x, near_y);";

impl FromPixels {
    /// Buffers: the pixels, the results.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.write("out", "u32");
        let fields: Vec<&str> = FIELDS.iter().copied().chain(words::FIELDS).collect();
        text.params_with(&fields, &["mean: vec4<u32>", "share: vec4<u32>"], 0);
        text.push(MATH);
        let count = self.channels.len();
        let picks: String = (0..4).map(|at| ['x', 'y', 'z', 'w'][usize::from(self.channels[at % count] % 4)]).collect();
        let wgsl = include_str!("image.wgsl")
            .replace("$SAMPLE", if self.filter == SamplingFilter::Bilinear { BILINEAR } else { NEAREST })
            .replace("$PICKS", &picks);
        text.push(&wgsl);
        let place = |c: usize| match self.order {
            PixelOrder::Planes => format!("{c}u * p.pixels + i"),
            PixelOrder::Pixels => format!("i * {count}u + {c}u"),
        };
        let stores = (0..count).map(|c| {
            let part = ['x', 'y', 'z', 'w'][c];
            format!("    out[{}] = bitcast<u32>(v.{part});\n", place(c))
        });
        let stores: String = stores.collect();
        words::push_entry(&mut text, &format!("    let i = number;\n    let v = normal(i);\n{stores}"));
        text.shader("pixels to values".into(), 64)
    }

    pub(crate) fn launch(picture: &ImageLaunch, most: u32) -> Launch {
        let ImageLaunch { from, to, .. } = *picture;
        let pixels = to[0] * to[1];
        let own = [picture.offset, from[0], from[1], to[0], to[1], pixels].map(|number| number as u32);
        let vectors = picture.mean.map(f32::to_bits).into_iter().chain(picture.std.map(|std| (1.0 / std).to_bits()));
        let vectors: SmallVec<[u32; 8]> = vectors.collect();
        OutputRuns::whole(0, pixels).launch(DType::F32, &own, most).with_hook(&vectors)
    }
}

/// The kernel from values to pixels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ToPixels {
    pub order: PixelOrder,
    /// The index (r, g, b, a are 0 to 3) of each channel, in order. A single channel is gray; alpha defaults to 255.
    pub channels: Vec<u8>,
}

impl ToPixels {
    /// Buffers: the values, of f32, and the pixels.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.write("out", "u32");
        let fields: Vec<&str> = ["offset"].into_iter().chain(words::FIELDS).collect();
        text.params_with(&fields, &["scale: vec4<u32>", "bias: vec4<u32>"], 0);
        text.push(MATH);
        text.push(&Hook::plain(DType::F32).wgsl);
        text.push(
            "fn byte(v: f32, c: u32) -> u32 {
    let scaled = fma(v, bitcast<f32>(p.scale[c]), bitcast<f32>(p.bias[c]));
    return select(u32(clamp(floor(scaled + 0.5), 0.0, 255.0)), 0u, is_nan(scaled));
}",
        );
        let at = |c: usize| match self.order {
            PixelOrder::Planes => format!("byte(value(i + {c}u * p.count), {c}u)"),
            PixelOrder::Pixels => format!("byte(value(i * {}u + {c}u), {c}u)", self.channels.len()),
        };
        let place = |colour: u8| self.channels.iter().position(|channel| *channel == colour);
        let colour = |colour: u8| place(colour).map_or_else(|| "0u".to_owned(), at);
        let rgb = match self.channels.len() {
            1 => format!("{} * 0x010101u", at(0)),
            _ => format!("{} | ({} << 8u) | ({} << 16u)", colour(0), colour(1), colour(2)),
        };
        let own_alpha = place(3).filter(|_| self.channels.len() > 1);
        let alpha = own_alpha.map_or_else(|| "0xff000000u".to_owned(), |c| format!("({} << 24u)", at(c)));
        text.push(&format!("fn element(i: u32) -> u32 {{\n    return {rgb} | {alpha};\n}}"));
        words::push_main(&mut text, DType::U32);
        text.shader(format!("pixels of {} channels", self.channels.len()), 64)
    }

    /// The parameters and the grid. The kernel converts each value `v` to `v * scale + bias`, and the result to a byte.
    pub(crate) fn launch(pixels: usize, offset: usize, scale: [f32; 4], bias: [f32; 4], most: u32) -> Launch {
        let vectors: Vec<u32> = scale.into_iter().chain(bias).map(f32::to_bits).collect();
        OutputRuns::whole(0, pixels).launch(DType::U32, &[offset as u32], most).with_hook(&vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{MOST, bytes_of, noise, run, run_f32};
    use super::*;

    fn pixels(count: usize) -> Vec<u8> {
        noise(count * 4, 11).iter().map(|v| (v.abs() * 255.9) as u8).collect()
    }

    fn sample(
        filter: SamplingFilter,
        pixels: &[u8],
        from: [usize; 2],
        to: [usize; 2],
        at: [usize; 2],
        channel: u8,
    ) -> f64 {
        let pixel = |x: usize, y: usize| f64::from(pixels[(y * from[0] + x) * 4 + usize::from(channel)]);
        if filter == SamplingFilter::Nearest {
            return pixel((2 * at[0] + 1) * from[0] / (2 * to[0]), (2 * at[1] + 1) * from[1] / (2 * to[1]));
        }
        let place = |axis: usize| {
            let centre = (at[axis] as f64 + 0.5) * from[axis] as f64 / to[axis] as f64 - 0.5;
            let centre = centre.clamp(0.0, (from[axis] - 1) as f64);
            (centre as usize, (centre as usize + 1).min(from[axis] - 1), centre.fract())
        };
        let ((x0, x1, fx), (y0, y1, fy)) = (place(0), place(1));
        let row = |y: usize| pixel(x0, y) * (1.0 - fx) + pixel(x1, y) * fx;
        row(y0) * (1.0 - fy) + row(y1) * fy
    }

    #[test]
    fn pixels_are_resized_normalised_and_ordered() {
        let from = [7, 5];
        let mut all = vec![1, 2, 3, 4];
        all.extend(pixels(35));
        let (mean, std) = ([0.485, 0.456, 0.406, 0.1], [0.229, 0.224, 0.225, 2.0]);
        for (to, channels) in
            [([7, 5], &[0_u8, 1, 2][..]), ([3, 3], &[2, 1, 0]), ([15, 11], &[1]), ([9, 4], &[3, 0, 1, 2])]
        {
            for filter in [SamplingFilter::Bilinear, SamplingFilter::Nearest] {
                for order in [PixelOrder::Planes, PixelOrder::Pixels] {
                    let kind = FromPixels { filter, order, channels: SmallVec::from_slice(channels) };
                    let picture = ImageLaunch { from, offset: 1, to, mean, std };
                    let count = to[0] * to[1] * channels.len();
                    let got = run_f32(&kind.shader(), &FromPixels::launch(&picture, MOST), &[&all], count);
                    for (at, got) in got.into_iter().enumerate() {
                        let (c, pixel) = match order {
                            PixelOrder::Planes => (at / (to[0] * to[1]), at % (to[0] * to[1])),
                            PixelOrder::Pixels => (at % channels.len(), at / channels.len()),
                        };
                        let here = [pixel % to[0], pixel / to[0]];
                        let v = sample(filter, &all[4..], from, to, here, channels[c]) / 255.0;
                        let wanted = (v - f64::from(mean[c])) / f64::from(std[c]);
                        assert!((f64::from(got) - wanted).abs() <= 4e-6, "{kind:?} {to:?} at {at}: {got} {wanted}");
                    }
                }
            }
        }
    }

    #[test]
    fn values_become_pixels_rounded_and_held_to_what_a_byte_has() {
        let values = [0.0, 1.0, 0.5, -3.0, 7.0, f32::NAN, 1.4999 / 255.0, 1.5 / 255.0, f32::INFINITY, 0.2, 0.4, 0.6];
        let bytes = [0, 255, 128, 0, 255, 0, 1, 2, 255, 51, 102, 153];
        for (channels, order) in
            [(1, PixelOrder::Planes), (3, PixelOrder::Pixels), (3, PixelOrder::Planes), (4, PixelOrder::Pixels)]
        {
            let kind = ToPixels { order, channels: (0..channels as u8).collect() };
            let count = 12 / channels;
            let launch = ToPixels::launch(count, 0, [255.0; 4], [0.0; 4], MOST);
            let got = run(&kind.shader(), &launch, &[bytes_of(&values)], count * 4);
            for (at, pixel) in got.chunks(4).enumerate() {
                let byte = |c: usize| match order {
                    PixelOrder::Planes => bytes[c * count + at],
                    PixelOrder::Pixels => bytes[at * channels + c],
                };
                let wanted = match channels {
                    1 => [byte(0), byte(0), byte(0), 255],
                    3 => [byte(0), byte(1), byte(2), 255],
                    _ => [byte(0), byte(1), byte(2), byte(3)],
                };
                assert_eq!(pixel, wanted, "{channels} {order:?} at {at}");
            }
        }
    }
}
