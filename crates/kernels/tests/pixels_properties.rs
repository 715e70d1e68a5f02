//! Properties of every pixel function with any settings: spans, bands and folding.

use proptest::prelude::*;
use vramp_kernels::head::{self, load_here::LOAD, luma::LUMA};
use vramp_kernels::pixel::{self, table::TABLE};
use vramp_kernels::sample::{Chance, KernelSample};
use vramp_kernels::{FnArgs, FrameParams, KernelFrame, Level, Picture, Pixel, PixelFn, Recipe, RowArgs, RowScratch};
use vramp_plan::Size;

/// A function with its words and small data.
#[derive(Debug, Clone)]
struct Step {
    function: &'static PixelFn,
    words: Vec<u32>,
    small: Vec<u32>,
}

/// One of the function's samples for a frame of this size, chosen by a seed.
fn step(function: &'static PixelFn, size: Size, seed: u64) -> Step {
    let mut chance = Chance::new(seed);
    let mut drawn = function.drawn(&mut chance, size);
    let KernelSample { words, small, .. } = drawn.swap_remove(chance.below(drawn.len() as u32) as usize);
    Step { function, words, small }
}

fn noise(count: u32, seed: u32) -> Vec<Pixel> {
    let hashed = |i: u32| {
        let v = (i ^ seed).wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        ((v >> ((v >> 28) + 4)) ^ v).wrapping_mul(277_803_737)
    };
    (0..count)
        .map(|i| hashed(i).to_le_bytes())
        .map(|p| if p[1] % 3 == 0 { [p[0], p[1], p[2], 255] } else { p })
        .collect()
}

fn sizes() -> impl Strategy<Value = Size> {
    let one = |width, height| Just(Size { width, height });
    prop_oneof![
        one(1, 1),
        one(1, 7),
        one(300, 2),
        (1..40_u32, 1..30_u32).prop_map(|(width, height)| Size { width, height })
    ]
}

fn functions() -> impl Strategy<Value = &'static PixelFn> {
    (0..pixel::ALL.len()).prop_map(|i| pixel::ALL[i])
}

fn frame_of(recipe: &Recipe, steps: &[Step], size: Size) -> FrameParams {
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, size, size, 0);
    for (part, step) in layout.after.iter().zip(steps) {
        params.set(*part, &step.words, &step.small);
    }
    params
}

/// Runs a frame through a recipe, in bands that end at these rows.
fn in_bands(
    recipe: &Recipe,
    params: &FrameParams,
    size: Size,
    a: &[Pixel],
    extra_inputs: &[Picture<'_>],
    ends: &[u32],
) -> Vec<Pixel> {
    let source = Picture::new(size, a);
    let frame = KernelFrame { size, source, extra_inputs, small: params.small(), words: params.words() };
    let program = recipe.program();
    let mut scratch = RowScratch::default();
    let mut out = vec![[7; 4]; a.len()];
    let mut first = 0;
    for end in ends.iter().copied().chain([size.height]) {
        let end = end.clamp(first, size.height);
        let place = |row: u32| row as usize * size.width as usize;
        program.band(&frame, first, &mut out[place(first)..place(end)], &mut scratch);
        first = end;
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outside_its_spans_a_function_changes_nothing(
        size in sizes(), function in functions(), seed in any::<u64>(), cut in 0..40_usize,
    ) {
        let step = step(function, size, seed);
        let count = size.pixels() as u32;
        let (a, b) = (noise(count, seed as u32), noise(count, !(seed >> 32) as u32));
        let side = Picture::new(size, &b);
        let frame = FnArgs { words: &step.words, small: &step.small, size, level: Level::detected() };
        for y in 0..size.height {
            let source = Picture::new(size, &a).unwrap().row(y);
            let (mut whole, mut spans, mut pieces) = (source.to_vec(), source.to_vec(), source.to_vec());
            (function.row)(&RowArgs { frame, y, x: 0, extra_input: side }, &mut whole);
            for part in (function.spans)(&frame, y).iter() {
                let x = part.start as u32;
                (function.row)(&RowArgs { frame, y, x, extra_input: side }, &mut spans[part]);
            }
            // The result does not depend on the pieces in which a row is visited.
            let cut = cut.min(pieces.len());
            let (left, right) = pieces.split_at_mut(cut);
            (function.row)(&RowArgs { frame, y, x: 0, extra_input: side }, left);
            (function.row)(&RowArgs { frame, y, x: cut as u32, extra_input: side }, right);
            prop_assert_eq!(&spans, &whole, "row {}", y);
            prop_assert_eq!(&pieces, &whole, "row {} cut at {}", y, cut);
        }
    }

    #[test]
    fn every_level_gives_the_same_bytes(
        width in prop_oneof![Just(1_u32), 1..20_u32, 1..300_u32], function in functions(), seed in any::<u64>(),
        cut in 0..80_usize,
    ) {
        let size = Size { width, height: 2 };
        let step = step(function, size, seed);
        let (a, b) = (noise(2 * width, seed as u32), noise(2 * width, !(seed >> 32) as u32));
        let side = Picture::new(size, &b);
        // Vectors may begin at any column.
        let x = cut % width as usize;
        let at = |level: Level| {
            let frame = FnArgs { words: &step.words, small: &step.small, size, level };
            let mut made = a.clone();
            for y in 0..2 {
                let row = &mut made[y as usize * width as usize..][..width as usize];
                (function.row)(&RowArgs { frame, y, x: x as u32, extra_input: side }, &mut row[x..]);
            }
            made
        };
        let plain = at(Level::BASELINE);
        for level in Level::available() {
            prop_assert_eq!(&at(level), &plain, "{} at {}", function.name, level);
        }
    }

    #[test]
    fn editing_in_place_gives_what_a_band_gives(
        size in sizes(),
        chosen in prop::collection::vec((functions(), any::<u64>()), 0..5),
        cut in 0..30_u32,
    ) {
        let steps: Vec<Step> = chosen.iter().map(|(function, seed)| step(function, size, *seed)).collect();
        let recipe = steps.iter().fold(Recipe::of(&LOAD), |recipe, step| recipe.then(step.function));
        let params = frame_of(&recipe, &steps, size);
        let count = size.pixels() as u32;
        let (a, b) = (noise(count, 1), noise(count, 2));
        let sides = vec![Picture::new(size, &b).unwrap(); steps.len()];
        let wanted = in_bands(&recipe, &params, size, &a, &sides, &[]);
        let frame = KernelFrame { size, source: None, extra_inputs: &sides, small: params.small(), words: params.words() };
        let mut edited = a;
        let program = recipe.program();
        prop_assert!(program.edits_in_place());
        let cut = cut.min(size.height);
        let (upper, lower) = edited.split_at_mut((cut * size.width) as usize);
        program.edit(&frame, 0, upper, &RowScratch::default());
        program.edit(&frame, cut, lower, &RowScratch::default());
        prop_assert_eq!(edited, wanted);
    }

    #[test]
    fn bands_give_what_one_band_gives(
        size in sizes(),
        chosen in prop::collection::vec((functions(), any::<u64>()), 1..5),
        mut ends in prop::collection::vec(0..30_u32, 0..5),
    ) {
        ends.sort_unstable();
        let steps: Vec<Step> = chosen.iter().map(|(function, seed)| step(function, size, *seed)).collect();
        let recipe = steps.iter().fold(Recipe::of(&LOAD), |recipe, step| recipe.then(step.function));
        let params = frame_of(&recipe, &steps, size);
        let count = size.pixels() as u32;
        let (a, b) = (noise(count, 1), noise(count, 2));
        let sides = vec![Picture::new(size, &b).unwrap(); steps.len()];
        prop_assert_eq!(
            in_bands(&recipe, &params, size, &a, &sides, &ends),
            in_bands(&recipe, &params, size, &a, &sides, &[])
        );
    }

    #[test]
    fn folded_tables_give_what_one_after_the_other_gives(
        size in sizes(),
        chosen in prop::collection::vec((prop_oneof![3 => Just(&TABLE), 1 => functions()], any::<u64>()), 1..7),
    ) {
        let steps: Vec<Step> = chosen.iter().map(|(function, seed)| step(function, size, *seed)).collect();
        let recipe = steps.iter().fold(Recipe::of(&LOAD), |recipe, step| recipe.then(step.function));
        let params = frame_of(&recipe, &steps, size);
        let folded = recipe.folded();
        let layout = folded.recipe.layout();
        let mut short = FrameParams::new();
        short.begin(&layout, size, size, 0);
        for (place, step) in folded.after.iter().zip(&steps) {
            place.set(&layout.after, &step.words, &step.small, &mut short);
        }
        let names: Vec<_> = folded.recipe.after.iter().map(vramp_kernels::Function::name).collect();
        prop_assert!(names.windows(2).all(|two| two != ["table", "table"]), "{:?}", names);
        let count = size.pixels() as u32;
        let (a, b) = (noise(count, 1), noise(count, 2));
        let sides = vec![Picture::new(size, &b).unwrap(); steps.len()];
        prop_assert_eq!(
            in_bands(&folded.recipe, &short, size, &a, &sides, &[]),
            in_bands(&recipe, &params, size, &a, &sides, &[])
        );
    }
}

#[test]
fn only_what_reads_its_source_in_place_edits_in_place() {
    assert!(Recipe::of(&LOAD).then(&TABLE).program().edits_in_place());
    assert!(!Recipe::of(&LOAD).before_head(&TABLE).program().edits_in_place());
    assert!(Recipe::of(&LUMA).then(&TABLE).program().edits_in_place());
    assert!(!Recipe::of(&LUMA).before_head(&TABLE).program().edits_in_place());
    let others = head::ALL.iter().filter(|head| ![LOAD.name, LUMA.name].contains(&head.name));
    assert!(others.into_iter().all(|head| !Recipe::of(head).program().edits_in_place()));
}
