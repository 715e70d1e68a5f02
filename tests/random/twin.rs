//! Small kernels for the tests' handlers, on the host and on the device: block means, weights, paint, tint, a detector
//! and a box.
//!
//! Both versions read the same eight words, compute in whole numbers (also where the result is a float), and write every
//! byte of their result, so that results are compared to the byte.

use std::sync::Arc;

use vramp::gpu::{Device, DeviceKernel, Recording};
use vramp::plan::{Binding, DType, Shader, Space};
use vramp::runtime::{Call, Frame, HandlerError, Meta, Setup};

/// The parameters of one frame. The first is the number of invocations.
pub type Words = [u32; 8];

/// A kernel that makes a frame from the lead's frame and, if it has a side, from a tensor.
pub struct Kernel {
    pub name: &'static str,
    pub has_side: bool,
    /// `fn each(at: u32)`, which reads `a`, `b` and `word`, and writes `made`.
    pub wgsl: &'static str,
    pub host: fn(&Words, &[u8], &[u8], &mut [u8]),
}

/// A kernel in the space of its handler.
pub struct Twin {
    kernel: &'static Kernel,
    on_device: Option<OnDevice>,
}

struct OnDevice {
    device: Device,
    compiled: DeviceKernel,
    owner: Arc<str>,
    recording: Recording,
}

impl Twin {
    /// Compiles the kernel if the handler runs on the device.
    pub fn of(kernel: &'static Kernel, setup: &Setup<'_>) -> Result<Twin, HandlerError> {
        let device = setup.device.as_ref().filter(|_| setup.space == Space::Gpu);
        let on_device = device.map(|device| -> Result<OnDevice, HandlerError> {
            let compiled = device.prepare(&kernel.shader()).map_err(HandlerError::failed)?;
            Ok(OnDevice { device: device.clone(), compiled, owner: setup.name.into(), recording: Recording::new() })
        });
        Ok(Twin { kernel, on_device: on_device.transpose()? })
    }

    /// Makes a frame of this description where the lead's frame is.
    pub fn make(
        &mut self,
        call: &mut Call<'_>,
        lead: &Frame,
        side: Option<&Frame>,
        meta: Meta,
        words: Words,
    ) -> Result<Frame, HandlerError> {
        let Some(buffer) = lead.buffer() else {
            let mut made = call.lend_frame(meta)?;
            let lead = lead.bytes();
            let side = side.map(Frame::bytes);
            let side: &[u8] = side.as_ref().map_or(&[], |side| side);
            let mut bytes = made.fill().ok_or_else(|| HandlerError::failed("a lent frame is shared"))?;
            bytes.fill(0);
            (self.kernel.host)(&words, &lead, side, &mut bytes);
            drop(bytes);
            return Ok(made);
        };
        let there = self.on_device.as_mut().ok_or_else(|| HandlerError::failed("made for the host"))?;
        let made = there.device.lend(meta.bytes(), &there.owner).map_err(HandlerError::failed)?;
        let bound = match side.map(|side| side.buffer().ok_or_else(|| HandlerError::failed("a tensor on the host"))) {
            Some(side) => vec![buffer, side?, &made],
            None => vec![buffer, &made],
        };
        let params: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let grid = there.compiled.cover(words[0].into(), there.device.limits());
        there.recording.dispatch(&there.compiled, &bound, &params, grid).map_err(HandlerError::failed)?;
        call.record(&mut there.recording)?;
        Ok(Frame::on_device(meta, made))
    }
}

impl Kernel {
    fn shader(&self) -> Shader {
        let (side, made) =
            if self.has_side { ("@group(0) @binding(1) var<storage, read> b: array<u32>;\n", 2) } else { ("", 1) };
        let params = made + 1;
        let value = VALUE.replace("FROM", if self.has_side { "b" } else { "a" });
        let wgsl = format!(
            "@group(0) @binding(0) var<storage, read> a: array<u32>;\n{side}\
             @group(0) @binding({made}) var<storage, read_write> made: array<u32>;\n\
             @group(0) @binding({params}) var<uniform> words: array<vec4<u32>, 2>;\n\
             fn word(at: u32) -> u32 {{ return words[at / 4u][at % 4u]; }}\n{value}{}\n\
             @compute @workgroup_size(64)\n\
             fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{\n\
                 let at = id.x + id.y * groups.x * 64u;\n\
                 if at < word(0u) {{ each(at); }}\n\
             }}\n",
            self.wgsl
        );
        let mut bindings = vec![Binding::Read; made];
        bindings.extend([Binding::Write, Binding::Params { bytes: 32 }]);
        Shader { name: self.name.to_owned(), wgsl, bindings, per_workgroup: 64 }
    }
}

/// Reads an element of a tensor, by the number of its type in `DType::ALL`.
const VALUE: &str = "
fn value(at: u32, dtype: u32) -> f32 {
    switch dtype {
        case 0u: { return bitcast<f32>(FROM[at]); }
        case 1u: { return unpack2x16float(FROM[at / 2u])[at % 2u]; }
        case 2u: { return f32(bitcast<i32>(FROM[at])); }
        case 3u: { return f32(FROM[at]); }
        case 4u: { return f32((FROM[at / 4u] >> (at % 4u * 8u)) & 255u); }
        default: { return f32(bitcast<i32>(FROM[at / 4u] << (24u - at % 4u * 8u)) >> 24u); }
    }
}
fn channels(pixel: u32) -> vec4<u32> {
    return (vec4<u32>(pixel) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}
fn packed(c: vec4<u32>) -> u32 { return c.x | (c.y << 8u) | (c.z << 16u) | (c.w << 24u); }
";

/// The number of an element type, as the kernels know it.
pub fn number_of(dtype: DType) -> u32 {
    DType::ALL.iter().position(|own| *own == dtype).expect("ALL has all") as u32
}

/// An element of a tensor on the host.
pub fn value(bytes: &[u8], at: usize, dtype: u32) -> f32 {
    let four = || bytes[4 * at..4 * at + 4].try_into().expect("four bytes");
    match DType::ALL[dtype as usize] {
        DType::F32 => f32::from_le_bytes(four()),
        DType::F16 => from_half(u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]])),
        DType::I32 => i32::from_le_bytes(four()) as f32,
        DType::U32 => u32::from_le_bytes(four()) as f32,
        DType::U8 => f32::from(bytes[at]),
        DType::I8 => f32::from(bytes[at].cast_signed()),
    }
}

/// Stores a level from 0 to 255 as an element of a tensor on the host; signed bytes store it less 128.
pub fn put(bytes: &mut [u8], at: usize, dtype: u32, level: u8) {
    let mut words = |word: [u8; 4]| bytes[4 * at..4 * at + 4].copy_from_slice(&word);
    match DType::ALL[dtype as usize] {
        DType::F32 => words(f32::from(level).to_le_bytes()),
        DType::I32 | DType::U32 => words(u32::from(level).to_le_bytes()),
        DType::F16 => bytes[2 * at..2 * at + 2].copy_from_slice(&half(level).to_le_bytes()),
        DType::U8 => bytes[at] = level,
        DType::I8 => bytes[at] = level ^ 128,
    }
}

/// A level as a 16-bit float, which represents every level exactly.
fn half(level: u8) -> u16 {
    let Some(exponent) = u16::from(level).checked_ilog2() else { return 0 };
    (exponent as u16 + 15) << 10 | (u16::from(level) << (10 - exponent)) & 0x3ff
}

fn from_half(bits: u16) -> f32 {
    if bits == 0 { 0.0 } else { f32::from(1024 + (bits & 0x3ff)) * 2_f32.powi(i32::from(bits >> 10) - 25) }
}

fn level_of(value: f32) -> u8 {
    (value.abs() as u32 & 255) as u8
}

fn pixels(bytes: &[u8]) -> &[[u8; 4]] {
    bytes.as_chunks::<4>().0
}

/// The mean of each channel over square blocks, as a tensor. Words: blocks, width, height, side, type.
pub static MEANS: Kernel = Kernel {
    name: "means",
    has_side: false,
    wgsl: "
fn each(at: u32) {
    let across = (word(1u) + word(3u) - 1u) / word(3u);
    let first = vec2<u32>(at % across, at / across) * word(3u);
    let end = min(first + vec2<u32>(word(3u)), vec2<u32>(word(1u), word(2u)));
    var sum = vec4<u32>();
    for (var y = first.y; y < end.y; y++) {
        for (var x = first.x; x < end.x; x++) { sum += channels(a[y * word(1u) + x]); }
    }
    let mean = sum / ((end.x - first.x) * (end.y - first.y));
    switch word(4u) {
        case 0u: { for (var c = 0u; c < 4u; c++) { made[at * 4u + c] = bitcast<u32>(f32(mean[c])); } }
        case 1u: {
            let halves = vec4<f32>(mean);
            made[at * 2u] = pack2x16float(halves.xy);
            made[at * 2u + 1u] = pack2x16float(halves.zw);
        }
        case 2u, 3u: { for (var c = 0u; c < 4u; c++) { made[at * 4u + c] = mean[c]; } }
        case 4u: { made[at] = packed(mean); }
        default: { made[at] = packed(mean ^ vec4<u32>(128u)); }
    }
}",
    host: |words, picture, _, made| {
        let [blocks, width, height, side, dtype, ..] = words.map(|word| word as usize);
        let across = width.div_ceil(side);
        for at in 0..blocks {
            let (x, y) = (at % across * side, at / across * side);
            let (to_x, to_y) = ((x + side).min(width), (y + side).min(height));
            for c in 0..4 {
                let row = |y: usize| pixels(picture)[y * width + x..y * width + to_x].iter().map(|p| u32::from(p[c]));
                let sum: u32 = (y..to_y).flat_map(row).sum();
                put(made, at * 4 + c, dtype as u32, (sum / ((to_x - x) * (to_y - y)) as u32) as u8);
            }
        }
    },
};

/// The elements of a tensor as f32, times a factor, plus a number. Words: elements, type, factor, number.
pub static WEIGH: Kernel = Kernel {
    name: "weigh",
    has_side: false,
    wgsl: "
fn each(at: u32) { made[at] = bitcast<u32>(value(at, word(1u)) * f32(word(2u)) + f32(word(3u))); }",
    host: |words, tensor, _, made| {
        for (at, four) in made.as_chunks_mut::<4>().0.iter_mut().enumerate().take(words[0] as usize) {
            *four = (value(tensor, at, words[1]) * words[2] as f32 + words[3] as f32).to_le_bytes();
        }
    },
};

/// A picture of the elements of a tensor, repeated if there are too few. Words: pixels, elements, type.
pub static PAINT: Kernel = Kernel {
    name: "paint",
    has_side: false,
    wgsl: "
fn each(at: u32) {
    let level = u32(abs(value(at % word(1u), word(2u)))) & 255u;
    made[at] = packed(vec4<u32>(level, 255u - level, at & 255u, 255u));
}",
    host: |words, tensor, _, made| {
        for (at, pixel) in made.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let level = level_of(value(tensor, at % words[1] as usize, words[2]));
            *pixel = [level, 255 - level, at as u8, 255];
        }
    },
};

/// Adds the elements of a tensor to green. Words: pixels, elements, type.
pub static TINT: Kernel = Kernel {
    name: "tint",
    has_side: true,
    wgsl: "
fn each(at: u32) {
    let level = u32(abs(value(at % word(1u), word(2u)))) & 255u;
    let c = channels(a[at]);
    made[at] = packed(vec4<u32>(c.x, (c.y + level) & 255u, c.zw));
}",
    host: |words, picture, tensor, made| {
        for (at, (pixel, old)) in made.as_chunks_mut::<4>().0.iter_mut().zip(pixels(picture)).enumerate() {
            let level = level_of(value(tensor, at % words[1] as usize, words[2]));
            *pixel = [old[0], old[1].wrapping_add(level), old[2], old[3]];
        }
    },
};

/// Room for the header and two rows of detections.
pub const DATA_BYTES: u32 = 4 * (2 + 2 * 6);

/// The bounds of the pixels whose red is at least a level, with their number, as one detection. Words: 1, width, height,
/// level, class.
pub static DETECT: Kernel = Kernel {
    name: "detect",
    has_side: false,
    wgsl: "
fn each(at: u32) {
    var bounds = vec4<u32>(word(1u), word(2u), 0u, 0u);
    var count = 0u;
    for (var i = 0u; i < word(1u) * word(2u); i++) {
        if (a[i] & 255u) < word(3u) { continue; }
        let place = vec2<u32>(i % word(1u), i / word(1u));
        bounds = vec4<u32>(min(bounds.xy, place), max(bounds.zw, place + vec2<u32>(1u)));
        count += 1u;
    }
    for (var i = 0u; i < 14u; i++) { made[i] = 0u; }
    if count == 0u { return; }
    made[0] = bitcast<u32>(1.0);
    made[1] = bitcast<u32>(1.0);
    for (var i = 0u; i < 4u; i++) { made[2u + i] = bitcast<u32>(f32(bounds[i])); }
    made[6] = bitcast<u32>(f32(count));
    made[7] = bitcast<u32>(f32(word(4u)));
}",
    host: |words, picture, _, made| {
        let [_, width, height, level, class, ..] = *words;
        let found: Vec<u32> =
            pixels(picture).iter().zip(0..).filter(|(p, _)| u32::from(p[0]) >= level).map(|f| f.1).collect();
        let xs = || found.iter().map(|at| at % width);
        let ys = || found.iter().map(|at| at / width);
        let (Some(right), Some(bottom)) = (xs().max(), ys().max()) else { return };
        let (left, top) = (xs().min().unwrap_or(width), ys().min().unwrap_or(height));
        let row = [1, 1, left, top, right + 1, bottom + 1, found.len() as u32, class];
        made.as_chunks_mut::<4>().0.iter_mut().zip(row).for_each(|(four, value)| *four = (value as f32).to_le_bytes());
    },
};

/// Inverts the blue of a rectangle. Words: pixels, width, left, top, right, bottom.
pub static BOX: Kernel = Kernel {
    name: "box",
    has_side: false,
    wgsl: "
fn each(at: u32) {
    let place = vec2<u32>(at % word(1u), at / word(1u));
    let c = channels(a[at]);
    let inside = all(place >= vec2<u32>(word(2u), word(3u))) && all(place < vec2<u32>(word(4u), word(5u)));
    made[at] = packed(vec4<u32>(c.xy, select(c.z, 255u - c.z, inside), c.w));
}",
    host: |words, picture, _, made| {
        let [_, width, left, top, right, bottom, ..] = *words;
        for (at, (pixel, old)) in (0..).zip(made.as_chunks_mut::<4>().0.iter_mut().zip(pixels(picture))) {
            let inside = (left..right).contains(&(at % width)) && (top..bottom).contains(&(at / width));
            *pixel = [old[0], old[1], if inside { 255 - old[2] } else { old[2] }, old[3]];
        }
    },
};
