//! CPU cost of kernels on one thread, at every vector level of the machine.
//!
//! Frames are 1920x1080; a name with a size scales from or to that size. The output is milliseconds per frame: the CPU
//! time of this thread if Linux reports it, otherwise wall-clock time. Values are medians of rounds, and levels
//! alternate within a round.

use std::hint::black_box;
use std::time::{Duration, Instant};

use vramp_kernels::head::resample::{self, axis::ResampleFilter};
use vramp_kernels::head::{
    Head, ball, bilinear, blur, boxblur, compositor, convolve, crop, edges, flip, load_here::LOAD, luma, median3,
    median5, nearest, rotate, warp,
};
use vramp_kernels::pixel::{
    channels, chromakey, color, cube, curve, glyphs, gray, markers, matrix, mix, overlay, table,
};
use vramp_kernels::stored::{self, PlaneRows, Way};
use vramp_kernels::{FrameParams, KernelFrame, Level, Picture, Pixel, PixelFn, Recipe, RowProgram, RowScratch};
use vramp_plan::{Format, Rate, Siting, Size};

const SIZE: Size = Size { width: 1920, height: 1080 };
const LESS: Size = Size { width: 1280, height: 720 };
const HALF: Size = Size { width: 960, height: 540 };
const DOUBLE: Size = Size { width: 3840, height: 2160 };
const TURNED: Size = Size { width: 1080, height: 1920 };
const LARGER: Size = Size { width: 2560, height: 1440 };
const THIRD: Size = Size { width: 640, height: 360 };
const ROUNDS: usize = 15;
/// Each round has as many frames as take this long.
const ROUND: Duration = Duration::from_millis(25);

/// A kernel with its inputs.
struct Case {
    name: &'static str,
    recipe: Recipe,
    params: FrameParams,
    source: Size,
    size: Size,
    /// Sizes of the extra inputs.
    extra_inputs: Vec<Size>,
    in_place: bool,
    /// The formats of the source and of the output.
    formats: [Format; 2],
}

type Given = (Vec<u32>, Vec<u32>);

fn case(
    name: &'static str,
    head: &'static Head,
    given: &Given,
    source: Size,
    steps: &[(&'static PixelFn, Given)],
) -> Case {
    let recipe = steps.iter().fold(Recipe::of(head), |recipe, (function, _)| recipe.then(function));
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, SIZE, source, 0);
    params.set(layout.head, &given.0, &given.1);
    for (part, (_, (words, small))) in layout.after.iter().zip(steps) {
        params.set(*part, words, small);
    }
    Case {
        name,
        recipe,
        params,
        source,
        size: SIZE,
        extra_inputs: vec![SIZE],
        in_place: false,
        formats: [Format::Rgba8; 2],
    }
}

fn converted(name: &'static str, from: Format, into: Format) -> Case {
    converted_sited(name, from, into, Siting::Centre)
}

fn converted_sited(name: &'static str, from: Format, into: Format, siting: Siting) -> Case {
    let recipe = Recipe::of(&LOAD).reading(from).writing(into);
    let (layout, way) = (recipe.layout(), Way::new(true, false).sited(siting));
    let mut params = FrameParams::new();
    params.begin(&layout, SIZE, SIZE, 0);
    if let Some((part, stored)) = layout.from.zip(stored::of(from)) {
        params.set(part, &stored.load_words(way, SIZE), &[]);
    }
    if let Some((part, stored)) = layout.into.zip(stored::of(into)) {
        params.set(part, &stored.store_words(way, SIZE), &[]);
    }
    Case {
        name,
        recipe,
        params,
        source: SIZE,
        size: SIZE,
        extra_inputs: vec![SIZE],
        in_place: false,
        formats: [from, into],
    }
}

/// Scales from or to 1920x1080.
fn resampled(name: &'static str, filter: ResampleFilter, source: Size, size: Size) -> Case {
    let recipe = Recipe::of(&resample::RESAMPLE);
    let (words, small) = resample::pack(filter, source, size);
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, size, source, 0);
    params.set(layout.head, &words, &small);
    Case { name, recipe, params, source, size, extra_inputs: vec![SIZE], in_place: false, formats: [Format::Rgba8; 2] }
}

fn nothing() -> Given {
    (vec![], vec![])
}

fn blur_of(name: &'static str, sigma: f64, taps: u32) -> Case {
    let weights = blur::weights(sigma, taps).expect("an odd number of taps");
    case(name, &blur::BLUR, &(blur::pack(&weights).to_vec(), blur::small(&weights)), SIZE, &[])
}

/// A convolution with `side` weights per row and column, none of them 0: small integers, or arbitrary fractions.
fn convolve_of(name: &'static str, side: u32, whole: bool) -> Case {
    let weight = |i: u32| if whole { f64::from(1 + i % 3) } else { (f64::from(i) * 1.7).sin() / f64::from(side) };
    convolve_by(name, &(1..=side * side).map(weight).collect::<Vec<_>>())
}

fn convolve_by(name: &'static str, weights: &[f64]) -> Case {
    let fixed = convolve::fixed(weights, 0.0).expect("few and small weights");
    case(name, &convolve::CONVOLVE, &(convolve::pack(&fixed).to_vec(), convolve::small(&fixed)), SIZE, &[])
}

fn sharpen_of(name: &'static str, a: f64) -> Case {
    convolve_by(name, &[0.0, -a, 0.0, -a, 1.0 + 4.0 * a, -a, 0.0, -a, 0.0])
}

/// Four images of one size in a grid.
fn grid_of(name: &'static str, size: Size) -> Case {
    let recipe = Recipe::of_several(&compositor::COMPOSITOR, 3);
    let cells = compositor::cells(compositor::CompositorLayout::Grid, 4, SIZE);
    let (layout, mut params) = (recipe.layout(), FrameParams::new());
    params.begin(&layout, SIZE, size, 0);
    params.set(layout.head, &compositor::pack(&cells), &compositor::small(&cells, &[size; 4], SIZE));
    let formats = [Format::Rgba8; 2];
    Case { name, recipe, params, source: size, size: SIZE, extra_inputs: vec![size; 3], in_place: false, formats }
}

fn box_of(name: &'static str, side: u32) -> Case {
    let words = boxblur::pack(side, SIZE).expect("an odd side");
    case(name, &boxblur::BOXBLUR, &(words.to_vec(), vec![]), SIZE, &[])
}

fn looked_up(table: &table::LookupTable) -> (&'static PixelFn, Given) {
    (&table::TABLE, (table::pack(table).to_vec(), vec![]))
}

fn matrix_of(m: &color::ColorMatrix) -> (&'static PixelFn, Given) {
    (&matrix::MATRIX, (matrix::pack(m).expect("small factors").to_vec(), vec![]))
}

fn mixed(mode: mix::Mode) -> (&'static PixelFn, Given) {
    (&mix::MIX, (mix::pack(mode, 0.3).to_vec(), vec![]))
}

/// Lines of letters of 14x24 pixels.
fn text(lines: i32, letters: i32) -> (&'static PixelFn, Given) {
    let atlas: Vec<u8> = (0..26 * 14 * 24).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
    let atlas: Vec<u8> = atlas.iter().map(|v| if *v < 128 { 0 } else { *v }).collect();
    let letter = |line: i32, at: i32| glyphs::Glyph {
        x: 20 + 15 * at,
        y: 1026 - 30 * line,
        width: 14,
        height: 24,
        at: (at % 26).cast_unsigned() * 14 * 24,
    };
    let lines: Vec<Vec<_>> = (0..lines).map(|line| (0..letters).map(|at| letter(line, at)).collect()).collect();
    let mut small = Vec::new();
    let words = glyphs::pack([255; 4], &atlas, &lines, SIZE, &mut small).expect("few, inside the atlas");
    (&glyphs::GLYPHS, (words.to_vec(), small))
}

fn logo() -> (&'static PixelFn, Given) {
    let size = Size { width: 256, height: 256 };
    let pixels: Vec<Pixel> = noise(size, 3);
    (&overlay::OVERLAY, (overlay::pack(100, 100, size, 0.8).to_vec(), overlay::small(&pixels).collect()))
}

fn wave() -> (&'static PixelFn, Given) {
    let rows: Vec<i32> = (0..1920).map(|x| 540 + (150.0 * (f64::from(x) / 90.0).sin()) as i32).collect();
    let small = rows.iter().map(|row| row.cast_unsigned()).collect();
    (&curve::CURVE, (curve::pack([0, 255, 0, 255], &rows).to_vec(), small))
}

/// A key in noise, with a hard edge or with a soft edge that covers many pixels.
fn keyed(smooth: f64) -> (&'static PixelFn, Given) {
    (&chromakey::CHROMAKEY, (chromakey::pack([0, 255, 0], 0.3, smooth).to_vec(), vec![]))
}

fn cube_of(along: u32) -> (&'static PixelFn, Given) {
    let colors = (0..along.pow(3)).map(|i| [i % along, i / along % along, i / along / along]);
    let bent: Vec<[f32; 3]> = colors.map(|c| c.map(|v| (v as f32 / (along - 1) as f32).powf(1.2))).collect();
    let places = [std::array::from_fn(|v| v as f64 / 255.0); 3];
    let packed = cube::pack(along, &bent, &places).expect("small and whole");
    (&cube::CUBE, (packed.words.to_vec(), packed.small))
}

fn separate() -> (&'static PixelFn, Given) {
    let tables = [color::gamma(1.2), color::gamma(0.8), color::contrast(1.1, 0.5)];
    (&channels::CHANNELS, (channels::pack(&tables).to_vec(), vec![]))
}

fn warped(name: &'static str, m: &warp::Map) -> Case {
    let back = warp::inverse(m).expect("it can be turned round");
    case(name, &warp::WARP, &(vec![], warp::small(&back, SIZE, SIZE)), SIZE, &[])
}

fn cases() -> Vec<Case> {
    let load = |name, steps: &[_]| case(name, &LOAD, &nothing(), SIZE, steps);
    let gamma = table::fold(&table::fold(&color::contrast(1.2, 0.5), &color::brightness(0.04)), &color::gamma(1.3));
    let chain = || {
        vec![looked_up(&gamma), matrix_of(&color::saturation(1.3)), looked_up(&color::invert()), mixed(mix::Mode::Mix)]
    };
    let rate = Rate::new(30, 1).expect("thirty");
    let moving = (ball::pack(SIZE, rate, 17).to_vec(), vec![]);
    let corners = || (&markers::MARKERS, (markers::pack(60, 99).to_vec(), vec![]));
    let full = color::colormatrix(&[0.3; 20]).expect("twenty");
    vec![
        load("load", &[]),
        load("table", &[looked_up(&gamma)]),
        load("matrix", &[matrix_of(&color::saturation(1.3))]),
        load("matrix_all", &[matrix_of(&full)]),
        load("mix", &[mixed(mix::Mode::Mix)]),
        load("mix_over", &[mixed(mix::Mode::Over)]),
        load("gray", &[(&gray::GRAY, nothing())]),
        load("channels", &[separate()]),
        load("cube33", &[cube_of(33)]),
        load("cube65", &[cube_of(65)]),
        load("key hard", &[keyed(0.0)]),
        load("key soft", &[keyed(0.3)]),
        case("crop", &crop::CROP, &(crop::pack(203, 101).to_vec(), vec![]), LARGER, &[]),
        case("flip h", &flip::FLIP, &(flip::pack(true, false).to_vec(), vec![]), SIZE, &[]),
        case("flip v", &flip::FLIP, &(flip::pack(false, true).to_vec(), vec![]), SIZE, &[]),
        case("nearest", &nearest::NEAREST, &(vec![], nearest::small(LARGER, SIZE)), LARGER, &[]),
        case("rotate90", &rotate::ROTATE, &(rotate::pack(1).to_vec(), vec![]), TURNED, &[]),
        case("rotate180", &rotate::ROTATE, &(rotate::pack(2).to_vec(), vec![]), SIZE, &[]),
        case("rotate270", &rotate::ROTATE, &(rotate::pack(3).to_vec(), vec![]), TURNED, &[]),
        warped("warp turn", &[0.9, -0.2, 40.0, 0.2, 0.9, -20.0]),
        warped("warp turn45", &[0.7, -0.7, 900.0, 0.7, 0.7, -500.0]),
        warped("warp near1", &[1.001, 0.002, 0.3, -0.002, 1.001, 0.7]),
        warped("warp down", &[0.25, 0.0, 0.0, 0.0, 0.25, 0.0]),
        warped("warp up", &[4.0, 0.0, 0.0, 0.0, 4.0, 0.0]),
        blur_of("blur9", 1.5, 9),
        blur_of("blur13", 2.0, 13),
        blur_of("blur31", 5.0, 31),
        box_of("box3", 3),
        box_of("box5", 5),
        box_of("box9", 9),
        box_of("box15", 15),
        box_of("box31", 31),
        box_of("box127", 127),
        box_of("box257", 257),
        box_of("box301", 301),
        box_of("box1023", 1023),
        case("median3", &median3::MEDIAN3, &nothing(), SIZE, &[]),
        case("median5", &median5::MEDIAN5, &nothing(), SIZE, &[]),
        sharpen_of("sharpen 1", 1.0),
        sharpen_of("sharpen 0.3", 0.3),
        sharpen_of("sharpen 7.3", 7.3),
        convolve_of("convolve3", 3, false),
        convolve_of("convolve5", 5, false),
        convolve_of("convolve7", 7, false),
        convolve_of("convolve3 1", 3, true),
        convolve_of("convolve5 1", 5, true),
        convolve_of("convolve7 1", 7, true),
        case("edges", &edges::EDGES, &nothing(), SIZE, &[]),
        case("bilinear", &bilinear::BILINEAR, &(vec![], bilinear::small(HALF, SIZE)), HALF, &[]),
        case("bilinear half", &bilinear::BILINEAR, &(vec![], bilinear::small(DOUBLE, SIZE)), DOUBLE, &[]),
        grid_of("grid of 1080", SIZE),
        grid_of("grid of 720", Size { width: 1280, height: 720 }),
        grid_of("grid of 480", Size { width: 640, height: 480 }),
        resampled("area 720p", ResampleFilter::Area, SIZE, LESS),
        resampled("area 540p", ResampleFilter::Area, SIZE, HALF),
        resampled("area 360p", ResampleFilter::Area, SIZE, THIRD),
        resampled("area 224", ResampleFilter::Area, SIZE, Size { width: 224, height: 224 }),
        resampled("area from 540p", ResampleFilter::Area, HALF, SIZE),
        resampled("lanczos 720p", ResampleFilter::Lanczos, SIZE, LESS),
        resampled("lanczos 540p", ResampleFilter::Lanczos, SIZE, HALF),
        resampled("lanczos 224", ResampleFilter::Lanczos, SIZE, Size { width: 224, height: 224 }),
        resampled("lanczos from 540p", ResampleFilter::Lanczos, HALF, SIZE),
        case("luma", &luma::LUMA, &nothing(), SIZE, &[]),
        Case { in_place: true, ..case("luma edit", &luma::LUMA, &nothing(), SIZE, &[]) },
        load("chain5", &chain()),
        Case { in_place: true, ..load("chain5 edit", &chain()) },
        case("ball", &ball::BALL, &moving, SIZE, &[]),
        case("demo", &ball::BALL, &moving, SIZE, &[corners(), wave(), text(1, 10)]),
        case("long text", &ball::BALL, &moving, SIZE, &[text(20, 120)]),
        case("logo", &ball::BALL, &moving, SIZE, &[logo()]),
        converted("from i420", Format::I420, Format::Rgba8),
        converted("from nv12", Format::Nv12, Format::Rgba8),
        converted_sited("from i420 left", Format::I420, Format::Rgba8, Siting::Left),
        converted_sited("from nv12 left", Format::Nv12, Format::Rgba8, Siting::Left),
        converted("from i422", Format::I422, Format::Rgba8),
        converted("from i444", Format::I444, Format::Rgba8),
        converted("from gray8", Format::Gray8, Format::Rgba8),
        converted("from rgb8", Format::Rgb8, Format::Rgba8),
        converted("to i420", Format::Rgba8, Format::I420),
        converted("to nv12", Format::Rgba8, Format::Nv12),
        converted("to i422", Format::Rgba8, Format::I422),
        converted("to i444", Format::Rgba8, Format::I444),
        converted("to gray8", Format::Rgba8, Format::Gray8),
        converted("to rgb8", Format::Rgba8, Format::Rgb8),
        converted("i420 to nv12", Format::I420, Format::Nv12),
    ]
}

fn noise(size: Size, seed: u32) -> Vec<Pixel> {
    (0..size.pixels() as u32).map(|i| (i ^ seed).wrapping_mul(2_654_435_761).rotate_left(13).to_le_bytes()).collect()
}

/// The CPU time of this thread, or wall-clock time if it is not known.
fn cpu_time(since: Instant) -> Duration {
    // Linux updates a thread's CPU time when it yields.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = stat.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    used.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn main() {
    let only = std::env::args().nth(1).filter(|word| !word.starts_with('-'));
    let levels = Level::available();
    print!("{:18}", "ms per frame");
    for level in &levels {
        print!(" {:>12}", level.to_string());
    }
    println!();
    let mut whole = vec![[0; 4]; SIZE.pixels() as usize];
    let mut scratch = RowScratch::default();
    let begun = Instant::now();
    for case in cases().iter().filter(|case| only.as_ref().is_none_or(|only| case.name.starts_with(only))) {
        let pixels = noise(case.source, 1);
        let bytes = |at: usize, size: Size| case.formats[at].frame_bytes(size) as usize;
        let others: Vec<_> = case.extra_inputs.iter().map(|size| (*size, noise(*size, 2))).collect();
        let extra_inputs: Vec<_> =
            others.iter().map(|(size, other)| Picture::new(*size, other).expect("it fits")).collect();
        let frame = KernelFrame {
            size: case.size,
            source: Picture::stored(case.formats[0], case.source, &pixels.as_flattened()[..bytes(0, case.source)]),
            extra_inputs: &extra_inputs,
            small: case.params.small(),
            words: case.params.words(),
        };
        let out = &mut whole[..case.size.pixels() as usize];
        let mut run = |program: &RowProgram, frames: u32| {
            let start = cpu_time(begun);
            for _ in 0..frames {
                program.survey(&frame, 0..case.source.height, &mut scratch);
                program.conclude(&frame, std::slice::from_mut(&mut scratch), 1);
                if case.in_place {
                    program.edit(&frame, 0, black_box(&mut *out), &scratch);
                } else if case.formats[1] != Format::Rgba8 {
                    let made = &mut black_box(&mut *out).as_flattened_mut()[..bytes(1, SIZE)];
                    let mut rows = PlaneRows::of(case.formats[1], SIZE, made).expect("a frame has its rows");
                    program.pack(&frame, 0, &mut rows, &mut scratch);
                } else {
                    program.band(&frame, 0, black_box(&mut *out), &mut scratch);
                }
            }
            cpu_time(begun).saturating_sub(start)
        };
        let programs: Vec<RowProgram> = levels.iter().map(|level| case.recipe.program().at(*level)).collect();
        let mut rounds = vec![Vec::new(); programs.len()];
        for _ in 0..ROUNDS {
            for (program, times) in programs.iter().zip(&mut rounds) {
                let one = run(program, 2).as_nanos().max(1) / 2;
                let frames = (ROUND.as_nanos() / one).clamp(1, 200) as u32;
                times.push(run(program, frames).as_secs_f64() * 1e3 / f64::from(frames));
            }
        }
        print!("{:18}", case.name);
        for times in &mut rounds {
            times.sort_by(f64::total_cmp);
            print!(" {:12.3}", times[times.len() / 2]);
        }
        println!();
    }
}
