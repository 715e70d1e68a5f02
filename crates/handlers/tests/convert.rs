//! Conversions between pixel formats, compared pixel by pixel with f64 arithmetic written here from the definitions:
//! BT.601 and BT.709, limited and full range, chroma in the middle of the pixels it covers.

use crate::files_rig::{Shot, size, through};
use vramp_handlers::convert::convert::ENTRY;
use vramp_plan::{Format, Size};
use vramp_runtime::{Meta, Yuv, YuvMatrix};

fn convert(shot: &Shot, to: Format) -> Shot {
    through(&ENTRY, &[("format", to.name())], std::slice::from_ref(shot)).pop().expect("a frame")
}

/// A sample of a plane.
fn place(shot: &Shot, plane: usize, x: usize, y: usize) -> f64 {
    let plane = shot.meta.picture().format.planes(shot.meta.picture().size).nth(plane).expect("the plane is there");
    f64::from(shot.bytes[plane.start as usize + y * plane.stride as usize + x])
}

struct Constants {
    kr: f64,
    kb: f64,
    black: f64,
    luma: f64,
    chroma: f64,
}

fn constants(yuv: Yuv, height: u32) -> Constants {
    let high = yuv.matrix.map_or(height >= 720, |matrix| matrix == YuvMatrix::Bt709);
    let (kr, kb) = if high { (0.2126, 0.0722) } else { (0.299, 0.114) };
    let (black, luma, chroma) = if yuv.full_range { (0.0, 255.0, 255.0) } else { (16.0, 219.0, 224.0) };
    Constants { kr, kb, black, luma, chroma }
}

/// The number of pixels that a chroma sample covers, horizontally and vertically.
fn covers(format: Format) -> (usize, usize) {
    match format {
        Format::I420 | Format::Nv12 => (2, 2),
        Format::I422 => (2, 1),
        _ => (1, 1),
    }
}

fn chroma_at(shot: &Shot, which: usize, x: usize, y: usize) -> f64 {
    match shot.meta.picture().format {
        Format::Nv12 => place(shot, 1, 2 * x + which, y),
        _ => place(shot, 1 + which, x, y),
    }
}

/// Chroma at a pixel: bilinear between the centres of its samples, clamped at the edges.
fn chroma_between(shot: &Shot, which: usize, x: usize, y: usize) -> f64 {
    let (across, down) = covers(shot.meta.picture().format);
    let (width, height) = (shot.meta.picture().size.width as usize, shot.meta.picture().size.height as usize);
    let at = |pixel: usize, covers: usize, pixels: usize| {
        let centre = (pixel as f64 + 0.5) / covers as f64 - 0.5;
        let last = (pixels.div_ceil(covers) - 1) as f64;
        let clamped = centre.clamp(0.0, last);
        (clamped.floor() as usize, (clamped.floor() + 1.0).min(last) as usize, clamped.fract())
    };
    let (x0, x1, fx) = at(x, across, width);
    let (y0, y1, fy) = at(y, down, height);
    let row = |y| chroma_at(shot, which, x0, y) * (1.0 - fx) + chroma_at(shot, which, x1, y) * fx;
    row(y0) * (1.0 - fy) + row(y1) * fy
}

/// A pixel of a frame, not rounded.
fn pixel(shot: &Shot, x: usize, y: usize) -> [f64; 3] {
    match shot.meta.picture().format {
        Format::Rgba8 => [0, 1, 2].map(|c| place(shot, 0, 4 * x + c, y)),
        Format::Rgb8 => [0, 1, 2].map(|c| place(shot, 0, 3 * x + c, y)),
        format => {
            let Constants { kr, kb, black, luma, chroma } =
                constants(shot.meta.picture().yuv, shot.meta.picture().size.height);
            let bright = (place(shot, 0, x, y) - black) / luma;
            let (pb, pr) = if format == Format::Gray8 {
                (0.0, 0.0)
            } else {
                let part = |which| (chroma_between(shot, which, x, y) - 128.0) / chroma;
                (part(0), part(1))
            };
            let (red, blue) = (bright + 2.0 * (1.0 - kr) * pr, bright + 2.0 * (1.0 - kb) * pb);
            let green = (bright - kr * red - kb * blue) / (1.0 - kr - kb);
            [red, green, blue].map(|level| 255.0 * level)
        }
    }
}

fn rounded(level: f64) -> f64 {
    (level.clamp(0.0, 255.0) + 0.5).floor().min(255.0)
}

#[track_caller]
fn near(found: f64, expected: f64, what: &str) {
    assert!((found - rounded(expected)).abs() <= 1.0, "{what}: {found} instead of {expected}");
}

/// Asserts that every byte of a frame made from rgba8 is within one level of the exact value.
fn check_down(from: &Shot, made: &Shot) {
    let what = |x: usize, y: usize| format!("{} {} at {x},{y}", made.meta.picture().format, made.meta.picture().size);
    let (width, height) = (from.meta.picture().size.width as usize, from.meta.picture().size.height as usize);
    let Constants { kr, kb, black, luma, chroma } = constants(made.meta.picture().yuv, made.meta.picture().size.height);
    let parts = |x, y| {
        let [r, g, b] = pixel(from, x, y).map(|level| level / 255.0);
        let bright = kr * r + (1.0 - kr - kb) * g + kb * b;
        (bright, (b - bright) / (2.0 * (1.0 - kb)), (r - bright) / (2.0 * (1.0 - kr)))
    };
    if made.meta.picture().format == Format::Rgb8 {
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            assert_eq!(pixel(made, x, y).map(|v| v as u8), pixel(from, x, y).map(|v| v as u8), "{}", what(x, y));
        }
        return;
    }
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        near(place(made, 0, x, y), black + luma * parts(x, y).0, &what(x, y));
    }
    if made.meta.picture().format == Format::Gray8 {
        return;
    }
    let (across, down) = covers(made.meta.picture().format);
    for (y, x) in (0..height.div_ceil(down)).flat_map(|y| (0..width.div_ceil(across)).map(move |x| (y, x))) {
        let (mut pb, mut pr, mut count) = (0.0, 0.0, 0.0);
        for dy in (y * down..(y + 1) * down).filter(|dy| *dy < height) {
            for dx in (x * across..(x + 1) * across).filter(|dx| *dx < width) {
                let (_, b, r) = parts(dx, dy);
                (pb, pr, count) = (pb + b, pr + r, count + 1.0);
            }
        }
        near(chroma_at(made, 0, x, y), 128.0 + chroma * pb / count, &what(x, y));
        near(chroma_at(made, 1, x, y), 128.0 + chroma * pr / count, &what(x, y));
    }
}

/// Asserts that every pixel made from another format is within one level of the exact value, and opaque.
fn check_up(from: &Shot, made: &Shot) {
    for y in 0..from.meta.picture().size.height as usize {
        for x in 0..from.meta.picture().size.width as usize {
            let what = format!("{} {} at {x},{y}", from.meta.picture().format, from.meta.picture().size);
            for (found, expected) in pixel(made, x, y).into_iter().zip(pixel(from, x, y)) {
                near(found, expected, &what);
            }
            assert!((place(made, 0, 4 * x + 3, y) - 255.0).abs() < 0.5, "{what}: not opaque");
        }
    }
}

const OTHERS: [Format; 6] = [Format::Rgb8, Format::I444, Format::I422, Format::I420, Format::Nv12, Format::Gray8];

fn sizes() -> Vec<Size> {
    let sides = [1, 2, 3, 4, 5, 17, 64];
    let mut sizes: Vec<Size> = sides.iter().flat_map(|w| sides.iter().map(|h| size(*w, *h))).collect();
    sizes.extend([size(3, 719), size(3, 720), size(4, 721), size(333, 7)]);
    sizes
}

fn tags() -> [Yuv; 6] {
    let tag = |matrix, full_range| Yuv { matrix, full_range, ..Yuv::default() };
    [
        tag(None, false),
        tag(None, true),
        tag(Some(YuvMatrix::Bt601), false),
        tag(Some(YuvMatrix::Bt709), false),
        tag(Some(YuvMatrix::Bt601), true),
        tag(Some(YuvMatrix::Bt709), true),
    ]
}

#[test]
fn from_rgba_every_level_is_within_one_of_exact() {
    for (seed, size) in sizes().into_iter().enumerate() {
        for to in OTHERS {
            let from = Shot::made(Format::Rgba8, size, seed as u64);
            let made = convert(&from, to);
            assert_eq!(
                (made.meta.picture().format, made.meta.picture().size, made.meta.picture().yuv),
                (to, size, Yuv::default())
            );
            check_down(&from, &made);
        }
    }
}

#[test]
fn to_rgba_every_level_is_within_one_of_exact_under_every_tag() {
    for (seed, size) in sizes().into_iter().enumerate() {
        for format in OTHERS {
            for yuv in tags() {
                let mut from = Shot::made(format, size, seed as u64);
                from.meta.picture_mut().yuv = yuv;
                let made = convert(&from, Format::Rgba8);
                assert_eq!((made.meta.picture().format, made.meta.picture().yuv), (Format::Rgba8, Yuv::default()));
                check_up(&from, &made);
            }
        }
    }
}

/// Every luma with every pair of chroma values, in steps.
#[test]
fn every_luma_and_chroma_is_within_one_of_exact() {
    for yuv in tags() {
        let mut from = Shot { meta: Meta::new(Format::I444, size(256, 289)), bytes: Vec::new() };
        from.meta.picture_mut().yuv = yuv;
        from.bytes = (0..256 * 289).map(|at| (at % 256) as u8).collect();
        let step = |nth: usize| (nth * 16).min(255) as u8;
        from.bytes.extend((0..256 * 289).map(|at| step(at / 256 % 17)));
        from.bytes.extend((0..256 * 289).map(|at| step(at / 256 / 17)));
        check_up(&from, &convert(&from, Format::Rgba8));
    }
}

#[test]
fn between_two_others_the_way_leads_through_rgba() {
    for (seed, size) in [size(1, 1), size(7, 5), size(32, 9)].into_iter().enumerate() {
        for from in OTHERS {
            for to in OTHERS {
                let from = Shot::made(from, size, seed as u64);
                let direct = convert(&from, to);
                let expected = if from.meta.picture().format == to {
                    from.clone()
                } else {
                    convert(&convert(&from, Format::Rgba8), to)
                };
                assert_eq!(direct.bare(), expected.bare(), "{} to {to} at {size}", from.meta.picture().format);
            }
        }
    }
}

#[test]
fn tags_stay_where_luma_was_and_is() {
    let mut from = Shot::made(Format::I420, size(6, 6), 1);
    from.meta.picture_mut().yuv = Yuv { matrix: Some(YuvMatrix::Bt709), full_range: true, ..Yuv::default() };
    assert_eq!(convert(&from, Format::Nv12).meta.picture().yuv, from.meta.picture().yuv);
    assert_eq!(convert(&from, Format::Rgb8).meta.picture().yuv, Yuv::default());
}

#[test]
fn grey_stays_grey_and_white_and_black_come_back() {
    let grey =
        |level: u8| Shot { meta: Meta::new(Format::Rgba8, size(4, 4)), bytes: [level, level, level, 9].repeat(16) };
    for to in OTHERS {
        for level in 0..=255 {
            let back = convert(&convert(&grey(level), to), Format::Rgba8);
            let [r, g, b, a] = back.bytes[..4] else { panic!("four bytes") };
            assert!(r == g && g == b && a == 255, "{to} {level}: {r} {g} {b} {a}");
            assert!(r.abs_diff(level) <= 1, "{to} {level}: {r}");
            assert!(r == level || !matches!(level, 0 | 255), "{to}: {level} became {r}");
        }
    }
}

#[test]
fn the_same_format_passes_untouched() {
    for format in Format::RANKED {
        let shot = Shot::made(format, size(5, 3), 4);
        assert_eq!(convert(&shot, format).bytes, shot.bytes);
    }
}

#[test]
fn sizes_may_change_from_frame_to_frame() {
    let shots: Vec<Shot> = [(9, 4), (3, 8), (16, 2)].map(|(w, h)| Shot::made(Format::I420, size(w, h), 3)).to_vec();
    let made = through(&ENTRY, &[("format", "rgba8")], &shots);
    for (from, made) in shots.iter().zip(&made) {
        check_up(from, made);
    }
}
