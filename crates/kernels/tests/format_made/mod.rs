//! Runs recipes that read or write other formats than rgba8, whole or in bands, for the format tests.

#![allow(dead_code, reason = "tests/formats.rs of the facade shares it and uses a part")]

use vramp_kernels::head::Head;
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::stored::{PlaneRows, Way, of};
use vramp_kernels::{FrameParams, KernelFrame, Level, Picture, PixelFn, Recipe, RowScratch};
use vramp_plan::{Format, Plane, Size};

/// Every format but rgba8.
pub const OTHERS: [Format; 6] = [Format::Rgb8, Format::I444, Format::I422, Format::I420, Format::Nv12, Format::Gray8];

/// Bytes that follow from their positions, as `reference/format.py` computes them too.
pub fn noise(count: usize, seed: u64) -> Vec<u8> {
    (0..count as u64).map(|at| ((at + 77 * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

fn rows(format: Format, size: Size) -> impl Iterator<Item = std::ops::Range<usize>> {
    format.planes(size).flat_map(|Plane { start, row_bytes, stride, rows }| {
        (0..rows).map(move |row| {
            let start = (start + row * stride) as usize;
            start..start + row_bytes as usize
        })
    })
}

/// A frame's bytes without padding, plane by plane.
pub fn bare(format: Format, size: Size, frame: &[u8]) -> Vec<u8> {
    rows(format, size).flat_map(|row| frame[row].iter().copied()).collect()
}

/// The frame of such bytes, with nonzero padding.
pub fn framed(format: Format, size: Size, bare: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xA5; format.frame_bytes(size) as usize];
    let mut from = bare;
    for row in rows(format, size) {
        let (own, later) = from.split_at(row.len());
        frame[row].copy_from_slice(own);
        from = later;
    }
    frame
}

/// A frame of noise.
pub fn made_up(format: Format, size: Size, seed: u64) -> Vec<u8> {
    let count = rows(format, size).map(|row| row.len()).sum();
    framed(format, size, &noise(count, seed))
}

/// A conversion of one frame, with its inputs.
#[derive(Debug, Clone)]
pub struct Converted {
    pub from: Format,
    pub into: Format,
    pub size: Size,
    pub ways: [Way; 2],
    pub frame: Vec<u8>,
    pub head: (&'static Head, Vec<u32>),
    pub before: Vec<(&'static PixelFn, Vec<u32>)>,
    pub after: Vec<(&'static PixelFn, Vec<u32>)>,
    pub level: Level,
}

impl Converted {
    pub fn new(from: Format, into: Format, size: Size, way: Way, frame: Vec<u8>) -> Converted {
        Converted {
            from,
            into,
            size,
            ways: [way; 2],
            frame,
            head: (&LOAD, vec![]),
            before: vec![],
            after: vec![],
            level: Level::detected(),
        }
    }

    pub fn recipe(&self) -> Recipe {
        let mut recipe = Recipe::of(self.head.0).reading(self.from).writing(self.into);
        recipe.before.extend(self.before.iter().map(|(function, _)| (*function).into()));
        recipe.after.extend(self.after.iter().map(|(function, _)| (*function).into()));
        recipe
    }

    pub fn params(&self) -> FrameParams {
        let layout = self.recipe().layout();
        let mut params = FrameParams::new();
        params.begin(&layout, self.size, self.size, 0);
        params.set(layout.head, &self.head.1, &[]);
        let functions = layout.before.iter().zip(&self.before).chain(layout.after.iter().zip(&self.after));
        functions.for_each(|(part, (_, words))| params.set(*part, words, &[]));
        if let Some((part, stored)) = layout.from.zip(of(self.from)) {
            params.set(part, &stored.load_words(self.ways[0], self.size), &[]);
        }
        if let Some((part, stored)) = layout.into.zip(of(self.into)) {
            params.set(part, &stored.store_words(self.ways[1], self.size), &[]);
        }
        params
    }

    pub fn whole(&self) -> Vec<u8> {
        self.bands(&[self.size.height])
    }

    /// Bands of these heights, repeated until the frame is full.
    pub fn bands(&self, heights: &[u32]) -> Vec<u8> {
        let (params, program) = (self.params(), self.recipe().program().at(self.level));
        let source = Picture::stored(self.from, self.size, &self.frame).expect("it fits");
        let frame = KernelFrame {
            size: self.size,
            source: Some(source),
            extra_inputs: &[],
            small: params.small(),
            words: params.words(),
        };
        let mut scratch = RowScratch::default();
        let mut made = vec![0x5A; self.into.frame_bytes(self.size) as usize];
        let (mut first, mut heights) = (0, heights.iter().cycle());
        if self.into == Format::Rgba8 {
            let mut rest = made.as_chunks_mut::<4>().0;
            while first < self.size.height {
                let height = (*heights.next().expect("they cycle")).min(self.size.height - first);
                let (band, later) = rest.split_at_mut((height * self.size.width) as usize);
                program.band(&frame, first, band, &mut scratch);
                (rest, first) = (later, first + height);
            }
            return made;
        }
        let mut rest = PlaneRows::of(self.into, self.size, &mut made).expect("it fits");
        while first < self.size.height {
            let height = heights.next().expect("they cycle").next_multiple_of(2).min(self.size.height - first);
            let (mut band, later) = rest.split(height as usize);
            program.pack(&frame, first, &mut band, &mut scratch);
            (rest, first) = (later, first + height);
        }
        made
    }
}
