//! Filters made from text, fused, and run on the CPU over images of many sizes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_handlers::registry;
use vramp_plan::catalog::{Entry, Fallback, Family, SettingValues};
use vramp_plan::{Format, Policy, Rate, Size};
use vramp_runtime::internals::{FusedPorts, FusedUnit, HeapTally, Lane, LaneContext, Node, WakeSignal, link};
use vramp_runtime::{Call, Clock, Flow, FrameHandler, FramePool, HandlerError, PixelHandler, Stepped, Worker};

use crate::setup::setup;

pub type Pixel = [u8; 4];

#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub size: Size,
    pub pixels: Vec<Pixel>,
}

impl Picture {
    pub fn made(size: Size, f: impl Fn(i64, i64) -> Pixel) -> Picture {
        let (w, h) = (i64::from(size.width), i64::from(size.height));
        Picture { size, pixels: (0..h).flat_map(|y| (0..w).map(move |x| (x, y))).map(|(x, y)| f(x, y)).collect() }
    }

    pub fn map(&self, f: impl Fn(Pixel) -> Pixel) -> Picture {
        Picture { size: self.size, pixels: self.pixels.iter().map(|p| f(*p)).collect() }
    }

    /// A pixel; beyond the border the nearest one.
    pub fn at(&self, x: i64, y: i64) -> Pixel {
        let (w, h) = (i64::from(self.size.width), i64::from(self.size.height));
        self.pixels[(y.clamp(0, h - 1) * w + x.clamp(0, w - 1)) as usize]
    }

    /// A pixel; transparent black beyond the border.
    pub fn inside(&self, x: i64, y: i64) -> Pixel {
        let within = (0..i64::from(self.size.width)).contains(&x) && (0..i64::from(self.size.height)).contains(&y);
        if within { self.at(x, y) } else { [0; 4] }
    }
}

pub fn random(seed: u64, (width, height): (u32, u32)) -> Picture {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let p = ((state >> 32) as u32).to_le_bytes();
        // Clamping and rounding fail at the ends of the range, and colour filters at grays.
        match state >> 60 {
            0 => [0, p[1], p[2], p[3]],
            1 => [p[0], 255, p[2], p[3]],
            2 => [0, 0, 0, p[3]],
            3 => [255, 255, 255, p[3]],
            4 => [p[0]; 4],
            _ => p,
        }
    };
    let pixels = (0..width * height).map(|_| next()).collect();
    Picture { size: Size { width, height }, pixels }
}

const SIZES: [(u32, u32); 7] = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 13), (5, 170), (131, 37)];

/// An image of every size.
pub fn pictures() -> Vec<Picture> {
    SIZES.iter().zip(1..).map(|(size, seed)| random(seed, *size)).collect()
}

/// Settings as a graph would check them: `key=value` after the name, with defaults.
pub fn settings(text: &str) -> (&'static Entry, SettingValues) {
    let mut words = text.split(' ');
    let name = words.next().expect("a name");
    let entry = registry()
        .catalog()
        .entries()
        .find(|e| e.family == Family::Filter && e.name == name)
        .expect("the filter exists");
    let mut settings = SettingValues::default();
    for setting in entry.settings {
        if let Fallback::Is(default) = setting.fallback {
            settings.set(setting.name, setting.value.read(default).expect("a default fits"));
        }
    }
    for (key, value) in words.map(|word| word.split_once('=').expect("key=value")) {
        let setting = entry.setting(key).expect("the setting exists");
        settings.set(key, setting.value.read(value).unwrap_or_else(|| panic!("{text}: {value} does not fit")));
    }
    (entry, settings)
}

pub fn try_make(text: &str) -> Result<Box<dyn PixelHandler>, HandlerError> {
    let (entry, settings) = settings(text);
    let registry = registry();
    let make = registry.maker(entry).unwrap_or_else(|| panic!("{text} cannot be made"));
    let setup = setup(entry.name, &settings);
    match make(&setup)? {
        Worker::Pixels(handler) => Ok(handler),
        Worker::Frames(_) => panic!("{text} works on pixels"),
    }
}

pub fn make(text: &str) -> Box<dyn PixelHandler> {
    try_make(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn refusal(text: &str) -> String {
    try_make(text).err().unwrap_or_else(|| panic!("{text} was made")).to_string()
}

/// These filters as one kernel.
pub fn group(texts: &[&str]) -> FusedUnit {
    let ports = FusedPorts {
        source: Some(0),
        extra_inputs: vec![],
        data_inputs: vec![],
        size: Size { width: 3, height: 3 },
        small_bytes: 0,
    };
    FusedUnit::fuse("group", texts.iter().map(|text| make(text)).collect(), Rate::new(30, 1), ports)
}

/// Sends these images repeatedly, up to a count.
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

/// Keeps a copy of every image if there is a list.
struct Take(Option<Arc<Mutex<Vec<Picture>>>>);

impl FrameHandler for Take {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if let Some(kept) = &self.0 {
            let frame = call.input(0).expect("a lead frame");
            let pixels = frame.bytes().as_chunks::<4>().0.to_vec();
            kept.lock().expect("no thread panicked").push(Picture { size: frame.meta().picture().size, pixels });
        }
        Ok(Flow::Produced)
    }
}

/// A lane of a source, filters and a sink.
fn lane(give: Give, groups: Vec<FusedUnit>, take: Take, tally: &Arc<HeapTally>) -> Lane {
    let signal = WakeSignal::new();
    let clock = Clock::free(Rate::new(30, 1).expect("a rate"));
    let mut nodes = vec![Node::new("give", Box::new(give), 0, 1).clock(clock)];
    nodes.extend(groups.into_iter().map(|group| Node::new("group", Box::new(group), 1, 1)));
    nodes.push(Node::new("take", Box::new(take), 1, 0));
    for at in 1..nodes.len() {
        let (output, input) = link(Policy::Lossless, 1, &signal, &signal);
        nodes[at - 1].connect_output(0, output);
        nodes[at].connect_input(0, input, Policy::Lossless);
    }
    Lane::new(nodes, signal, LaneContext::new(FramePool::new(64 << 20)).counting(Arc::clone(tally)))
}

pub fn try_run(groups: Vec<FusedUnit>, pictures: Vec<Picture>) -> Result<Vec<Picture>, String> {
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
    Ok(std::mem::take(&mut *kept.lock().expect("no thread panicked")))
}

/// Allocations of a stream that alternates two images: in its first frames, and in the next hundred.
pub fn allocations(texts: &[&str]) -> (u64, u64) {
    let tally = Arc::new(HeapTally::default());
    let give = Give { pictures: vec![random(5, (64, 48)), random(6, (64, 48))], frames: u64::MAX };
    let mut lane = lane(give, vec![group(texts)], Take(None), &tally);
    let mut step = |times: usize| {
        for _ in 0..times {
            assert!(matches!(lane.step(&|| Duration::ZERO), Stepped::Moved), "{texts:?}");
        }
        tally.own()
    };
    let warm = step(20);
    (warm, step(100) - warm)
}

/// Compares a group with a formula, over all sizes in one stream: sizes change from frame to frame.
#[track_caller]
pub fn check(text: &str, tolerance: u8, formula: impl Fn(&Picture) -> Picture) {
    let made = try_run(vec![group(&[text])], pictures()).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(made.len(), SIZES.len());
    for (given, made) in pictures().iter().zip(&made) {
        let wanted = formula(given);
        assert_eq!(made.size, wanted.size, "{text}");
        for ((made, wanted), at) in made.pixels.iter().zip(&wanted.pixels).zip(0..) {
            let near = made.iter().zip(wanted).all(|(a, b)| a.abs_diff(*b) <= tolerance);
            let (x, y) = (at % given.size.width, at / given.size.width);
            assert!(near, "{text}: {made:?} instead of {wanted:?} at {x},{y} of {}", given.size);
        }
    }
}

pub fn level(v: f64) -> u8 {
    (v + 0.5).floor().clamp(0.0, 255.0) as u8
}

pub fn gray([r, g, b, _]: Pixel) -> u8 {
    ((9798 * u32::from(r) + 19_235 * u32::from(g) + 3735 * u32::from(b) + 16_384) >> 15) as u8
}

/// A temporary file that is removed when dropped.
pub struct Temporary(PathBuf);

impl Temporary {
    pub fn new(name: &str, text: impl AsRef<[u8]>) -> Temporary {
        let path = std::env::temp_dir().join(format!("vramp-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file can be written");
        Temporary(path)
    }

    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
