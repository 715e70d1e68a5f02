//! Markers, waveforms, overlays, mixes and patterns, made from settings and compared with their formulas.
//!
//! The formulas are written again here, from the catalogue's page, and share no code with the kernels.

use crate::easel::{self, Made, Pixel, Request, THIRTY, drawn, refusal, run, size};
use vramp_plan::Size;

const NTSC: (u32, u32) = (30_000, 1001);

/// Frame n of a pattern.
fn pattern(kind: &str, at: Size, rate: (u32, u32), n: usize, more: &[(&str, &str)]) -> Made {
    let (sides, fps, frames) = (at.to_string(), format!("{}/{}", rate.0, rate.1), (n + 1).to_string());
    let mut given = vec![("kind", kind), ("size", &sides), ("fps", &fps), ("frames", &frames)];
    given.extend(more);
    run(&[("pattern", &given)], &[], rate).remove(n)
}

#[track_caller]
fn assert_is(made: &Made, what: &str, formula: impl Fn(i128, i128) -> Pixel) {
    for (x, y, pixel) in made.each() {
        assert_eq!(pixel, formula(x.into(), y.into()), "{what} at {x},{y} of {}", made.size);
    }
}

fn rnd(a: i128, b: i128) -> i128 {
    (2 * a + b).div_euclid(2 * b)
}

#[expect(clippy::many_single_char_names, reason = "the letters of the page's formula")]
fn hsv(hue: i128, s: i128, v: i128) -> Pixel {
    let (i, f) = (hue / 30, hue % 30);
    let (p, q, t) = (rnd(v * (255 - s), 255), rnd(v * (7650 - s * f), 7650), rnd(v * (7650 - s * (30 - f)), 7650));
    let [r, g, b] = [[v, t, p], [q, v, p], [p, v, t], [p, q, v], [t, p, v], [v, p, q]][i as usize];
    [r as u8, g as u8, b as u8, 255]
}

fn centre(side: u32, speed: i128, (num, den): (i128, i128), n: i128) -> i128 {
    let l = i128::from(side) - 80;
    if l <= 0 {
        return i128::from(side) / 2;
    }
    let u = (l * num + speed * n * den) % (4 * l * num);
    40 + u.min(4 * l * num - u) / (2 * num)
}

fn gradient(at: Size, n: i128) -> impl Fn(i128, i128) -> Pixel {
    let (w, h) = (i128::from(at.width), i128::from(at.height));
    move |x, y| [rnd(255 * x, (w - 1).max(1)) as u8, rnd(255 * y, (h - 1).max(1)) as u8, (n % 256) as u8, 255]
}

#[test]
fn every_pattern_is_its_formula_at_any_frame_and_rate() {
    for (at, rate) in [(size(97, 130), THIRTY), (size(201, 64), NTSC), (size(1, 1), (240, 1)), (size(90, 81), (1, 3))] {
        for n in [0, 7, 100_usize] {
            let (r, k) = ((i128::from(rate.0), i128::from(rate.1)), n as i128);
            let (cx, cy) = (centre(at.width, 800, r, k), centre(at.height, 600, r, k));
            let hue = |speed: i128| speed * k * r.1 / r.0 % 180;
            let (back, disc) = (hsv(hue(30), 50, 80), hsv(hue(120), 255, 255));
            let inside = |x: i128, y: i128| (x - cx).pow(2) + (y - cy).pow(2) <= 1600;
            let slopes = gradient(at, k);
            let made =
                |kind: &str| pattern(kind, at, rate, n, &[("label", "false"), ("color", "12345678"), ("seed", "9")]);
            assert_is(&made("ball"), "ball", |x, y| if inside(x, y) { disc } else { back });
            assert_is(&made("disc"), "disc", |x, y| if inside(x, y) { disc } else { slopes(x, y) });
            assert_is(&made("gradient"), "gradient", &slopes);
            assert_is(&made("solid"), "solid", |_, _| [0x12, 0x34, 0x56, 255]);
            assert_is(
                &made("checker"),
                "checker",
                |x, y| {
                    if (x / 32 + y / 32) % 2 == 0 { [255; 4] } else { [0, 0, 0, 255] }
                },
            );
            assert_is(&made("bars"), "bars", |x, _| {
                let bars = ["111", "110", "011", "010", "101", "100", "001", "000"];
                let bits = bars[(8 * x / i128::from(at.width)) as usize].as_bytes();
                [0, 1, 2, 3].map(|c| if c == 3 || bits[c] == b'1' { 255 } else { 0 })
            });
            let pcg = |v: u32| {
                let s = v.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                let t = ((s >> ((s >> 28) + 4)) ^ s).wrapping_mul(277_803_737);
                (t >> 22) ^ t
            };
            let frame = pcg((n as u32).wrapping_add(pcg(9)));
            assert_is(&made("noise"), "noise", |x, y| {
                let [r, g, b, _] = pcg((y as u32 * at.width + x as u32).wrapping_add(frame)).to_le_bytes();
                [r, g, b, 255]
            });
        }
    }
}

#[test]
fn a_pattern_ends_after_its_frames_and_has_its_own_size() {
    let few: Request<'_> = ("pattern", &[("kind", "bars"), ("size", "7x3"), ("frames", "4")]);
    let made = run(&[few], &[], THIRTY);
    assert_eq!(made.len(), 4);
    assert!(made.iter().all(|made| made.size == size(7, 3)));
    let handler = easel::make(few).expect("it can be made");
    assert_eq!(handler.size(size(1000, 2)), size(7, 3));
}

#[test]
fn only_a_ball_has_a_label_and_only_if_it_is_set() {
    let at = size(320, 200);
    let both = |kind: &str, n: usize| {
        let [with, without] = ["true", "false"].map(|label| pattern(kind, at, THIRTY, n, &[("label", label)]));
        (with, without)
    };
    let (with, without) = both("ball", 7);
    let changed: Vec<_> = with.each().filter(|(x, y, pixel)| without.at(*x, *y) != *pixel).collect();
    assert!(!changed.is_empty());
    // "Frame: 7" at 24 px: right of 20, on the baseline 170, capitals 18 px high.
    let (left, right) = changed.iter().fold((u32::MAX, 0), |(l, r), (x, ..)| (l.min(*x), r.max(*x)));
    let (top, bottom) = changed.iter().fold((u32::MAX, 0), |(t, b), (_, y, _)| (t.min(*y), b.max(*y)));
    assert!((20..25).contains(&left) && (115..130).contains(&right), "{left} to {right}");
    assert!((150..154).contains(&top) && (168..171).contains(&bottom), "{top} to {bottom}");
    for kind in ["gradient", "bars", "checker", "noise", "solid", "disc"] {
        let (with, without) = both(kind, 0);
        assert!(with == without, "{kind} has a label");
    }
}

/// A half-transparent gray image with something drawn on it, at one frame.
fn on_gray(at: Size, rate: (u32, u32), n: usize, requested: Request<'_>) -> Made {
    let (sides, frames) = (at.to_string(), (n + 1).to_string());
    let gray: Request<'_> =
        ("pattern", &[("kind", "solid"), ("color", "808080"), ("size", &sides), ("frames", &frames)]);
    let half = ("colormatrix", &[("m", "1,0,0,0,0,0,1,0,0,0,0,0,1,0,0,0,0,0,0,0.50196")][..]);
    run(&[gray, half, requested], &[], rate).remove(n)
}

const GRAY: Pixel = [128; 4];

#[test]
fn markers_are_squares_under_a_border_and_pulse_with_time() {
    for (at, rate, side) in [(size(90, 70), THIRTY, 30), (size(40, 31), NTSC, 12), (size(3, 2), THIRTY, 30)] {
        for (n, pulse) in [(0, true), (7, true), (100, true), (100, false)] {
            let given = [("size", &*side.to_string()), ("pulse", if pulse { "true" } else { "false" })];
            let made = on_gray(at, rate, n, ("markers", &given));
            let t = n as f64 / (f64::from(rate.0) / f64::from(rate.1));
            let p = if pulse { (128.0 + 127.0 * (3.0 * t).sin()).floor() as u8 } else { 128 };
            let (w, h) = (i128::from(at.width), i128::from(at.height));
            assert_is(&made, "markers", |x, y| {
                let far = |side: i128| (x < side || x >= w - side, y < side || y >= h - side);
                match (far(5), far(side)) {
                    ((true, _) | (_, true), _) => [128, 255 - p, p, 255],
                    (_, (true, true)) => [255, p, 0, 255],
                    _ => GRAY,
                }
            });
        }
    }
}

#[test]
fn the_sine_covers_three_rows_around_its_formula_in_each_column() {
    for (at, rate) in [(size(640, 150), THIRTY), (size(333, 121), NTSC), (size(5, 1), THIRTY), (size(1, 90), (7, 3))] {
        for n in [0, 1, 7, 100_usize] {
            let made = on_gray(at, rate, n, ("waveform", &[]));
            let t = n as f64 * f64::from(rate.1) / f64::from(rate.0);
            assert_is(&made, "waveform", |x, y| {
                let row = f64::from(at.height) / 2.0 + 50.0 * ((x as f64 + 100.0 * t) * 0.02).sin();
                let middle = (row + 0.5).floor() as i128;
                if (y - middle).abs() <= 1 { [255, 255, 0, 255] } else { GRAY }
            });
        }
    }
}

/// An image file that is removed when dropped.
struct Picture(std::path::PathBuf);

impl Picture {
    fn of(name: &str, bytes: &[u8]) -> Picture {
        let path = std::env::temp_dir().join(format!("vramp-drawing-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("the folder for temporary files takes one");
        Picture(path)
    }

    fn png(name: &str, width: u32, height: u32, pixel: impl Fn(u32, u32) -> Pixel) -> Picture {
        let picture = Picture::of(name, &[]);
        let image = image::RgbaImage::from_fn(width, height, |x, y| image::Rgba(pixel(x, y)));
        image.save_with_format(&picture.0, image::ImageFormat::Png).expect("a picture can be written");
        picture
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in letters")
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn an_overlay_lies_where_it_is_put_and_covers_by_its_alpha() {
    let logo = |x: u32, y: u32| [(x * 60) as u8, (y * 90) as u8, 200, (x * 50 + y * 30) as u8];
    let file = Picture::png("logo.png", 4, 3, logo);
    let at = size(11, 9);
    for (x, y, left, top) in [(0, 0, 0, 0), (5, 2, 5, 2), (-1, -1, 6, 5), (-3, 1, 4, 1), (9, 8, 9, 8), (-9, -8, -2, -2)]
    {
        for alpha in [1.0, 0.4, 0.0] {
            let (xs, ys, alphas) = (x.to_string(), y.to_string(), alpha.to_string());
            let given = [("path", file.path()), ("x", &xs), ("y", &ys), ("alpha", &alphas)];
            let made = on_gray(at, THIRTY, 0, ("overlay", &given));
            for (px, py, pixel) in made.each() {
                let (dx, dy) = (i64::from(px) - left, i64::from(py) - top);
                let inside = (0..4).contains(&dx) && (0..3).contains(&dy);
                let over = if inside { logo(dx as u32, dy as u32) } else { [0; 4] };
                let (s, b) = (f64::from(over[3]) / 255.0 * alpha, 128.0 / 255.0);
                let o = s + b * (1.0 - s);
                let channel = |c: usize| (f64::from(over[c]) * s + 128.0 * b * (1.0 - s)) / o;
                let expected = [channel(0), channel(1), channel(2), 255.0 * o];
                for (got, expected) in pixel.into_iter().zip(expected) {
                    assert!((f64::from(got) - expected).abs() <= 1.0, "{pixel:?} {expected} at {px},{py} ({x},{y})");
                }
                if s == 0.0 {
                    assert_eq!(pixel, GRAY);
                }
            }
        }
    }
}

#[test]
fn an_overlay_is_turned_as_its_file_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/turned");
    for orientation in 1..=8 {
        let path = folder.join(format!("{orientation}.tif")).display().to_string();
        let golden = std::fs::read(folder.join(format!("{orientation}.rgba"))).expect("it is there");
        let made = on_gray(size(20, 18), THIRTY, 0, ("overlay", &[("path", &path), ("x", "-1"), ("y", "-2")]));
        let (width, height) = if orientation < 5 { (13, 9) } else { (9, 13) };
        let (left, top) = (20 - width - 1, 18 - height - 2);
        for (x, y, pixel) in made.each() {
            let inside = (left..left + width).contains(&x) && (top..top + height).contains(&y);
            let at = || 4 * ((y - top) * width + x - left) as usize;
            let expected = if inside { [golden[at()], golden[at() + 1], golden[at() + 2], 255] } else { GRAY };
            assert_eq!(pixel, expected, "{orientation} at {x},{y}");
        }
    }
}

#[test]
fn a_file_that_is_not_an_image_is_refused_by_name() {
    let overlay = |path: &str| refusal(("overlay", &[("path", path)]));
    let missing = overlay("no-such-logo.png");
    assert!(missing.contains("`no-such-logo.png` cannot be read"), "{missing}");
    let (empty, text) = (Picture::of("empty.png", b""), Picture::of("text.png", b"not a picture at all"));
    let whole = Picture::png("cut.png", 50, 50, |x, y| [x as u8, y as u8, 0, 255]);
    let bytes = std::fs::read(&whole.0).expect("it was written");
    let cut = Picture::of("cut-off.png", &bytes[..bytes.len() / 2]);
    for file in [&empty, &text, &cut] {
        let error = overlay(file.path());
        assert!(error.contains(file.path()) && error.contains("cannot be used as an overlay"), "{error}");
    }
    let folder = overlay(std::env::temp_dir().to_str().expect("a path in letters"));
    assert!(folder.contains("not a file"), "{folder}");
}

#[test]
fn a_picture_that_is_too_large_is_refused_before_it_is_decoded() {
    // A header of 20000x20000 without any pixels after it.
    let file = Picture::png("large.png", 1, 1, |_, _| [0; 4]);
    let mut bytes = std::fs::read(&file.0).expect("it was written");
    bytes[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
    let crc = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    let large = Picture::of("large-header.png", &bytes);
    let error = refusal(("overlay", &[("path", large.path())]));
    for part in [large.path(), "20000x20000", "400000000", "33554432"] {
        assert!(error.contains(part), "{error}");
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[test]
fn every_mode_of_mix_is_its_formula() {
    let at = size(64, 40);
    let a: Request<'_> = ("pattern", &[("kind", "noise"), ("seed", "1"), ("size", "64x40"), ("frames", "1")]);
    let b: Request<'_> = ("pattern", &[("kind", "gradient"), ("size", "64x40"), ("frames", "1")]);
    let (pa, pb) = (run(&[a], &[], THIRTY).remove(0), run(&[b], &[], THIRTY).remove(0));
    for mode in ["mix", "over", "add", "multiply", "screen", "difference"] {
        for amount in [0.0, 0.3, 0.5, 1.0] {
            let requested: Request<'_> = ("mix", &[("mode", mode), ("amount", &amount.to_string())]);
            let made = run(&[a, requested], &[b], THIRTY).remove(0);
            assert_eq!(made.size, at);
            for (x, y, pixel) in made.each() {
                let (a, b) = (pa.at(x, y).map(f64::from), pb.at(x, y).map(f64::from));
                for c in 0..4 {
                    let f = match mode {
                        // Both images are opaque, so `over` is a mix, and the others keep alpha.
                        "mix" | "over" => b[c],
                        _ if c == 3 => a[c],
                        "add" => a[c] + b[c],
                        "multiply" => a[c] * b[c] / 255.0,
                        "screen" => 255.0 - (255.0 - a[c]) * (255.0 - b[c]) / 255.0,
                        _ => (a[c] - b[c]).abs(),
                    };
                    let expected = ((1.0 - amount) * a[c] + amount * f).clamp(0.0, 255.0);
                    let got = f64::from(pixel[c]);
                    assert!((got - expected).abs() <= 1.0, "{mode} {amount}: {got} for {expected} at {x},{y}");
                    assert!(amount > 0.0 || pixel[c] == pa.at(x, y)[c], "amount 0 is the first picture");
                }
            }
        }
    }
}

#[test]
fn the_four_lines_of_fps_stand_where_they_should() {
    let made = drawn(size(320, 160), ("fps", &[]));
    let rows = |from: u32, to: u32| {
        let inked = made.each().filter(|(_, y, pixel)| (from..to).contains(y) && pixel[1] > 0);
        let inked: Vec<_> = inked.collect();
        assert!(inked.iter().all(|(x, ..)| *x >= 20), "everything begins at 20");
        let white = inked.iter().filter(|(.., pixel)| pixel[0] > 0).count();
        (inked.len(), white)
    };
    for (from, to, is_white) in [(10, 42, false), (58, 80, true), (88, 110, true), (118, 140, false)] {
        let (count, white) = rows(from, to);
        assert!(count > 100, "{count} pixels in rows {from} to {to}");
        assert_eq!(white, if is_white { count } else { 0 }, "rows {from} to {to}");
    }
    for (from, to) in [(0, 10), (43, 58), (80, 88), (111, 118), (141, 160)] {
        assert_eq!(rows(from, to).0, 0, "rows {from} to {to} are between lines");
    }
}
