//! Handlers with two-pass kernels, made from settings and compared with their formulas in doubles and integers.
//!
//! The formulas are written again here, from the catalogue's page, and share no code with the kernels.

use crate::easel::{Made, Pixel, Request, THIRTY, allocations, make, run, size};
use vramp_handlers::registry;
use vramp_plan::catalog::{Entry, Family, SettingValues, Value};
use vramp_plan::{Size, read_text};
use vramp_runtime::Part;
use vramp_runtime::internals::is_counted;

/// Noise of a size, unchanged and after a handler.
fn on_noise(at: Size, requested: Request<'_>) -> (Made, Made) {
    let side = at.to_string();
    let noise: Request<'_> = ("pattern", &[("kind", "noise"), ("size", &side), ("frames", "1")]);
    (run(&[noise], &[], THIRTY).remove(0), run(&[noise, requested], &[], THIRTY).remove(0))
}

/// Weights of all source pixels for one output pixel.
type Weights = fn(at: u32, from: u32, to: u32) -> Vec<f64>;

fn area(at: u32, from: u32, to: u32) -> Vec<f64> {
    let scale = f64::from(from) / f64::from(to);
    let (begin, end) = (f64::from(at) * scale, f64::from(at + 1) * scale);
    (0..from).map(|i| (end.min(f64::from(i + 1)) - begin.max(f64::from(i))).max(0.0) / scale).collect()
}

fn lanczos(at: u32, from: u32, to: u32) -> Vec<f64> {
    let scale = f64::from(from) / f64::from(to);
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
    let bell = |i: u32| {
        let x = (f64::from(i) + 0.5 - (f64::from(at) + 0.5) * scale) / scale.max(1.0);
        if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
    };
    let all: Vec<f64> = (0..from).map(bell).collect();
    let sum: f64 = all.iter().sum();
    all.iter().map(|weight| weight / sum).collect()
}

/// The distance of the result from the formula before rounding; values beyond 0 or 255 are clamped.
fn off(source: &Made, made: &Made, weights: Weights) -> f64 {
    let (from, to) = (source.size, made.size);
    let columns: Vec<Vec<f64>> = (0..to.width).map(|x| weights(x, from.width, to.width)).collect();
    let rows: Vec<Vec<f64>> = (0..to.height).map(|y| weights(y, from.height, to.height)).collect();
    let level = |x: u32, y: u32, channel: usize| {
        let row = |v: u32| -> f64 {
            (0..from.width).map(|u| columns[x as usize][u as usize] * f64::from(source.at(u, v)[channel])).sum()
        };
        let sum: f64 = (0..from.height).map(|v| rows[y as usize][v as usize] * row(v)).sum();
        sum.clamp(0.0, 255.0)
    };
    let each = made.each().flat_map(|(x, y, pixel)| (0..4).map(move |c| (x, y, c, pixel[c])));
    each.map(|(x, y, channel, made)| (f64::from(made) - level(x, y, channel)).abs()).fold(0.0, f64::max)
}

#[test]
fn resize_by_area_or_lanczos_is_its_formula_along_each_axis() {
    for (at, to) in [((1, 1), "7x3"), ((40, 30), "20x15"), ((41, 29), "17x40"), ((9, 70), "30x8"), ((64, 3), "1x1")] {
        for (filter, weights) in [("area", area as Weights), ("lanczos", lanczos)] {
            let (source, made) = on_noise(size(at.0, at.1), ("resize", &[("size", to), ("filter", filter)]));
            assert_eq!(made.size.to_string(), to);
            // Half a level from rounding at the end.
            let off = off(&source, &made, weights);
            assert!(off < 0.6, "{filter} {at:?} {to}: {off}");
        }
    }
}

fn rnd(a: i64, b: i64) -> i64 {
    (2 * a + b).div_euclid(2 * b)
}

fn luma(source: &Made) -> Vec<Pixel> {
    let (w, h) = (source.size.width, i64::from(source.size.height));
    let gray = |[r, g, b, _]: Pixel| (9798 * i64::from(r) + 19_235 * i64::from(g) + 3735 * i64::from(b) + 16_384) >> 15;
    let end = |x: u32| {
        let mean = rnd((0..source.size.height).map(|y| gray(source.at(x, y))).sum(), h);
        h - 1 - rnd(mean * (h / 4 - 1), 255)
    };
    let ends: Vec<i64> = (0..w).map(end).collect();
    let pixel = |(x, y, [r, g, b, a]): (u32, u32, Pixel)| match ends[x as usize] - i64::from(y) {
        0 | 1 => [0, 255, 0, 255],
        _ if i64::from(y) >= h - h / 4 => [r / 2, g / 2, b / 2, a],
        _ => [r, g, b, a],
    };
    source.each().map(pixel).collect()
}

#[test]
fn the_waveform_of_a_picture_is_its_formula_in_every_size() {
    for (width, height) in [(1, 1), (5, 2), (3, 3), (7, 4), (40, 31), (300, 200)] {
        let (source, made) = on_noise(size(width, height), ("waveform", &[("kind", "luma")]));
        assert!(made.pixels == luma(&source), "{width}x{height}");
    }
}

#[test]
fn a_waveform_of_the_picture_allocates_nothing_once_it_runs() {
    assert!(is_counted(), "this program counts its allocations");
    let noise: Request<'_> = ("pattern", &[("kind", "noise"), ("size", "64x48")]);
    assert_eq!(allocations(&[noise, ("waveform", &[("kind", "luma")])], 50), 0);
}

#[test]
fn steady_frames_of_every_drawing_allocate_nothing() {
    let registry = registry();
    let (mut counted, noise): (_, Request<'_>) = (0, ("pattern", &[("kind", "noise"), ("size", "64x48")]));
    let drawings = registry.catalog().entries().filter(|entry| entry.family == Family::Draw && entry.inputs.len() == 1);
    for entry in drawings.filter(|entry| registry.runs(entry) && !entry.example.contains("path=")) {
        let spec = read_text(entry.example, registry.catalog()).spec;
        let handler = spec.handlers().iter().find(|handler| handler.kind == entry.name).expect("its example shows it");
        let given: Vec<_> = handler.settings.iter().map(|(key, set)| (key.as_str(), set.value.as_str())).collect();
        assert_eq!(allocations(&[noise, (entry.name, &given)], 60), 0, "{}", entry.name);
        counted += 1;
    }
    assert!(counted >= 4, "only {counted} drawings were counted");
}

#[test]
fn what_the_plan_takes_for_two_passes_is_what_kernels_do() {
    let mut seen = 0;
    for (name, given) in [
        ("blur", &[][..]),
        ("resize", &[("size", "4x4"), ("filter", "area")]),
        ("resize", &[("size", "4x4"), ("filter", "lanczos")]),
        ("resize", &[("size", "4x4")]),
        ("waveform", &[("kind", "luma")]),
        ("waveform", &[]),
    ] {
        let handler = make((name, given)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let heads = handler.parts().into_iter().filter_map(|part| match part {
            Part::Head(head) => head.first.map(|first| first.over),
            _ => None,
        });
        let entry: &Entry = registry().catalog().entries().find(|entry| entry.name == name).expect("it exists");
        let mut settings = SettingValues::default();
        for (key, word) in given {
            settings.set(*key, Value::Text((*word).to_owned()));
        }
        let kernel = entry.kernel.under(&settings).expect("it has a kernel");
        assert_eq!(heads.last(), kernel.keeps, "{name} {given:?}");
        seen += u32::from(kernel.keeps.is_some());
        assert_eq!(kernel.dispatches == 2, kernel.keeps.is_some(), "{name} {given:?}");
    }
    assert_eq!(seen, 4);
}
