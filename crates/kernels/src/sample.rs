//! Samples: random test parameters of a kernel, from a function in the kernel's own file.
//!
//! The tests of twins, spans, bands, levels and allocations run every kernel in [`pixel::ALL`](crate::pixel::ALL) and
//! [`head::ALL`](crate::head::ALL) with its samples and compare the results.
//!
//! Invariants: the same seed draws the same samples on every machine. A sample is valid for the size for which it was
//! drawn.

use vramp_plan::Size;

use crate::picture::Pixel;

/// Draws samples of a kernel: several settings for a frame or a source of this size.
pub type Samples = fn(&mut Chance, Size) -> Vec<KernelSample>;

/// The parameters of a kernel for one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSample {
    pub words: Vec<u32>,
    pub small: Vec<u32>,
    /// The size of the output. For a pixel function, this is the size for which the sample was drawn.
    pub size: Size,
    /// The sizes of the images that a head reads besides its source.
    pub pictures: Vec<Size>,
}

impl KernelSample {
    /// Parameter words for an output of this size, without small data.
    pub fn new(size: Size, words: &[u32]) -> KernelSample {
        KernelSample { words: words.to_vec(), small: Vec::new(), size, pictures: Vec::new() }
    }

    #[must_use]
    pub fn small(self, small: impl Into<Vec<u32>>) -> KernelSample {
        KernelSample { small: small.into(), ..self }
    }

    #[must_use]
    pub fn pictures(self, pictures: Vec<Size>) -> KernelSample {
        KernelSample { pictures, ..self }
    }
}

/// The samples of a kernel in `ALL`. Panics if the kernel has none.
pub(crate) fn drawn(name: &str, samples: Option<Samples>, chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let drawn = samples.map(|samples| samples(chance, size)).unwrap_or_default();
    assert!(
        !drawn.is_empty(),
        "the kernel {name} has no samples: no test compares its WGSL with its CPU twin (see PixelFn::samples)"
    );
    drawn
}

/// A small seeded generator that yields the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// 31 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// A number from 0 up to, but not including, `end`, which is at least 1.
    pub fn below(&mut self, end: u32) -> u32 {
        self.bits() % end
    }

    /// A number from 0 to 1 in thousandths, both ends included.
    pub fn part(&mut self) -> f64 {
        f64::from(self.below(1001)) / 1000.0
    }

    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.part()
    }

    pub fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }

    /// A position along an edge of length `side`, or up to 8 pixels beyond either end.
    pub fn near(&mut self, side: u32) -> i32 {
        self.below(side + 16).cast_signed() - 8
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    /// A colour, opaque in half of the cases.
    pub fn color(&mut self) -> Pixel {
        let opaque = self.flip();
        let [r, g, b, a] = [0; 4].map(|_| self.below(256) as u8);
        [r, g, b, if opaque { 255 } else { a }]
    }

    /// An image: completely opaque in half of the cases, otherwise with random alpha.
    pub fn picture(&mut self, size: Size) -> Vec<Pixel> {
        let opaque = self.flip();
        let pixels = (0..size.pixels()).map(|_| {
            let [r, g, b, a] = (self.bits() ^ (self.bits() << 8)).to_le_bytes();
            [r, g, b, if opaque { 255 } else { a }]
        });
        pixels.collect()
    }

    /// A size of at most 70x50, often odd.
    pub fn size(&mut self) -> Size {
        Size { width: 1 + self.below(70), height: 1 + self.below(50) }
    }
}
