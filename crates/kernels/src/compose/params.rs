//! The parameters of one frame, which the WGSL and its CPU twin read: parameter words and small data.
//!
//! Parts are written one by one into memory that is reused for every frame. A part must be given exactly as many words
//! as it declares. The offset of its small data follows these words.

use vramp_plan::Size;

use crate::pixel::table::fold_words;

use super::layout::HEADER_WORDS;
use super::{ParamLayout, ParamPart};

#[derive(Debug, Clone, Default)]
pub struct FrameParams {
    words: Vec<u32>,
    small: Vec<u32>,
}

impl FrameParams {
    pub fn new() -> FrameParams {
        FrameParams::default()
    }

    /// Starts a frame and writes its header. Reuses the memory of the previous frame.
    pub fn begin(&mut self, layout: &ParamLayout, size: Size, source: Size, number: u64) {
        self.words.clear();
        self.words.resize(layout.words, 0);
        self.small.clear();
        let [low, high] = [number as u32, (number >> 32) as u32];
        let header: [u32; HEADER_WORDS] = [size.width, size.height, source.width, source.height, low, high, 0, 0];
        self.words[..layout.header].copy_from_slice(&header[..layout.header]);
    }

    /// Writes the words and the small data of one part.
    ///
    /// # Panics
    /// If the number of words differs from the part's declaration, or if a part without small data is given some.
    pub fn set(&mut self, part: ParamPart, words: &[u32], small: &[u32]) {
        self.words[part.start..part.start + part.words].copy_from_slice(words);
        match part.small {
            Some(at) => {
                self.words[at] = u32::try_from(self.small.len()).expect("small data is far below 16 GB");
                self.small.extend_from_slice(small);
            }
            None => assert!(small.is_empty(), "a part without small data was given some"),
        }
    }

    /// Replaces the part's table by one table with the same effect as the part's table followed by `table`.
    pub fn fold(&mut self, part: ParamPart, table: &[u32]) {
        fold_words(&mut self.words[part.start..part.start + part.words], table);
    }

    /// The words, in the order of the layout.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    pub fn small(&self) -> &[u32] {
        &self.small
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;
    use crate::head::load_here::LOAD;
    use crate::pixel::{curve::CURVE, gray::GRAY};

    #[test]
    fn every_part_finds_its_words_and_its_small_data() {
        let recipe = Recipe::of(&LOAD).then(&CURVE).then(&GRAY).then(&CURVE);
        let layout = recipe.layout();
        let size = Size { width: 2, height: 1 };
        let mut params = FrameParams::new();
        for _ in 0..2 {
            params.begin(&layout, size, size, 5 << 32);
            params.set(layout.after[0], &[1, 2, 3], &[10, 11]);
            params.set(layout.after[1], &[], &[]);
            params.set(layout.after[2], &[4, 5, 6], &[12, 13]);
        }
        assert_eq!(params.words()[..8], [2, 1, 2, 1, 0, 5, 0, 0]);
        assert_eq!(params.words()[layout.after[2].start..][..4], [4, 5, 6, 2]);
        assert_eq!(params.small(), [10, 11, 12, 13]);
        assert_eq!(params.words().len() % 4, 0);
    }
}
