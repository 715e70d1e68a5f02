//! Runs heads, whole or in bands, for the tests of heads.

use vramp_kernels::head::{Head, noise};
use vramp_kernels::sample::KernelSample;
use vramp_kernels::{KernelFrame, Level, Picture, Pixel, PixelFn, Recipe, RowScratch};
use vramp_plan::Size;

/// A head with the inputs of one frame.
#[derive(Debug, Clone)]
pub struct Made {
    head: &'static Head,
    size: Size,
    source: Option<(Size, Vec<Pixel>)>,
    others: Vec<(Size, Vec<Pixel>)>,
    words: Vec<u32>,
    small: Vec<u32>,
    before: Option<(&'static PixelFn, Vec<u32>)>,
    level: Level,
}

impl Made {
    pub fn of(head: &'static Head, size: Size) -> Made {
        Made {
            head,
            size,
            source: None,
            others: Vec::new(),
            words: Vec::new(),
            small: Vec::new(),
            before: None,
            level: Level::detected(),
        }
    }

    /// A head with one of its samples, drawn for a source of this size.
    pub fn sampled(head: &'static Head, source: Size, sample: KernelSample) -> Made {
        let made = Made::of(head, sample.size).words(&sample.words).small(sample.small);
        if head.source { made.pictures(&[&[source][..], &sample.pictures].concat()) } else { made }
    }

    pub fn source(mut self, size: Size, pixels: Vec<Pixel>) -> Made {
        self.source = Some((size, pixels));
        self
    }

    /// The first is the source.
    pub fn pictures(mut self, sizes: &[Size]) -> Made {
        let mut all = sizes.iter().map(|size| (*size, source(*size)));
        self.source = all.next();
        self.others = all.collect();
        self
    }

    pub fn words(mut self, words: &[u32]) -> Made {
        self.words = words.to_vec();
        self
    }

    pub fn small(mut self, small: Vec<u32>) -> Made {
        self.small = small;
        self
    }

    pub fn before_head(mut self, function: &'static PixelFn, words: &[u32]) -> Made {
        self.before = Some((function, words.to_vec()));
        self
    }

    pub fn at(mut self, level: Level) -> Made {
        self.level = level;
        self
    }

    pub fn whole(&self) -> Vec<Pixel> {
        self.bands(&[self.size.height])
    }

    /// Bands of these heights, repeated until the image is full.
    pub fn bands(&self, heights: &[u32]) -> Vec<Pixel> {
        let mut recipe = Recipe::of_several(self.head, self.others.len());
        if let Some((function, _)) = &self.before {
            recipe = recipe.before_head(function);
        }
        let layout = recipe.layout();
        // Small data does not begin at 0, so that a head that ignores its offset is detected.
        let small = [&[7; 3][..], &self.small].concat();
        let mut words = vec![0; layout.words];
        assert_eq!(self.words.len(), self.head.words, "{} packs as many words as it declares", self.head.name);
        assert!(self.head.small || self.small.is_empty(), "{} declares its small data", self.head.name);
        words[layout.head.start..][..self.words.len()].copy_from_slice(&self.words);
        if let Some(at) = layout.head.small {
            words[at] = 3;
        }
        if let Some((_, own)) = &self.before {
            words[layout.before[0].start..][..own.len()].copy_from_slice(own);
        }
        let source = self.source.as_ref().map(|(size, pixels)| Picture::new(*size, pixels).expect("it fits"));
        let others = self.others.iter().map(|(size, pixels)| Picture::new(*size, pixels).expect("it fits"));
        let others: Vec<_> = others.collect();
        let frame = KernelFrame { size: self.size, source, extra_inputs: &others, small: &small, words: &words };
        let program = recipe.program().at(self.level);
        let mut scratch = RowScratch::default();
        if let Some(source) = source {
            program.survey(&frame, 0..source.size.height, &mut scratch);
            program.conclude(&frame, std::slice::from_mut(&mut scratch), 1);
        }
        // The head must write every pixel: two backgrounds give the same image.
        let [one, other] = [0x11, 0xee].map(|level| {
            let mut pixels = vec![[level; 4]; self.size.pixels() as usize];
            let mut rest = &mut pixels[..];
            let mut first = 0;
            for height in heights.iter().cycle() {
                let height = (*height).min(self.size.height - first);
                let (band, later) = rest.split_at_mut((height * self.size.width) as usize);
                program.band(&frame, first, band, &mut scratch);
                (rest, first) = (later, first + height);
                if first == self.size.height {
                    break;
                }
            }
            pixels
        });
        assert_eq!(one, other, "{} writes every pixel", self.head.name);
        one
    }
}

/// The source of a size, as `reference/heads.py` computes it.
pub fn source(size: Size) -> Vec<Pixel> {
    let words = noise::pack(0, size.width * 1000 + size.height);
    let mut pixels = Made::of(&noise::NOISE, size).words(&words).whole();
    let (w, h) = (size.width, size.height);
    for (i, pixel) in (0..).zip(&mut pixels) {
        let (x, y) = (i % w, i / w);
        pixel[3] = pixel[0] ^ 0x5a;
        if (h / 3..h / 2).contains(&y) && (w / 4..w / 2).contains(&x) {
            *pixel = [255, 0, 255, 255];
        }
        if y >= h / 2 && x >= w / 2 {
            *pixel = pixel.map(|v| v / 8);
        }
    }
    pixels
}
