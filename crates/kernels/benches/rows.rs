//! What kernels cost on one thread of the host, at every level of the machine.
//!
//! Frames of 1920x1080; where the name has a size, from that size or to it. Printed per frame in milliseconds: the CPU
//! time of this thread, where Linux tells it, else the time passed. Medians of rounds, in which levels take turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

use vramp_kernels::head::resample::{self, axis::Filter};
use vramp_kernels::head::{Head, ball, bilinear, blur, load_here::LOAD, luma};
use vramp_kernels::pixel::{color, curve, glyphs, gray, markers, matrix, mix, overlay, table};
use vramp_kernels::{Frame, Level, Params, Picture, Pixel, PixelFn, Program, Recipe, Scratch};
use vramp_plan::{Rate, Size};

const SIZE: Size = Size { width: 1920, height: 1080 };
const LESS: Size = Size { width: 1280, height: 720 };
const HALF: Size = Size { width: 960, height: 540 };
const THIRD: Size = Size { width: 640, height: 360 };
const ROUNDS: usize = 15;
/// As many frames in a round as take this long.
const ROUND: Duration = Duration::from_millis(25);

/// A kernel with everything that it is given.
struct Case {
    name: &'static str,
    recipe: Recipe,
    params: Params,
    source: Size,
    size: Size,
    in_place: bool,
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
    let mut params = Params::new();
    params.begin(&layout, SIZE, source, 0);
    params.set(layout.head, &given.0, &given.1);
    for (part, (_, (words, small))) in layout.after.iter().zip(steps) {
        params.set(*part, words, small);
    }
    Case { name, recipe, params, source, size: SIZE, in_place: false }
}

/// Another size, from one or to one of 1920x1080.
fn resampled(name: &'static str, filter: Filter, source: Size, size: Size) -> Case {
    let recipe = Recipe::of(&resample::RESAMPLE);
    let (words, small) = resample::pack(filter, source, size);
    let layout = recipe.layout();
    let mut params = Params::new();
    params.begin(&layout, size, source, 0);
    params.set(layout.head, &words, &small);
    Case { name, recipe, params, source, size, in_place: false }
}

fn nothing() -> Given {
    (vec![], vec![])
}

fn blur_of(name: &'static str, sigma: f64, taps: u32) -> Case {
    let weights = blur::weights(sigma, taps).expect("an odd number of taps");
    case(name, &blur::BLUR, &(blur::pack(&weights).to_vec(), blur::small(&weights)), SIZE, &[])
}

fn looked_up(table: &table::Table) -> (&'static PixelFn, Given) {
    (&table::TABLE, (table::pack(table).to_vec(), vec![]))
}

fn matrix_of(m: &color::Matrix) -> (&'static PixelFn, Given) {
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
        blur_of("blur9", 1.5, 9),
        blur_of("blur13", 2.0, 13),
        blur_of("blur31", 5.0, 31),
        case("bilinear", &bilinear::BILINEAR, &(vec![], bilinear::small(HALF, SIZE)), HALF, &[]),
        resampled("area 720p", Filter::Area, SIZE, LESS),
        resampled("area 540p", Filter::Area, SIZE, HALF),
        resampled("area 360p", Filter::Area, SIZE, THIRD),
        resampled("area 224", Filter::Area, SIZE, Size { width: 224, height: 224 }),
        resampled("area from 540p", Filter::Area, HALF, SIZE),
        resampled("lanczos 720p", Filter::Lanczos, SIZE, LESS),
        resampled("lanczos 540p", Filter::Lanczos, SIZE, HALF),
        resampled("lanczos 224", Filter::Lanczos, SIZE, Size { width: 224, height: 224 }),
        resampled("lanczos from 540p", Filter::Lanczos, HALF, SIZE),
        case("luma", &luma::LUMA, &nothing(), SIZE, &[]),
        Case { in_place: true, ..case("luma edit", &luma::LUMA, &nothing(), SIZE, &[]) },
        load("chain5", &chain()),
        Case { in_place: true, ..load("chain5 edit", &chain()) },
        case("ball", &ball::BALL, &moving, SIZE, &[]),
        case("demo", &ball::BALL, &moving, SIZE, &[corners(), wave(), text(1, 10)]),
        case("long text", &ball::BALL, &moving, SIZE, &[text(20, 120)]),
        case("logo", &ball::BALL, &moving, SIZE, &[logo()]),
    ]
}

fn noise(size: Size, seed: u32) -> Vec<Pixel> {
    (0..size.pixels() as u32).map(|i| (i ^ seed).wrapping_mul(2_654_435_761).rotate_left(13).to_le_bytes()).collect()
}

/// The time of this thread on a CPU; of the clock, where that is not known.
fn cpu_time(since: Instant) -> Duration {
    // What a thread has used is added up when it lets others go first.
    std::thread::yield_now();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = told.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
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
    let other = noise(SIZE, 2);
    let mut whole = vec![[0; 4]; SIZE.pixels() as usize];
    let mut scratch = Scratch::default();
    let begun = Instant::now();
    for case in cases().iter().filter(|case| only.as_ref().is_none_or(|only| case.name.starts_with(only))) {
        let pixels = noise(case.source, 1);
        let sides = [Picture::new(SIZE, &other).expect("it fits")];
        let frame = Frame {
            size: case.size,
            source: Picture::new(case.source, &pixels),
            sides: &sides,
            small: case.params.small(),
            words: case.params.words(),
        };
        let out = &mut whole[..case.size.pixels() as usize];
        let mut run = |program: &Program, frames: u32| {
            let start = cpu_time(begun);
            for _ in 0..frames {
                program.survey(&frame, 0..case.source.height, &mut scratch);
                program.conclude(&frame, std::slice::from_mut(&mut scratch), 1);
                if case.in_place {
                    program.edit(&frame, 0, black_box(&mut *out), &scratch);
                } else {
                    program.band(&frame, 0, black_box(&mut *out), &mut scratch);
                }
            }
            cpu_time(begun).saturating_sub(start)
        };
        let programs: Vec<Program> = levels.iter().map(|level| case.recipe.program().at(*level)).collect();
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
