//! `luma` equals its formula for any division into surveyed parts and bands. `data/luma/README.md` describes the
//! reference images.

use std::path::PathBuf;

use crate::heads_made::{Made, source};
use vramp_kernels::head::luma::{self, LUMA};
use vramp_kernels::{KernelFrame, Level, Picture, Pixel, Recipe, RowScratch};
use vramp_plan::Size;

fn made(size: Size) -> Made {
    Made::of(&LUMA, size).source(size, source(size)).words(&luma::pack())
}

#[test]
fn luma_equals_its_formula_to_the_bit_at_every_level() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/luma");
    let text = std::fs::read_to_string(folder.join("cases.txt")).expect("the file is checked in");
    assert!(text.lines().count() > 5);
    for case in text.lines() {
        let (file, size) = case.split_once(' ').expect("a file and a size");
        let expected = std::fs::read(folder.join(file)).expect("the file is checked in");
        for level in Level::available() {
            let made = made(size.parse().expect("a size")).at(level).whole();
            assert_eq!(made.as_flattened(), expected, "{case}, {level}");
        }
    }
}

#[test]
fn however_a_source_is_gone_over_and_written_the_result_is_the_same() {
    for size in [Size { width: 1, height: 1 }, Size { width: 37, height: 22 }, Size { width: 200, height: 9 }] {
        let (pixels, wanted) = (source(size), made(size).whole());
        let recipe = Recipe::of(&LUMA);
        let (program, words) = (recipe.program(), vec![0; recipe.layout().words]);
        assert!(program.surveys() && program.edits_in_place());
        for parts in 1..=size.height.min(5) {
            let frame =
                KernelFrame { size, source: Picture::new(size, &pixels), extra_inputs: &[], small: &[], words: &words };
            // One more than parts: a band that surveyed nothing gets the result too.
            let mut scratch: Vec<RowScratch> = (0..=parts).map(|_| RowScratch::default()).collect();
            for (at, scratch) in (0..parts).zip(&mut scratch) {
                program.survey(&frame, at * size.height / parts..(at + 1) * size.height / parts, scratch);
            }
            program.conclude(&frame, &mut scratch, parts as usize);
            for scratch in &mut scratch {
                let mut edited = pixels.clone();
                program.edit(&KernelFrame { source: None, ..frame }, 0, &mut edited, scratch);
                let mut made: Vec<Pixel> = vec![[7; 4]; pixels.len()];
                program.band(&frame, 0, &mut made, scratch);
                assert!(made == wanted && edited == wanted, "{size} in {parts} parts");
            }
        }
    }
}
