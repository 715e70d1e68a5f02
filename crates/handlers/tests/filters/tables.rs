//! Tables from files, and `chromakey`.

use std::fmt::Write as _;

use super::darkroom::{Picture, Temporary, check, level, refusal};

/// A nonlinear cube as text, red fastest.
pub fn cube_text(along: u32, f: impl Fn([f64; 3]) -> [f64; 3]) -> String {
    let mut text = format!("TITLE \"bent\"\nLUT_3D_SIZE {along}\n");
    for i in 0..along.pow(3) {
        let at = [i % along, i / along % along, i / along / along].map(|v| f64::from(v) / f64::from(along - 1));
        let [r, g, b] = f(at);
        writeln!(text, "{r} {g} {b}").expect("a text takes any text");
    }
    text
}

/// Tetrahedral interpolation, written as the six orders of three fractions.
fn tetrahedral(along: u32, f: impl Fn([f64; 3]) -> [f64; 3], at: [f64; 3]) -> [f64; 3] {
    let last = f64::from(along - 1);
    let low = at.map(|v| (v * last).floor().min(last - 1.0));
    let part: [f64; 3] = std::array::from_fn(|axis| at[axis] * last - low[axis]);
    let corner = |along: &[usize]| {
        f(std::array::from_fn(|axis| (low[axis] + f64::from(u8::from(along.contains(&axis)))) / last))
    };
    // The channels in descending order of their fractions.
    let order = match (part[0] >= part[1], part[1] >= part[2], part[0] >= part[2]) {
        (true, true, _) => [0, 1, 2],
        (true, false, true) => [0, 2, 1],
        (true, false, false) => [2, 0, 1],
        (false, true, true) => [1, 0, 2],
        (false, true, false) => [1, 2, 0],
        (false, false, _) => [2, 1, 0],
    };
    let corners = [0, 1, 2, 3].map(|count| corner(&order[..count]));
    let [most, middle, least] = order.map(|axis| part[axis]);
    let weights = [1.0 - most, most - middle, middle - least, least];
    std::array::from_fn(|channel| weights.iter().zip(&corners).map(|(weight, corner)| weight * corner[channel]).sum())
}

pub fn bent([r, g, b]: [f64; 3]) -> [f64; 3] {
    [r * 0.7 + g * g * 0.5 - 0.1, (g + 0.3 * (7.0 * r).sin()).abs(), 1.2 - b * b + 0.2 * r * g]
}

#[test]
fn a_cube_is_looked_up_in_tetrahedra() {
    for along in [2, 5, 33] {
        let file = Temporary::new(&format!("bent{along}.cube"), cube_text(along, bent));
        check(&format!("lut path={}", file.path()), 1, |p| {
            p.map(|[r, g, b, a]| {
                let [r, g, b] = tetrahedral(along, bent, [r, g, b].map(|v| f64::from(v) / 255.0));
                [level(255.0 * r), level(255.0 * g), level(255.0 * b), a]
            })
        });
    }
}

#[test]
fn a_cube_that_changes_nothing_changes_nothing() {
    for along in [2, 17, 64] {
        let file = Temporary::new(&format!("same{along}.cube"), cube_text(along, |c| c));
        check(&format!("lut path={}", file.path()), 0, Picture::clone);
    }
}

#[test]
fn curves_are_tables_for_all_channels_or_for_each() {
    let one = Temporary::new("one.cube", "LUT_1D_SIZE 3\n0 0 0\n0.25 0.25 0.25\n1 1 1\n");
    let curve = |v: u8| {
        let v = f64::from(v) / 255.0;
        level(255.0 * if v < 0.5 { v * 0.5 } else { 0.25 + (v - 0.5) * 1.5 })
    };
    check(&format!("lut path={}", one.path()), 0, |p| p.map(|[r, g, b, a]| [curve(r), curve(g), curve(b), a]));
    let three = Temporary::new("three.cube", "LUT_1D_SIZE 2\nDOMAIN_MIN 0 0 0.2\nDOMAIN_MAX 1 1 0.6\n0 1 0\n1 0 2\n");
    let blue = |v: u8| level(255.0 * 2.0 * ((f64::from(v) / 255.0 - 0.2) / 0.4).clamp(0.0, 1.0));
    check(&format!("lut path={}", three.path()), 0, |p| p.map(|[r, g, b, a]| [r, 255 - g, blue(b), a]));
}

#[test]
fn a_shaper_in_front_of_a_cube_says_where_colours_lie_in_it() {
    let cube = cube_text(4, bent);
    let entries = cube.split_once("SIZE 4\n").expect("the size is its last keyword").1;
    let text = format!("LUT_1D_SIZE 3\nLUT_3D_SIZE 4\n0 0 0\n0.8 0.5 0.1\n1 1 1\n{entries}");
    let file = Temporary::new("shaped.cube", text);
    let shaped = |v: u8, middle: f64| {
        let v = f64::from(v) / 127.5;
        if v < 1.0 { v * middle } else { middle + (v - 1.0) * (1.0 - middle) }
    };
    check(&format!("lut path={}", file.path()), 1, |p| {
        p.map(|[r, g, b, a]| {
            let [r, g, b] = tetrahedral(4, bent, [shaped(r, 0.8), shaped(g, 0.5), shaped(b, 0.1)]);
            [level(255.0 * r), level(255.0 * g), level(255.0 * b), a]
        })
    });
}

#[test]
fn a_file_that_is_not_a_table_is_refused_with_its_name_and_line() {
    let missing = refusal("lut path=no-such-film.cube");
    assert!(missing.contains("`no-such-film.cube` cannot be read"), "{missing}");
    let folder = refusal(&format!("lut path={}", std::env::temp_dir().display()));
    assert!(folder.contains("is not a file"), "{folder}");
    for (name, text, problem) in [
        ("empty.cube", &b""[..], "line 0: the file ends here"),
        ("short.cube", b"LUT_3D_SIZE 2\n0 0 0\n", "line 2: the file ends here with 1 entries"),
        ("nan.cube", b"# hm\nLUT_1D_SIZE 2\n0 nan 0\n1 1 1\n", "line 3: an entry takes 3 numbers"),
        ("giant.cube", b"LUT_3D_SIZE 4000000000\n", "line 1: LUT_3D_SIZE takes a whole number from 2 to 256"),
        ("binary.cube", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 1: not text"),
    ] {
        let file = Temporary::new(name, text);
        let error = refusal(&format!("lut path={}", file.path()));
        assert!(error.contains(&file.path()) && error.contains(problem), "{error}");
    }
}

#[test]
fn chromakey_takes_alpha_by_the_distance_of_chroma() {
    for (key, similarity, smooth) in [
        ([0, 255, 0], 0.3, 0.1),
        ([0, 255, 0], 0.3, 0.0),
        ([255, 0, 255], 0.0, 1.0),
        ([200, 30, 90], 0.2, 0.0),
        ([200, 30, 90], 0.2, 0.01),
    ] {
        let [r, g, b]: [u8; 3] = key;
        let chroma = |r: u8, g: u8, b: u8| {
            let [r, g, b] = [r, g, b].map(|v| f64::from(v) / 255.0);
            [-0.168_736 * r - 0.331_264 * g + 0.5 * b, 0.5 * r - 0.418_688 * g - 0.081_312 * b]
        };
        let text = format!("chromakey color={r:02x}{g:02x}{b:02x} similarity={similarity} smooth={smooth}");
        check(&text, u8::from(smooth > 0.0), |p| {
            p.map(|pixel| {
                let (here, there) = (chroma(pixel[0], pixel[1], pixel[2]), chroma(r, g, b));
                let d = (here[0] - there[0]).hypot(here[1] - there[1]);
                let hard = f64::from(u8::from(d > similarity));
                let kept = if smooth > 0.0 { ((d - similarity) / smooth).clamp(0.0, 1.0) } else { hard };
                [pixel[0], pixel[1], pixel[2], level(f64::from(pixel[3]) * kept)]
            })
        });
    }
}
