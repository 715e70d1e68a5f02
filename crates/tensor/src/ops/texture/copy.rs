//! Copies between a tensor's buffer and a texture, on the device.
//!
//! This module creates the texture, and records plain copies, or one of two kernels: one pads rows, the other picks
//! channels. Copies are recorded in order with all other work, and not submitted here. The caller lends the memory for
//! rows, of the size that [`TextureCopies::rows_to_fill`] or [`TextureCopies::rows_to_take`] returns.
//!
//! Invariants: bits are copied unchanged, so that NaN and integers above 2^24 survive. Texels after the last value are
//! 0. Nothing is downloaded.

use vramp_gpu::{
    AdapterKind, Buffer, CompileError, Device, DeviceKernel, Recording, TexelFormat, Texture, TextureError,
};

use super::packing::{CHANNELS, TexShape};
use super::texels::{Channels, texels_of, values_of};
use super::{OP, kernels};
use crate::ops::dtype::DType;
use crate::ops::error::{DeviceResult, TensorError};

/// Minimum row size in bytes for which unpadded rows are copied one by one on a software device. On llvmpipe with 2
/// cores, filling 1000 rows of 128 bytes took 0.90 ms by copies and 0.47 ms by the kernel. Rows of 528 bytes took 0.95
/// and 1.16 ms, rows of 1600 bytes 1.2 and 5.5 ms, and rows of 16000 bytes 6.8 and 72 ms.
const ROW_ALONE_BYTES: u64 = 512;

/// `count` values in a buffer on the device. The first of these values is value number `offset` of the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceValues<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) offset: usize,
    pub(crate) count: usize,
    pub(crate) dtype: DType,
}

/// Creates a texture for a tensor. The default shape follows from the number of values, and the default texel format
/// from the type of the values.
pub(crate) fn make(
    device: &Device,
    dtype: DType,
    shape: TexShape,
    format: Option<TexelFormat>,
) -> Result<Texture, TensorError> {
    let format = format.unwrap_or_else(|| texels_of(dtype));
    check_type(dtype, format)?;
    let TexShape { height, width } = shape.check(device.limits().texture_side)?;
    device.make_texture(format, width as u32, height as u32).map_err(|error| match error {
        TextureError::OutOfMemory { bytes } => {
            TensorError::OutOfMemory { op: OP, required_bytes: bytes, available_bytes: 0, place: "device" }
        }
        TextureError::Lost(lost) => TensorError::Lost { op: OP, reason: lost.reason },
        other => TensorError::Device { op: OP, problem: other.to_string() },
    })
}

/// The two kernels, prepared on one device.
#[derive(Debug, Clone)]
pub(crate) struct TextureCopies {
    device: Device,
    pack: DeviceKernel,
    unpack: DeviceKernel,
}

impl TextureCopies {
    /// Prepares both kernels; blocks.
    pub(crate) fn prepare(device: &Device) -> Result<TextureCopies, CompileError> {
        let (pack, unpack) = (device.prepare(&kernels::pack())?, device.prepare(&kernels::unpack())?);
        Ok(TextureCopies { device: device.clone(), pack, unpack })
    }

    /// The size in bytes of the memory in which `fill` pads rows; 0 if `fill` copies all rows directly.
    pub(crate) fn rows_to_fill(&self, from: DeviceValues<'_>, to: &Texture) -> u64 {
        u64::from(to.pitch_bytes()) * u64::from(to.height().saturating_sub(self.direct(from, to)))
    }

    /// Fills a texture with values, without gaps, and with zeros after the last value.
    pub(crate) fn fill(
        &self,
        recording: &mut Recording,
        from: DeviceValues<'_>,
        to: &Texture,
        rows: Option<&Buffer>,
    ) -> Result<(), TensorError> {
        check_type(from.dtype, to.format())?;
        let (width, height) = (to.width() as usize, to.height() as usize);
        TexShape::custom(height, width, from.count)?;
        let value_bytes = from.dtype.bytes() as u64;
        let (start, bytes) = (from.offset as u64 * value_bytes, from.count as u64 * value_bytes);
        let (row_bytes, pitch_bytes) = (to.row_bytes(), to.pitch_bytes());
        let direct = self.direct(from, to);
        if direct > 0 {
            recording.copy_to_texture(from.buffer, start, row_bytes as u32, to, 0..direct).of(OP)?;
        }
        let rest = to.height() - direct;
        if rest == 0 {
            return Ok(());
        }
        // The remaining rows cannot be copied directly: they are not full, need padding, do not begin at a multiple of
        // the texel size, or are past the last value.
        let rows = given(rows, self.rows_to_fill(from, to))?;
        let (start, bytes) = (start + u64::from(direct) * row_bytes, bytes - u64::from(direct) * row_bytes);
        let groups = pitch_bytes / 16 * rest;
        let tail_bits = bytes % 4 * 8;
        let params: [u32; 8] = [
            groups,
            pitch_bytes / 4,
            (row_bytes / 4) as u32,
            (start / 4) as u32,
            (start % 4 * 8) as u32,
            (bytes / 4) as u32,
            (1_u32 << tail_bits) - 1,
            0,
        ];
        let grid = self.pack.cover(u64::from(groups), self.device.limits());
        recording.dispatch(&self.pack, &[from.buffer, rows], bytemuck::bytes_of(&params), grid).of(OP)?;
        recording.copy_to_texture(rows, 0, pitch_bytes, to, direct..to.height()).of(OP)
    }

    /// The size in bytes of the memory for padded rows from which `take` picks values; 0 if `take` copies directly.
    pub(crate) fn rows_to_take(&self, from: &Texture, channels: &Channels, to: DeviceValues<'_>) -> u64 {
        let needed = u64::from(from.pitch_bytes()) * u64::from(from.height());
        if self.taken_as_they_are(from, channels, to).is_some() { 0 } else { needed }
    }

    /// Takes channels of a texture as values, texel by texel. Channels that the texture does not have, and values after
    /// the last texel, are 0. The values begin at the start of their buffer.
    pub(crate) fn take(
        &self,
        recording: &mut Recording,
        from: &Texture,
        channels: &Channels,
        to: DeviceValues<'_>,
        rows: Option<&Buffer>,
    ) -> Result<(), TensorError> {
        let (format, dtype) = (from.format(), to.dtype);
        check_values(dtype, format)?;
        if to.offset != 0 || to.count == 0 {
            let problem = format!("{} values at offset {}; expected at least one, at offset 0", to.count, to.offset);
            return Err(TensorError::Setting { op: OP, problem });
        }
        let (row_bytes, pitch_bytes) = (from.row_bytes(), from.pitch_bytes());
        if let Some(all) = self.taken_as_they_are(from, channels, to) {
            return recording.copy_from_texture(from, 0..all, to.buffer, 0, row_bytes as u32).of(OP);
        }
        let padded = given(rows, self.rows_to_take(from, channels, to))?;
        recording.copy_from_texture(from, 0..from.height(), padded, 0, pitch_bytes).of(OP)?;
        // One invocation for each texel, or for each word if a word holds several values.
        let each = if dtype.per_word() == 1 { channels.count() } else { dtype.per_word() };
        let invocations = to.count.div_ceil(each) as u32;
        let place = |letter: char| format.channels().find(letter).unwrap_or(CHANNELS) as u32;
        let order = channels.0.chars().rev().fold(0, |order, letter| (order << 4) | place(letter));
        let params: [u32; 12] = [
            invocations,
            to.count as u32,
            from.width() * from.height(),
            from.width(),
            pitch_bytes / 4,
            dtype.per_word() as u32,
            format.channels().len() as u32,
            channels.count() as u32,
            order,
            0,
            0,
            0,
        ];
        let grid = self.unpack.cover(u64::from(invocations), self.device.limits());
        recording.dispatch(&self.unpack, &[padded, to.buffer], bytemuck::bytes_of(&params), grid).of(OP)
    }

    /// The number of rows, from the first on, that are copied directly.
    fn direct(&self, from: DeviceValues<'_>, to: &Texture) -> u32 {
        let value_bytes = from.dtype.bytes() as u64;
        let full = (from.count as u64 * value_bytes / to.row_bytes()) as u32;
        let aligned = (from.offset as u64 * value_bytes).is_multiple_of(u64::from(to.format().bytes()));
        if aligned && self.rows_alone(to.row_bytes(), full) { full } else { 0 }
    }

    /// If the bytes of a texture are the values unchanged, the number of rows to copy; `None` if a kernel has to pick
    /// channels or remove padding.
    fn taken_as_they_are(&self, from: &Texture, channels: &Channels, to: DeviceValues<'_>) -> Option<u32> {
        let (bytes, row_bytes) = (to.count as u64 * to.dtype.bytes() as u64, from.row_bytes());
        let rows = (bytes / row_bytes).min(u64::from(from.height())) as u32;
        let whole = bytes == u64::from(rows) * row_bytes && channels.0 == from.format().channels();
        let as_they_are = whole && rows > 0 && row_bytes.is_multiple_of(4) && self.rows_alone(row_bytes, rows);
        as_they_are.then_some(rows)
    }

    /// True if unpadded rows are copied directly: all at once if they already have the alignment that devices require,
    /// and one by one only on a software device with long rows. Other devices were not measured; they use one kernel
    /// and one copy instead of a command for every row.
    fn rows_alone(&self, row_bytes: u64, rows: u32) -> bool {
        let is_cpu = self.device.adapter().kind == AdapterKind::Software;
        rows <= 1 || row_bytes.is_multiple_of(256) || is_cpu && row_bytes >= ROW_ALONE_BYTES
    }
}

/// The memory that was lent for rows. Fails if the memory has fewer than `bytes` bytes.
fn given(rows: Option<&Buffer>, bytes: u64) -> Result<&Buffer, TensorError> {
    rows.filter(|rows| rows.bytes() >= bytes).ok_or_else(|| {
        let has = rows.map_or(0, Buffer::bytes);
        TensorError::Setting { op: OP, problem: format!("needs {bytes} bytes of memory for rows, got {has}") }
    })
}

/// Dense packing needs four channels with the bits of the values' own type.
fn check_type(dtype: DType, format: TexelFormat) -> Result<(), TensorError> {
    check_values(dtype, format)?;
    if format.channels().len() == CHANNELS {
        return Ok(());
    }
    let problem = format!("{format} has {} channel; values are packed into {CHANNELS}", format.channels().len());
    Err(TensorError::Setting { op: OP, problem })
}

fn check_values(dtype: DType, format: TexelFormat) -> Result<(), TensorError> {
    if values_of(format) == dtype {
        return Ok(());
    }
    let problem =
        format!("{format} holds {}, the tensor {dtype}; `cast` it, or use {}", values_of(format), texels_of(dtype));
    Err(TensorError::Setting { op: OP, problem })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vramp_gpu::Player;

    use super::*;

    struct Bench {
        device: Device,
        player: Player,
        copies: TextureCopies,
    }

    impl Bench {
        fn open() -> Bench {
            let device = Device::choose().open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"));
            let (player, copies) = (Player::on(&device).build().unwrap(), TextureCopies::prepare(&device).unwrap());
            Bench { device, player, copies }
        }

        fn lend(&self, bytes: usize) -> Buffer {
            self.device.lend(bytes as u64, &"tester".into()).unwrap()
        }

        fn fill(&self, recording: &mut Recording, from: DeviceValues<'_>, to: &Texture) {
            let rows = self.lend(self.copies.rows_to_fill(from, to).max(16) as usize);
            self.copies.fill(recording, from, to, Some(&rows)).unwrap();
        }

        fn take(&self, recording: &mut Recording, from: &Texture, channels: &Channels, to: DeviceValues<'_>) {
            let rows = self.lend(self.copies.rows_to_take(from, channels, to).max(16) as usize);
            self.copies.take(recording, from, channels, to, Some(&rows)).unwrap();
        }

        fn bring(&mut self, recording: &mut Recording) -> Vec<u8> {
            self.player.play(recording).unwrap();
            let arrived =
                self.player.readbacks().wait(Duration::from_secs(60)).unwrap().expect("the download was requested");
            arrived.bytes(0).to_vec()
        }

        /// All texels of a texture, in rows without padding.
        fn texels(&mut self, texture: &Texture) -> Vec<u8> {
            let pitch = texture.pitch_bytes() as usize;
            let buffer = self.lend(pitch * texture.height() as usize);
            let mut recording = Recording::new();
            recording.copy_from_texture(texture, 0..texture.height(), &buffer, 0, texture.pitch_bytes()).unwrap();
            recording.download(&buffer).unwrap();
            let rows = self.bring(&mut recording);
            rows.chunks(pitch).flat_map(|row| &row[..texture.row_bytes() as usize]).copied().collect()
        }

        /// A texture with these bytes as its texels.
        fn filled(&mut self, format: TexelFormat, width: u32, height: u32, bytes: &[u8]) -> Texture {
            let texture = self.device.make_texture(format, width, height).unwrap();
            let buffer = self.lend(bytes.len());
            let mut recording = Recording::new();
            recording.upload(&buffer, bytes.to_vec()).unwrap();
            let pitch = texture.row_bytes() as u32;
            recording.copy_to_texture(&buffer, 0, pitch, &texture, 0..height).unwrap();
            self.player.play(&mut recording).unwrap();
            texture
        }

        fn taken(&mut self, from: &Texture, channels: &str, count: usize) -> Vec<u8> {
            let dtype = values_of(from.format());
            let buffer = self.lend(count * dtype.bytes());
            let mut recording = Recording::new();
            let to = DeviceValues { buffer: &buffer, offset: 0, count, dtype };
            self.take(&mut recording, from, &Channels::read(channels).unwrap(), to);
            recording.download(&buffer).unwrap();
            self.bring(&mut recording)
        }
    }

    /// Bytes without a pattern. Every bit is set somewhere, so that some floats are NaN.
    fn noise(bytes: usize) -> Vec<u8> {
        let step = |at: usize| (at as u32).wrapping_mul(2_654_435_761).rotate_left(at as u32 % 31).to_le_bytes()[2];
        (1..=bytes).map(step).collect()
    }

    #[test]
    fn every_type_goes_to_a_texture_and_back_bit_by_bit_with_zeros_behind_the_end() {
        let mut bench = Bench::open();
        // Few and many values; offsets inside a word; rows with padding, without padding, and wide rows.
        let custom = |height, width| Some(TexShape { height, width });
        let cases = [
            (1, 0, None),
            (12, 0, None),
            (13, 3, None),
            (24, 1, custom(2, 4)),
            (60, 4, custom(3, 5)),
            (1001, 5, None),
            (512, 8, custom(2, 64)),
            (1100, 4, custom(4, 128)),
            (2111, 16, custom(5, 130)),
            (2080, 4, custom(4, 130)),
            (100, 2, custom(40, 1)),
        ];
        for dtype in DType::ALL {
            for (count, offset, shape) in cases {
                let shape = shape.unwrap_or_else(|| TexShape::of(count));
                let texture = make(&bench.device, dtype, shape, None).unwrap();
                let sent = noise((offset + count + 7) * dtype.bytes());
                let buffer = bench.lend(sent.len());
                let mut recording = Recording::new();
                recording.upload(&buffer, sent.clone()).unwrap();
                let from = DeviceValues { buffer: &buffer, offset, count, dtype };
                bench.fill(&mut recording, from, &texture);
                bench.player.play(&mut recording).unwrap();
                let values = &sent[offset * dtype.bytes()..][..count * dtype.bytes()];
                let mut wants = values.to_vec();
                wants.resize(shape.texels() * CHANNELS * dtype.bytes(), 0);
                let what = format!("{count} {dtype} from {offset} on in {shape}");
                assert!(bench.texels(&texture) == wants, "{what}");
                assert!(bench.taken(&texture, "rgba", count) == values, "{what}, and back");
            }
        }
    }

    #[test]
    fn whole_numbers_above_two_to_the_24_survive() {
        let mut bench = Bench::open();
        let numbers = [16_777_217_i32, i32::MAX, i32::MIN, -16_777_219];
        let bytes: &[u8] = bytemuck::cast_slice(&numbers);
        let texture = bench.filled(texels_of(DType::I32), 1, 1, bytes);
        assert_eq!(bench.taken(&texture, "rgba", 4), bytes);
    }

    #[test]
    fn channels_are_taken_in_any_order_and_missing_ones_are_zero() {
        let mut bench = Bench::open();
        let pixels: Vec<u8> = (1..=24).collect();
        let texture = bench.filled(TexelFormat::Rgba8Unorm, 3, 2, &pixels);
        assert_eq!(bench.taken(&texture, "rgb", 18), [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23]);
        assert_eq!(bench.taken(&texture, "bgr", 6), [3, 2, 1, 7, 6, 5]);
        assert_eq!(bench.taken(&texture, "A", 6), [4, 8, 12, 16, 20, 24]);
        assert_eq!(bench.taken(&texture, "br", 14)[8..], [19, 17, 23, 21, 0, 0], "zeros after the last texel");
        let screen = bench.filled(TexelFormat::Bgra8Unorm, 3, 2, &pixels);
        assert_eq!(bench.taken(&screen, "rgba", 4), [3, 2, 1, 4], "letters are colours, not places");
        let gray = bench.filled(TexelFormat::R8Unorm, 6, 1, &pixels[..6]);
        assert_eq!(bench.taken(&gray, "r", 6), [1, 2, 3, 4, 5, 6]);
        assert_eq!(bench.taken(&gray, "ra", 6), [1, 0, 2, 0, 3, 0]);
        let floats: Vec<u8> = [1.5_f32, -2.0, f32::MAX].iter().flat_map(|value| value.to_le_bytes()).collect();
        let deep = bench.filled(TexelFormat::R32Float, 3, 1, &floats);
        assert_eq!(bench.taken(&deep, "r", 3), floats);
    }

    #[test]
    fn nothing_comes_to_the_host_and_copies_share_the_submit_of_what_they_follow() {
        let mut bench = Bench::open();
        let before = bench.device.counters();
        let texture = make(&bench.device, DType::F32, TexShape::of(30), None).unwrap();
        let (buffer, back) = (bench.lend(120), bench.lend(120));
        let mut recording = Recording::new();
        let values = |buffer| DeviceValues { buffer, offset: 0, count: 30, dtype: DType::F32 };
        bench.fill(&mut recording, values(&buffer), &texture);
        let rgba = Channels::read("rgba").unwrap();
        bench.take(&mut recording, &texture, &rgba, values(&back));
        bench.player.play(&mut recording).unwrap();
        let counted = bench.device.counters().since(&before);
        assert_eq!((counted.downloads, counted.uploads, counted.submits), (0, 0, 1));
        drop(texture);
        assert_eq!(bench.device.textures_held().count, 0);
    }

    #[test]
    fn what_a_texture_cannot_hold_is_refused_with_numbers() {
        let bench = Bench::open();
        let most = bench.device.limits().texture_side as usize;
        let long = make(&bench.device, DType::F32, TexShape { height: most + 1, width: 1 }, None).unwrap_err();
        assert_eq!(long.kind(), crate::ops::error::ErrorKind::NotSupported, "{long}");
        let other = make(&bench.device, DType::F32, TexShape::of(4), Some(TexelFormat::Rgba8Uint)).unwrap_err();
        assert_eq!(other.to_string(), "texture: rgba8uint holds u8, the tensor f32; `cast` it, or use rgba32float");
        let one = make(&bench.device, DType::F32, TexShape::of(4), Some(TexelFormat::R32Float)).unwrap_err();
        assert_eq!(one.to_string(), "texture: r32float has 1 channel; values are packed into 4");
        assert!(make(&bench.device, DType::U8, TexShape::of(4), Some(TexelFormat::Rgba8Uint)).is_ok());
        let small = make(&bench.device, DType::F32, TexShape::of(4), None).unwrap();
        let buffer = bench.lend(20);
        let values = DeviceValues { buffer: &buffer, offset: 0, count: 5, dtype: DType::F32 };
        let full = bench.copies.fill(&mut Recording::new(), values, &small, None).unwrap_err().to_string();
        assert!(full.contains("must be >= the 5 values of the tensor; 1 x 1 x 4 is 4"), "{full}");
        for letters in ["", "rr", "rgbx", "rgbar"] {
            let wrong = Channels::read(letters).unwrap_err().to_string();
            assert!(wrong.contains("expected letters of `rgba`, each at most once"), "{wrong}");
        }
    }
}
