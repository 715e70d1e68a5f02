//! Tables from files, keys, cuts, turns and maps of the plane, made from text and run on the host, against formulas
//! written out once more in doubles.
//!
//! Pictures are random in all four channels, and of several sizes in one stream.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_handlers::{ENTRIES, kinds};
use vramp_plan::catalog::{Fallback, Family, Settings};
use vramp_plan::{Format, Policy, Rate, Size, Space};
use vramp_runtime::{
    Bell, Call, Clock, CountingAllocator, Flow, FrameHandler, Group, HandlerError, HostPool, Lane, Node, PixelHandler,
    Ports, Setup, Stepped, Tally, Worker, Workplace, is_counted, link,
};

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

type Pixel = [u8; 4];

#[derive(Debug, Clone, PartialEq)]
struct Picture {
    size: Size,
    pixels: Vec<Pixel>,
}

impl Picture {
    fn made(width: u32, height: u32, f: impl Fn(u32, u32) -> Pixel) -> Picture {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Picture { size: Size { width, height }, pixels: places.map(|(x, y)| f(x, y)).collect() }
    }

    /// Nothing lies outside.
    fn at(&self, x: f64, y: f64) -> Pixel {
        let (w, h) = (f64::from(self.size.width), f64::from(self.size.height));
        let inside = x >= 0.0 && y >= 0.0 && x < w && y < h;
        if inside { self.pixels[(y * w + x) as usize] } else { [0; 4] }
    }

    fn map(&self, f: impl Fn(Pixel) -> Pixel) -> Picture {
        Picture { size: self.size, pixels: self.pixels.iter().map(|p| f(*p)).collect() }
    }
}

fn random(seed: u32, (width, height): (u32, u32)) -> Picture {
    Picture::made(width, height, |x, y| {
        let v = (y * width + x).wrapping_add(seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(747_796_405);
        let v = ((v >> ((v >> 28) + 4)) ^ v).wrapping_mul(277_803_737);
        let p = ((v >> 22) ^ v).to_le_bytes();
        match v >> 29 {
            0 => [0, p[1], 255, p[3]],
            1 => [p[0]; 4],
            _ => p,
        }
    })
}

const SIZES: [(u32, u32); 7] = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 13), (5, 170), (131, 37)];

fn pictures() -> Vec<Picture> {
    SIZES.iter().zip(1..).map(|(size, seed)| random(seed, *size)).collect()
}

/// A handler from its name and `key=value`, as a graph would make it.
fn try_make(text: &str) -> Result<Box<dyn PixelHandler>, HandlerError> {
    let mut words = text.split(' ');
    let name = words.next().expect("a name");
    let entry = ENTRIES.into_iter().find(|e| e.family == Family::Filter && e.name == name).expect("the filter exists");
    let mut settings = Settings::default();
    for setting in entry.settings {
        if let Fallback::Is(default) = setting.fallback {
            settings.set(setting.name, setting.value.read(default).expect("a default fits"));
        }
    }
    for (key, value) in words.map(|word| word.split_once('=').expect("key=value")) {
        let setting = entry.setting(key).expect("the setting exists");
        settings.set(key, setting.value.read(value).unwrap_or_else(|| panic!("{text}: {value} does not fit")));
    }
    let setup = Setup {
        name,
        settings: &settings,
        inputs: &[None],
        outputs: &[None],
        space: Space::Cpu,
        rate: None,
        handlers: 3,
        declared: None,
        watch: false,
    };
    match kinds().maker(entry).unwrap_or_else(|| panic!("{text} cannot be made"))(&setup)? {
        Worker::Pixels(handler) => Ok(handler),
        Worker::Frames(_) => panic!("{text} works on pixels"),
    }
}

fn refusal(text: &str) -> String {
    try_make(text).err().unwrap_or_else(|| panic!("{text} was made")).to_string()
}

/// These filters as one kernel.
fn group(texts: &[&str]) -> Group {
    let ports = Ports { source: Some(0), sides: vec![], size: Size { width: 3, height: 3 } };
    let make = |text: &&str| try_make(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Group::fuse("group", texts.iter().map(make).collect(), Rate::new(30, 1), ports)
}

/// Gives these pictures, again and again, so many in all.
struct Give {
    pictures: Vec<Picture>,
    frames: u64,
}

impl FrameHandler for Give {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let number = call.now().number;
        if number == self.frames {
            return Ok(Flow::Ended);
        }
        let picture = &self.pictures[number as usize % self.pictures.len()];
        let mut frame = call.lend(Format::Rgba8, picture.size)?;
        frame.fill().expect("just lent").copy_from_slice(picture.pixels.as_flattened());
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Keeps a copy of every picture, where it is to.
struct Take(Option<Arc<Mutex<Vec<Picture>>>>);

impl FrameHandler for Take {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if let Some(kept) = &self.0 {
            let frame = call.input(0).expect("a lead frame");
            let pixels = frame.bytes().as_chunks::<4>().0.to_vec();
            kept.lock().expect("nobody panicked").push(Picture { size: frame.meta().size, pixels });
        }
        Ok(Flow::Produced)
    }
}

fn lane(give: Give, groups: Vec<Group>, take: Take, tally: &Arc<Tally>) -> Lane {
    let bell = Bell::new();
    let clock = Clock::free(Rate::new(30, 1).expect("a rate"));
    let mut nodes = vec![Node::new("give", Box::new(give), 0, 1).clock(clock)];
    nodes.extend(groups.into_iter().map(|group| Node::new("group", Box::new(group), 1, 1)));
    nodes.push(Node::new("sink", Box::new(take), 1, 0));
    for at in 1..nodes.len() {
        let (output, input) = link(Policy::Lossless, 1, &bell, &bell);
        nodes[at - 1].connect_output(0, output);
        nodes[at].connect_input(0, input, Policy::Lossless);
    }
    Lane::new(nodes, bell, Workplace::new(HostPool::new(64 << 20)).counting(Arc::clone(tally)))
}

fn try_run(groups: Vec<Group>, pictures: Vec<Picture>) -> Result<Vec<Picture>, String> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let frames = pictures.len() as u64;
    let mut lane = lane(Give { pictures, frames }, groups, Take(Some(Arc::clone(&kept))), &Arc::default());
    loop {
        match lane.step(&|| Duration::ZERO) {
            Stepped::Moved => {}
            Stepped::Over => break,
            Stepped::Failed(failure) => return Err(failure.to_string()),
            other => panic!("nothing moves: {other:?}"),
        }
    }
    Ok(std::mem::take(&mut *kept.lock().expect("nobody panicked")))
}

/// All sizes as one stream through one group, against a formula.
#[track_caller]
fn check(text: &str, tolerance: u8, formula: impl Fn(&Picture) -> Picture) {
    let made = try_run(vec![group(&[text])], pictures()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(made.len(), SIZES.len());
    for (given, made) in pictures().iter().zip(&made) {
        let wanted = formula(given);
        assert_eq!(made.size, wanted.size, "{text}");
        for (at, (made, wanted)) in made.pixels.iter().zip(&wanted.pixels).enumerate() {
            let near = made.iter().zip(wanted).all(|(a, b)| a.abs_diff(*b) <= tolerance);
            assert!(near, "{text}: {made:?} instead of {wanted:?} at {at} of {}", given.size);
        }
    }
}

fn level(v: f64) -> u8 {
    (v + 0.5).floor().clamp(0.0, 255.0) as u8
}

/// A file in the folder for temporary ones, which is gone at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, text: impl AsRef<[u8]>) -> Temporary {
        let path = std::env::temp_dir().join(format!("vramp-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file can be written");
        Temporary(path)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

// ---- turns and cuts

#[test]
fn rotate_turns_clockwise_and_swaps_sides_in_a_stream_of_many_sizes() {
    let turned = |p: &Picture| {
        let (w, h) = (p.size.width, p.size.height);
        Picture::made(h, w, |x, y| p.pixels[((h - 1 - x) * w + y) as usize])
    };
    check("rotate", 0, turned);
    check("rotate degrees=90", 0, turned);
    check("rotate degrees=180", 0, |p| turned(&turned(p)));
    check("rotate degrees=270", 0, |p| turned(&turned(&turned(p))));
}

#[test]
fn crop_cuts_its_rectangle_and_refuses_a_smaller_frame_with_both_sizes() {
    let large: Vec<Picture> = pictures().into_iter().filter(|p| p.size.width >= 17 && p.size.height >= 13).collect();
    assert!(large.len() > 1);
    for (x, y, w, h) in [(0, 0, 17, 13), (3, 2, 8, 10), (16, 12, 1, 1)] {
        let text = format!("crop x={x} y={y} size={w}x{h}");
        let made = try_run(vec![group(&[&text])], large.clone()).expect("it lies within all of them");
        for (given, made) in large.iter().zip(made) {
            let cut = Picture::made(w, h, |u, v| given.pixels[((y + v) * given.size.width + x + u) as usize]);
            assert_eq!(made, cut, "{text}");
        }
        let small = vec![large[0].clone(), random(1, (2, 40))];
        let error = try_run(vec![group(&[&text])], small).expect_err("the second one is too narrow");
        assert!(error.contains(&format!("{w}x{h} at {x},{y}")) && error.contains("2x40"), "{error}");
    }
}

// ---- maps of the plane

/// Two equations for two unknowns, by Cramer's rule.
fn came_from(m: &[f64; 6], x: u32, y: u32) -> [f64; 2] {
    let (x, y) = (f64::from(x) - m[2], f64::from(y) - m[5]);
    let by = m[0] * m[4] - m[1] * m[3];
    [(x * m[4] - m[1] * y) / by, (m[0] * y - x * m[3]) / by]
}

/// The four pixels around a place, by how near they are.
fn mixed(picture: &Picture, [x, y]: [f64; 2]) -> Pixel {
    let (left, top) = (x.floor(), y.floor());
    let (right, bottom) = (left + 1.0, top + 1.0);
    std::array::from_fn(|channel| {
        let tap = |x: f64, y: f64| f64::from(picture.at(x, y)[channel]);
        let upper = tap(left, top) * (right - x) + tap(right, top) * (x - left);
        let lower = tap(left, bottom) * (right - x) + tap(right, bottom) * (x - left);
        level(upper * (bottom - y) + lower * (y - top))
    })
}

#[test]
fn warp_mixes_four_pixels_where_the_map_came_from() {
    for m in [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 2.0, 0.0, 1.0, -1.0],
        [0.9, -0.2, 4.0, 0.2, 0.9, -2.0],
        [0.3, 0.4, 3.25, -2.0, 1.5, 6.0],
        [-1.0, 0.0, 8.0, 0.0, 40.0, 3.0],
    ] {
        let numbers: Vec<String> = m.iter().map(f64::to_string).collect();
        check(&format!("warp m={}", numbers.join(",")), 1, |picture| {
            Picture::made(picture.size.width, picture.size.height, |x, y| mixed(picture, came_from(&m, x, y)))
        });
    }
    check("warp m=1,0,0,0,1,0", 0, Picture::clone);
}

#[test]
fn a_map_without_a_way_back_is_refused_with_its_numbers() {
    let flat = refusal("warp m=1,2,0,2,4,0");
    assert!(flat.contains("1.0 times 4.0 less 2.0 times 2.0 is 0.0"), "{flat}");
    let endless = refusal("warp m=1e200,0,0,0,1e200,0");
    assert!(endless.contains("is inf"), "{endless}");
}

// ---- keys

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

// ---- tables

/// A bent cube as text, red fastest.
fn cube_text(along: u32, f: impl Fn([f64; 3]) -> [f64; 3]) -> String {
    let mut text = format!("TITLE \"bent\"\nLUT_3D_SIZE {along}\n");
    for i in 0..along.pow(3) {
        let at = [i % along, i / along % along, i / along / along].map(|v| f64::from(v) / f64::from(along - 1));
        let [r, g, b] = f(at);
        writeln!(text, "{r} {g} {b}").expect("a text takes any text");
    }
    text
}

/// Tetrahedra, from the six orders of three fractions written out.
fn tetrahedral(along: u32, f: impl Fn([f64; 3]) -> [f64; 3], at: [f64; 3]) -> [f64; 3] {
    let last = f64::from(along - 1);
    let low = at.map(|v| (v * last).floor().min(last - 1.0));
    let part: [f64; 3] = std::array::from_fn(|axis| at[axis] * last - low[axis]);
    let corner = |along: &[usize]| {
        f(std::array::from_fn(|axis| (low[axis] + f64::from(u8::from(along.contains(&axis)))) / last))
    };
    // Red, green and blue in the order of how far on they are.
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

fn bent([r, g, b]: [f64; 3]) -> [f64; 3] {
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
fn a_file_that_is_no_table_is_refused_with_its_name_and_line() {
    let missing = refusal("lut path=no-such-film.cube");
    assert!(missing.contains("`no-such-film.cube` cannot be read"), "{missing}");
    let folder = refusal(&format!("lut path={}", std::env::temp_dir().display()));
    assert!(folder.contains("is not a file"), "{folder}");
    for (name, text, problem) in [
        ("empty.cube", &b""[..], "line 0: the file ends here"),
        ("short.cube", b"LUT_3D_SIZE 2\n0 0 0\n", "line 2: the file ends here with 1 entries"),
        ("nan.cube", b"# hm\nLUT_1D_SIZE 2\n0 nan 0\n1 1 1\n", "line 3: an entry takes 3 numbers"),
        ("giant.cube", b"LUT_3D_SIZE 4000000000\n", "line 1: LUT_3D_SIZE takes a whole number from 2 to 256"),
        ("binary.cube", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 1: it is not text"),
    ] {
        let file = Temporary::new(name, text);
        let error = refusal(&format!("lut path={}", file.path()));
        assert!(error.contains(&file.path()) && error.contains(problem), "{error}");
    }
}

// ---- in company

#[test]
fn chains_in_one_kernel_equal_the_chains_one_by_one() {
    let bent = Temporary::new("company.cube", cube_text(9, bent));
    let lut = format!("lut path={}", bent.path());
    let chains: [&[&str]; 6] = [
        &["invert", &lut, "gamma value=2"],
        &[&lut, "chromakey smooth=0.2", "rotate degrees=90", "invert"],
        &["chromakey smooth=0", "rotate degrees=270", &lut],
        &["hue degrees=30", "warp m=0.9,-0.3,2,0.2,1.1,-1", "chromakey color=102030"],
        &["invert", &lut, "warp m=0.2,1.5,0,-1,0.3,9", "grayscale"],
        &[&lut, "crop size=1x1", "invert"],
    ];
    for chain in chains {
        let fused = try_run(vec![group(chain)], pictures()).expect("nothing fails");
        let one_by_one = try_run(chain.iter().map(|text| group(&[text])).collect(), pictures()).expect("nothing fails");
        assert!(fused == one_by_one, "{chain:?}");
    }
}

#[test]
fn steady_frames_allocate_nothing() {
    assert!(is_counted(), "this program counts its allocations");
    let bent = Temporary::new("steady.cube", cube_text(5, bent));
    let lut = format!("lut path={}", bent.path());
    let groups: [&[&str]; 6] = [
        &["rotate"],
        &["crop x=3 size=40x40"],
        &["chromakey"],
        &[&lut],
        &["warp m=0.9,-0.2,4,0.2,0.9,-2"],
        &["invert", "warp m=0.9,-0.2,4,0.2,0.9,-2"],
    ];
    for texts in groups {
        let tally = Arc::new(Tally::default());
        let give = Give { pictures: vec![random(5, (64, 48)), random(6, (64, 48))], frames: u64::MAX };
        let mut lane = lane(give, vec![group(texts)], Take(None), &tally);
        let mut step = |times: usize| {
            for _ in 0..times {
                assert!(matches!(lane.step(&|| Duration::ZERO), Stepped::Moved), "{texts:?}");
            }
            tally.own()
        };
        let warm = step(20);
        assert_eq!(step(100), warm, "{texts:?}");
    }
}
