//! A band allocates nothing once its scratch has grown.
//!
//! Every allocation of this process is counted by the thread that makes it.

#![allow(unsafe_code, reason = "an allocator that counts is an allocator, whose trait is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use vramp_kernels::head::resample::{self, axis::ResampleFilter};
use vramp_kernels::head::{
    self, Head, ball, bilinear, blur, boxblur, compositor, convolve, crop, disc, edges, load_here::LOAD, luma, median3,
    median5, nearest, rotate, warp,
};
use vramp_kernels::pixel::{
    self, channels, chromakey, color, cube, curve, glyphs, gray, markers, matrix, mix, overlay, table,
};
use vramp_kernels::sample::{Chance, KernelSample};
use vramp_kernels::{FrameParams, KernelFrame, Level, Picture, Pixel, PixelFn, Recipe, RowScratch};
use vramp_plan::{Rate, Size};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.with(Cell::get);
    f();
    COUNT.with(Cell::get) - before
}

const SIZE: Size = Size { width: 100, height: 40 };
const SMALL: Size = Size { width: 33, height: 17 };

/// Parameter words and small data.
type Given = (Vec<u32>, Vec<u32>);
type Step = (&'static PixelFn, Given);

fn looked_up() -> Step {
    (&table::TABLE, (table::pack(&color::gamma(2.2)).to_vec(), vec![]))
}

fn saturated() -> Step {
    (&matrix::MATRIX, (matrix::pack(&color::saturation(1.3)).expect("small factors").to_vec(), vec![]))
}

fn mixed() -> Step {
    (&mix::MIX, (mix::pack(mix::Mode::Over, 0.4).to_vec(), vec![]))
}

fn grayed() -> Step {
    (&gray::GRAY, (vec![], vec![]))
}

fn covered() -> Step {
    let pixels = [[1, 2, 3, 99]; 12];
    let size = Size { width: 4, height: 3 };
    (&overlay::OVERLAY, (overlay::pack(5, 5, size, 0.5).to_vec(), overlay::small(&pixels).collect()))
}

fn keyed() -> Step {
    (&chromakey::CHROMAKEY, (chromakey::pack([9, 200, 9], 0.2, 0.3).to_vec(), vec![]))
}

fn cubed() -> Step {
    let places = [std::array::from_fn(|v| v as f64 / 255.0); 3];
    let packed = cube::pack(2, &[[0.5, 1.0, -0.1]; 8], &places).expect("small and whole");
    (&cube::CUBE, (packed.words.to_vec(), packed.small))
}

fn separate() -> Step {
    (&channels::CHANNELS, (channels::pack(&[color::gamma(2.2), color::gamma(2.0), color::invert()]).to_vec(), vec![]))
}

fn marked() -> Step {
    (&markers::MARKERS, (markers::pack(9, 77).to_vec(), vec![]))
}

fn curved() -> Step {
    let rows: Vec<i32> = (0..100).map(|x| x % 40).collect();
    (&curve::CURVE, (curve::pack([9; 4], &rows).to_vec(), rows.iter().map(|v| v.cast_unsigned()).collect()))
}

fn written() -> Step {
    let glyph = |x| glyphs::Glyph { x, y: 10, width: 5, height: 6, at: 2 };
    let mut small = Vec::new();
    let words = glyphs::pack([255; 4], &[200; 40], &[[glyph(3), glyph(90)]], SIZE, &mut small).expect("they fit");
    (&glyphs::GLYPHS, (words.to_vec(), small))
}

/// Runs a recipe twice with one scratch, in two bands, and returns the number of allocations of the second run.
fn second_time(
    head: &'static Head,
    sample: &KernelSample,
    source: Size,
    before: &[Step],
    after: &[Step],
    level: Level,
) -> usize {
    let (size, pictures) = (sample.size, sample.pictures.len());
    let recipe = Recipe {
        head,
        before: before.iter().map(|(function, _)| function.into()).collect(),
        after: after.iter().map(|(function, _)| function.into()).collect(),
        ..Recipe::of_several(head, pictures)
    };
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, size, source, 0);
    params.set(layout.head, &sample.words, &sample.small);
    let parts = layout.before.iter().chain(&layout.after);
    for (part, (_, (words, small))) in parts.zip(before.iter().chain(after)) {
        params.set(*part, words, small);
    }
    let noise = |size: Size| -> Vec<Pixel> {
        (0..size.pixels() as u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
    };
    let reads = |steps: &[Step]| steps.iter().filter(|(function, _)| function.extra_input).count();
    let sizes = sample.pictures.iter().copied();
    let sizes = sizes.chain((0..reads(before)).map(|_| source)).chain((0..reads(after)).map(|_| size));
    let others: Vec<(Size, Vec<Pixel>)> = sizes.map(|size| (size, noise(size))).collect();
    let extra_inputs: Vec<_> =
        others.iter().map(|(size, pixels)| Picture::new(*size, pixels).expect("it fits")).collect();
    let pixels = noise(source);
    let source = Picture::new(source, &pixels);
    let frame = KernelFrame { size, source, extra_inputs: &extra_inputs, small: params.small(), words: params.words() };
    let program = recipe.program().at(level);
    let mut out = vec![[0; 4]; size.pixels() as usize];
    let mut scratch = RowScratch::default();
    let first = size.height * 17 / 40;
    let mut run = || {
        let (upper, lower) = out.split_at_mut((first * size.width) as usize);
        program.survey(&frame, 0..frame.source.map_or(0, |source| source.size.height), &mut scratch);
        program.conclude(&frame, std::slice::from_mut(&mut scratch), 1);
        program.band(&frame, 0, upper, &mut scratch);
        program.band(&frame, first, lower, &mut scratch);
    };
    run();
    allocations(run)
}

#[test]
fn a_second_band_of_every_head_allocates_nothing() {
    for (head, level) in
        head::ALL.iter().flat_map(|head| Level::available().into_iter().map(move |level| (head, level)))
    {
        for source in [SIZE, SMALL] {
            for sample in head.drawn(&mut Chance::new(1), source) {
                let counted = |before: &[Step], after: &[Step]| {
                    assert_eq!(second_time(head, &sample, source, before, after, level), 0, "{} at {level}", head.name);
                };
                counted(&[], &[]);
                counted(&[], &[saturated(), mixed()]);
                if head.source {
                    counted(&[looked_up(), mixed()], &[saturated()]);
                }
            }
        }
    }
}

#[test]
fn a_second_band_of_every_function_allocates_nothing() {
    let load = KernelSample::new(SIZE, &[]);
    for function in pixel::ALL {
        for KernelSample { words, small, .. } in function.drawn(&mut Chance::new(1), SIZE) {
            let step: Step = (function, (words, small));
            for level in Level::available() {
                let after_head = second_time(&LOAD, &load, SIZE, &[], &[looked_up(), step.clone(), saturated()], level);
                let before_head = second_time(&edges::EDGES, &load, SIZE, std::slice::from_ref(&step), &[], level);
                assert_eq!((after_head, before_head), (0, 0), "{} at {level}", function.name);
            }
        }
    }
}

#[test]
fn a_second_band_of_special_settings_allocates_nothing() {
    let weights = blur::weights(1.5, 9).expect("an odd number of taps");
    let sharp = blur::weights(0.3, 3).expect("an odd number of taps");
    let blurred = |weights: &[u32]| (blur::pack(weights).to_vec(), blur::small(weights));
    let weighed = convolve::fixed(&[0.13; 49], 5.0).expect("small weights");
    let weighed = (convolve::pack(&weighed).to_vec(), convolve::small(&weighed));
    let rate = Rate::new(30, 1).expect("thirty");
    let none = (vec![], vec![]);
    for level in Level::available() {
        let check = |head: &'static Head, given: &Given, source: Size, before: &[Step], after: &[Step]| {
            let pictures = if head.name == compositor::COMPOSITOR.name { vec![source; 2] } else { vec![] };
            let sample = KernelSample::new(SIZE, &given.0).small(given.1.clone()).pictures(pictures);
            assert_eq!(second_time(head, &sample, source, before, after, level), 0, "{} at {level}", head.name);
        };
        check(&blur::BLUR, &blurred(&weights), SIZE, &[looked_up(), mixed()], &[saturated()]);
        check(&blur::BLUR, &blurred(&sharp), SIZE, &[grayed()], &[]);
        check(&convolve::CONVOLVE, &weighed, SIZE, &[looked_up(), mixed()], &[saturated()]);
        check(&edges::EDGES, &none, SIZE, &[saturated()], &[looked_up()]);
        for side in [3, 9, 31, 257, 259] {
            let words = boxblur::pack(side, SIZE).expect("an odd side").to_vec();
            check(&boxblur::BOXBLUR, &(words, vec![]), SIZE, &[looked_up()], &[saturated()]);
        }
        for head in [&median3::MEDIAN3, &median5::MEDIAN5] {
            check(head, &none, SIZE, &[looked_up(), mixed()], &[saturated()]);
            check(head, &none, SIZE, &[], &[]);
        }
        check(&bilinear::BILINEAR, &(vec![], bilinear::small(SMALL, SIZE)), SMALL, &[saturated(), mixed()], &[mixed()]);
        check(&nearest::NEAREST, &(vec![], nearest::small(SMALL, SIZE)), SMALL, &[looked_up()], &[]);
        let cells = compositor::cells(compositor::CompositorLayout::Grid, 3, SIZE);
        let composed = (compositor::pack(&cells).to_vec(), compositor::small(&cells, &[SMALL; 3], SIZE));
        check(&compositor::COMPOSITOR, &composed, SMALL, &[], &[saturated(), mixed()]);
        check(&crop::CROP, &(crop::pack(0, 0).to_vec(), vec![]), SIZE, &[keyed(), cubed()], &[separate()]);
        let turned = Size { width: SIZE.height, height: SIZE.width };
        check(&rotate::ROTATE, &(rotate::pack(1).to_vec(), vec![]), turned, &[cubed()], &[keyed()]);
        let back = warp::inverse(&[0.8, -0.3, 4.0, 0.2, 1.1, 2.0]).expect("it can be turned round");
        let mapped = (vec![], warp::small(&back, SIZE, SIZE));
        check(&warp::WARP, &mapped, SIZE, &[looked_up(), mixed()], &[separate()]);
        check(&warp::WARP, &mapped, SIZE, &[], &[]);
        check(&luma::LUMA, &none, SIZE, &[looked_up()], &[saturated()]);
        let resampled = |filter, from| {
            let (words, small) = resample::pack(filter, from, SIZE);
            (words.to_vec(), small)
        };
        let large = Size { width: 200, height: 80 };
        check(&resample::RESAMPLE, &resampled(ResampleFilter::Area, large), large, &[], &[]);
        check(&resample::RESAMPLE, &resampled(ResampleFilter::Area, SMALL), SMALL, &[saturated(), mixed()], &[]);
        check(&resample::RESAMPLE, &resampled(ResampleFilter::Lanczos, large), large, &[looked_up()], &[mixed()]);
        let long = Size { width: 3, height: 65_000 };
        check(&resample::RESAMPLE, &resampled(ResampleFilter::Lanczos, long), long, &[], &[]);
        let six = [looked_up(), saturated(), mixed(), grayed(), covered(), looked_up()];
        check(&LOAD, &none, SIZE, &[], &six);
        let many: Vec<Step> = (0..20).map(|_| saturated()).collect();
        check(&LOAD, &none, SIZE, &many, &many);
        check(&ball::BALL, &(ball::pack(SIZE, rate, 3).to_vec(), vec![]), SIZE, &[], &[marked(), curved(), written()]);
        check(&disc::DISC, &(disc::pack(SIZE, rate, 3).to_vec(), vec![]), SIZE, &[], &[]);
    }
}

#[test]
fn an_allocation_is_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
}
