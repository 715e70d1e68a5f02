//! Filters, made from text and run on the host, against formulas written out once more.
//!
//! Pictures are random in all four channels, of one pixel, of odd sides and of several sizes in one stream. A formula is
//! met to the bit where that is promised, and otherwise within one level.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_handlers::{ENTRIES, kinds};
use vramp_plan::catalog::{Entry, Fallback, Family, NoProbe, Settings};
use vramp_plan::{Content, Format, Graph, Planner, Policy, Profile, Rate, Size, Space};
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
    fn at(&self, x: i64, y: i64) -> Pixel {
        let (w, h) = (i64::from(self.size.width), i64::from(self.size.height));
        self.pixels[(y.clamp(0, h - 1) * w + x.clamp(0, w - 1)) as usize]
    }

    fn made(size: Size, f: impl Fn(i64, i64) -> Pixel) -> Picture {
        let (w, h) = (i64::from(size.width), i64::from(size.height));
        Picture { size, pixels: (0..h).flat_map(|y| (0..w).map(move |x| (x, y))).map(|(x, y)| f(x, y)).collect() }
    }

    fn map(&self, f: impl Fn(Pixel) -> Pixel) -> Picture {
        Picture { size: self.size, pixels: self.pixels.iter().map(|p| f(*p)).collect() }
    }
}

fn random(seed: u64, (width, height): (u32, u32)) -> Picture {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    Picture::made(Size { width, height }, |_, _| [0; 4]).map_mut(|p| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *p = ((state >> 32) as u32).to_le_bytes();
        // The ends of the range are where clamping and rounding go wrong.
        match state >> 60 {
            0 => p[0] = 0,
            1 => p[1] = 255,
            2 => *p = [0, 0, 0, p[3]],
            3 => *p = [255, 255, 255, p[3]],
            _ => {}
        }
    })
}

impl Picture {
    fn map_mut(mut self, f: impl FnMut(&mut Pixel)) -> Picture {
        self.pixels.iter_mut().for_each(f);
        self
    }
}

const SIZES: [(u32, u32); 7] = [(1, 1), (1, 7), (9, 1), (2, 2), (17, 13), (5, 70), (131, 37)];

fn entry(name: &str) -> &'static Entry {
    ENTRIES.into_iter().find(|e| e.family == Family::Filter && e.name == name).expect("the filter exists")
}

/// Settings as a graph would check them: `key=value` after the name, defaults filled in.
fn settings(text: &str) -> (&'static Entry, Settings) {
    let mut words = text.split(' ');
    let entry = entry(words.next().expect("a name"));
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
    (entry, settings)
}

fn try_make(text: &str) -> Result<Box<dyn PixelHandler>, HandlerError> {
    let (entry, settings) = settings(text);
    let kinds = kinds();
    let make = kinds.maker(entry).unwrap_or_else(|| panic!("{text} cannot be made"));
    let setup = Setup {
        name: entry.name,
        settings: &settings,
        inputs: &[None],
        outputs: &[None],
        space: Space::Cpu,
        rate: None,
        handlers: 3,
        declared: None,
        watch: false,
    };
    match make(&setup)? {
        Worker::Pixels(handler) => Ok(handler),
        Worker::Frames(_) => panic!("{text} works on pixels"),
    }
}

fn make(text: &str) -> Box<dyn PixelHandler> {
    try_make(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// These filters as one kernel.
fn group(texts: &[&str]) -> Group {
    let ports = Ports { source: Some(0), sides: vec![], size: Size { width: 3, height: 3 } };
    Group::fuse("group", texts.iter().map(|text| make(text)).collect(), Rate::new(30, 1), ports)
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

/// Keeps a copy of every picture.
struct Keep(Arc<Mutex<Vec<Picture>>>);

impl FrameHandler for Keep {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.input(0).expect("a lead frame");
        let pixels = frame.bytes().as_chunks::<4>().0.to_vec();
        self.0.lock().expect("nobody panicked").push(Picture { size: frame.meta().size, pixels });
        Ok(Flow::Produced)
    }
}

/// Looks at nothing.
struct Forget;

impl FrameHandler for Forget {
    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(Flow::Produced)
    }
}

/// A lane that gives, filters and takes.
fn lane(give: Give, groups: Vec<Group>, sink: impl FrameHandler + 'static, tally: &Arc<Tally>) -> Lane {
    let bell = Bell::new();
    let clock = Clock::free(Rate::new(30, 1).expect("a rate"));
    let mut nodes = vec![Node::new("give", Box::new(give), 0, 1).clock(clock)];
    nodes.extend(groups.into_iter().map(|group| Node::new("group", Box::new(group), 1, 1)));
    nodes.push(Node::new("sink", Box::new(sink), 1, 0));
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
    let mut lane = lane(Give { pictures, frames }, groups, Keep(Arc::clone(&kept)), &Arc::default());
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

fn run(texts: &[&str], pictures: Vec<Picture>) -> Vec<Picture> {
    try_run(vec![group(texts)], pictures).unwrap_or_else(|error| panic!("{texts:?}: {error}"))
}

fn differ(one: &Picture, other: &Picture, tolerance: u8) -> Option<String> {
    if one.size != other.size {
        return Some(format!("{} and {}", one.size, other.size));
    }
    let far = |a: &Pixel, b: &Pixel| a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > tolerance);
    let at = one.pixels.iter().zip(&other.pixels).position(|(a, b)| far(a, b))?;
    let (x, y) = (at as u32 % one.size.width, at as u32 / one.size.width);
    Some(format!("{:?} and {:?} at {x},{y} of {}", one.pixels[at], other.pixels[at], one.size))
}

/// All sizes as one stream through one group: sizes change from frame to frame.
fn check(text: &str, tolerance: u8, formula: impl Fn(&Picture) -> Picture) {
    let pictures: Vec<Picture> = SIZES.iter().zip(1..).map(|(size, seed)| random(seed, *size)).collect();
    let made = run(&[text], pictures.clone());
    assert_eq!(made.len(), pictures.len());
    for (given, made) in pictures.iter().zip(&made) {
        if let Some(difference) = differ(made, &formula(given), tolerance) {
            panic!("{text}: made and wanted are {difference}");
        }
    }
}

fn level(v: f64) -> u8 {
    (v + 0.5).floor().clamp(0.0, 255.0) as u8
}

/// A function of one channel on red, green and blue.
fn channels(f: impl Fn(f64) -> f64) -> impl Fn(&Picture) -> Picture {
    move |picture| picture.map(|[r, g, b, a]| [level(f(r.into())), level(f(g.into())), level(f(b.into())), a])
}

/// A function of three channels on red, green and blue.
fn colors(f: impl Fn([f64; 3]) -> [f64; 3]) -> impl Fn(&Picture) -> Picture {
    move |picture| {
        picture.map(|[r, g, b, a]| {
            let [r, g, b] = f([r, g, b].map(f64::from)).map(level);
            [r, g, b, a]
        })
    }
}

fn gray([r, g, b, _]: Pixel) -> u8 {
    ((9798 * u32::from(r) + 19_235 * u32::from(g) + 3735 * u32::from(b) + 16_384) >> 15) as u8
}

#[test]
fn invert_is_255_minus_the_value_and_keeps_alpha() {
    check("invert", 0, |picture| picture.map(|[r, g, b, a]| [255 - r, 255 - g, 255 - b, a]));
}

#[test]
fn brightness_adds_parts_of_full() {
    for amount in [0.0, 0.1, -0.1, 0.039_215_7, 0.5, -0.5, 1.0, -1.0, 8.0, -8.0] {
        check(&format!("brightness amount={amount}"), 0, channels(|v| v + 255.0 * amount));
    }
    check("brightness", 0, Picture::clone);
}

#[test]
fn contrast_multiplies_around_its_pivot() {
    for (amount, pivot) in [(1.2, 0.0), (0.0, 0.0), (0.0, 0.5), (-1.0, 0.5), (100.0, 0.3), (-100.0, 1.0), (0.7, 1.0)] {
        let formula = channels(move |v| (v - 255.0 * pivot) * amount + 255.0 * pivot);
        check(&format!("contrast amount={amount} pivot={pivot}"), 0, formula);
    }
    check("contrast", 0, Picture::clone);
}

#[test]
fn gamma_bends_and_leaves_the_ends() {
    for value in [2.2, 0.45, 0.01, 100.0] {
        check(&format!("gamma value={value}"), 0, channels(|v| 255.0 * (v / 255.0).powf(1.0 / value)));
    }
    check("gamma", 0, Picture::clone);
}

#[test]
fn saturation_moves_away_from_luma() {
    for amount in [0.7, 0.0, 1.0, -1.0, 3.0, 16.0, -16.0] {
        let formula = colors(|[r, g, b]| {
            let luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
            [r, g, b].map(|v| luma + amount * (v - luma))
        });
        check(&format!("saturation amount={amount}"), 1, formula);
    }
    check("saturation", 0, Picture::clone);
}

#[test]
fn hue_turns_the_plane_of_i_and_q() {
    const T: [[f64; 3]; 3] = [[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]];
    /// By Cramer's rule: each unknown is a quotient of determinants.
    fn solve(t: [[f64; 3]; 3], y: [f64; 3]) -> [f64; 3] {
        let det = |m: [[f64; 3]; 3]| {
            m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
        };
        std::array::from_fn(|column| {
            let mut with = t;
            (0..3).for_each(|row| with[row][column] = y[row]);
            det(with) / det(t)
        })
    }
    for degrees in [0.0, 30.0, 120.0, -77.5, 180.0, 3600.0, -3600.0] {
        let formula = colors(move |rgb| {
            let [y, i, q] = T.map(|row| row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2]);
            let (sin, cos) = f64::to_radians(degrees).sin_cos();
            solve(T, [y, i * cos + q * sin, q * cos - i * sin])
        });
        check(&format!("hue degrees={degrees}"), 1, formula);
    }
    check("hue", 0, Picture::clone);
}

#[test]
fn colormatrix_sums_all_four_channels_and_a_constant() {
    let identity = [1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0.];
    let swap = [0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0., 1., 0.];
    let mixed: [f64; 20] = std::array::from_fn(|i| (i * 7 % 11) as f64 / 8.0 - 0.6);
    let huge: [f64; 20] = std::array::from_fn(|i| if i % 5 == 4 { -300.0 } else { 400.0 });
    let zero = [0.0; 20];
    for (m, tolerance) in [(identity, 0), (swap, 0), (mixed, 1), (huge, 1), (zero, 0)] {
        let text = m.map(|f| f.to_string()).join(",");
        check(&format!("colormatrix m={text}"), tolerance, |picture| {
            picture.map(|p| {
                let row = |row: usize| {
                    let m = &m[5 * row..][..5];
                    p.iter().zip(m).map(|(v, f)| f64::from(*v) * f).sum::<f64>() + 255.0 * m[4]
                };
                std::array::from_fn(|channel| level(row(channel)))
            })
        });
    }
}

#[test]
fn a_colormatrix_that_would_overflow_is_refused_with_its_numbers_by_the_graph_and_when_it_is_made() {
    // The sum that just fits and the one that just does not, in the third row.
    for (factor, fits) in [("411.2", true), ("-411.2", true), ("411.3", false), ("-411.3", false), ("1e300", false)] {
        let row = [factor; 5].join(",");
        let text = format!("colormatrix m=0,0,0,0,0,0,0,0,0,0,{row},0,0,0,0,0");
        let (entry, settings) = settings(&text);
        assert_eq!((entry.check)(&settings).is_ok(), fits, "{factor}");
        match try_make(&text) {
            Ok(_) => assert!(fits, "{factor}"),
            Err(error) => {
                let error = error.to_string();
                assert!(!fits && error.contains("row 3 of m is too large"), "{factor}: {error}");
                assert!(error.contains("and may to 2056"), "{error}");
                assert!(factor != "411.3" || error.contains("add up to 2056.5"), "{error}");
            }
        }
    }
}

#[test]
fn grayscale_is_opencvs_to_the_bit() {
    check("grayscale", 0, |picture| picture.map(|p| [gray(p), gray(p), gray(p), p[3]]));
}

#[test]
fn threshold_is_white_where_gray_is_above_the_level() {
    for level in [0.5, 0.0, 1.0, 0.2, 0.999] {
        check(&format!("threshold level={level}"), 0, |picture| {
            picture.map(|p| {
                let v = if f64::from(gray(p)) > 255.0 * level { 255 } else { 0 };
                [v, v, v, p[3]]
            })
        });
    }
}

/// The weights by their definition: outer taps first, what rounding leaves over goes to the next, the centre gets the
/// rest of 256.
fn gaussian(sigma: f64, size: i64) -> Vec<i64> {
    let reach = size / 2;
    let bell = |i: i64| (-((i * i) as f64) / (2.0 * sigma * sigma)).exp();
    let sum: f64 = (-reach..=reach).map(bell).sum();
    let mut weights = vec![0; size as usize];
    let (mut left_over, mut rest) = (0.0, 256);
    for i in 0..reach {
        let g = 256.0 * bell(reach - i) / sum;
        let w = (g + left_over).round_ties_even();
        left_over += g - w;
        weights[i as usize] = w as i64;
        weights[(size - 1 - i) as usize] = w as i64;
        rest -= 2 * w as i64;
    }
    weights[reach as usize] = rest;
    weights
}

#[test]
fn blur_is_the_gaussian_of_its_definition_to_the_bit() {
    for (text, sigma, size) in [
        ("blur", 2.0, 13),
        ("blur sigma=0.8", 0.8, 7),
        ("blur sigma=5", 5.0, 31),
        ("blur sigma=5 size=3", 5.0, 3),
        ("blur sigma=2 size=1", 2.0, 1),
        ("blur sigma=0.01", 0.01, 1),
        ("blur sigma=0.01 size=5", 0.01, 5),
        ("blur sigma=100", 100.0, 601),
        ("blur sigma=3 size=1023", 3.0, 1023),
    ] {
        let weights = gaussian(sigma, size);
        let reach = size / 2;
        check(text, 0, |picture| {
            // Across into exact sums, then down: (sum w_y w_x v + 32768) >> 16.
            let (w, h) = (i64::from(picture.size.width), i64::from(picture.size.height));
            let across: Vec<[i64; 4]> = (0..w * h)
                .map(|at| {
                    std::array::from_fn(|channel| {
                        let value =
                            |i: usize| i64::from(picture.at(at % w + i.cast_signed() as i64 - reach, at / w)[channel]);
                        weights.iter().enumerate().map(|(i, weight)| weight * value(i)).sum()
                    })
                })
                .collect();
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let value = |i: usize| {
                        across[((y + i.cast_signed() as i64 - reach).clamp(0, h - 1) * w + x) as usize][channel]
                    };
                    let sum: i64 = weights.iter().enumerate().map(|(i, weight)| weight * value(i)).sum();
                    ((sum + 32_768) >> 16) as u8
                })
            })
        });
    }
}

/// A weighted sum of a square, with so many levels added.
fn convolved(picture: &Picture, weights: &[f64], bias: f64) -> Picture {
    let reach = i64::from(weights.len().isqrt() as u32 / 2);
    let places: Vec<_> = (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y))).collect();
    Picture::made(picture.size, |x, y| {
        let sum = |channel: usize| {
            let value = |(dx, dy): &(i64, i64)| f64::from(picture.at(x + dx, y + dy)[channel]);
            places.iter().zip(weights).map(|(place, weight)| weight * value(place)).sum::<f64>() + bias
        };
        [level(sum(0)), level(sum(1)), level(sum(2)), picture.at(x, y)[3]]
    })
}

#[test]
fn sharpen_moves_away_from_four_neighbours_and_keeps_alpha() {
    for (amount, tolerance) in
        [(1.0, 0), (0.5, 0), (0.3, 1), (-0.25, 0), (-0.1, 1), (16.0, 0), (15.9, 1), (-16.0, 0), (-1e-9, 0)]
    {
        let weights = [0.0, -amount, 0.0, -amount, 1.0 + 4.0 * amount, -amount, 0.0, -amount, 0.0];
        check(&format!("sharpen amount={amount}"), tolerance, |picture| convolved(picture, &weights, 0.0));
    }
    check("sharpen", 0, |picture| convolved(picture, &[0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0], 0.0));
    check("sharpen amount=0", 0, Picture::clone);
}

#[test]
fn convolve_weighs_divides_and_adds() {
    let emboss = "-2,-1,0,-1,1,1,0,1,2";
    let sobel = "-1,0,1,-2,0,2,-1,0,1";
    let five: Vec<String> = (0..25).map(|i| (i * 7 % 9 - 3).to_string()).collect();
    let seven: Vec<String> = (0..49).map(|i| format!("0.{}", i * 37 % 83)).collect();
    for (kernel, divisor, bias, tolerance) in [
        (emboss, None, 0.0, 0),
        (emboss, Some(4.0), 128.0, 0),
        (emboss, Some(-1.0), 255.0, 0),
        (emboss, Some(3.0), -0.7, 1),
        (sobel, None, 0.0, 0),
        (sobel, None, 65_536.0, 0),
        (sobel, Some(1.1), -65_536.0, 1),
        ("1,1,1,1,1,1,1,1,1", None, 0.0, 1),
        ("0,0,0,0,0,0,0,0,0", None, 77.4, 1),
        ("0.1,0.2,-0.3,0,0,0,0,0,0", None, 0.0, 1),
        ("2056,0,0,0,0,0,0,0,0", Some(1.0), 0.0, 0),
        (&five.join(","), None, 0.0, 1),
        (&seven.join(","), None, 12.25, 1),
        (&seven.join(","), Some(1.0), -2000.0, 1),
    ] {
        let numbers: Vec<f64> = kernel.split(',').map(|weight| weight.parse().expect("a number")).collect();
        let sum: f64 = numbers.iter().sum();
        let by = divisor.unwrap_or(if sum.abs() < 1e-9 { 1.0 } else { sum });
        let weights: Vec<f64> = numbers.iter().map(|weight| weight / by).collect();
        let divided = divisor.map_or_else(String::new, |divisor| format!(" divisor={divisor}"));
        let text = format!("convolve kernel={kernel}{divided} bias={bias}");
        check(&text, tolerance, |picture| convolved(picture, &weights, bias));
    }
}

#[test]
fn a_kernel_that_would_overflow_is_refused_with_its_numbers_by_the_graph_and_when_it_is_made() {
    for (weight, rest, fits) in [
        ("2056", "", true),
        ("-2056", "", true),
        ("2057", "", false),
        ("-4000", " divisor=1.9", false),
        ("-4000", " divisor=-2", true),
        ("1900", " bias=-60000", false),
        ("1e308", " divisor=-1e-9", false),
        ("1e-300", " divisor=1e9", true),
    ] {
        let divisor = if rest.contains("divisor") { "" } else { " divisor=1" };
        let text = format!("convolve kernel=0,0,{weight},0,0,0,0,0,0{divisor}{rest}");
        let (entry, settings) = settings(&text);
        assert_eq!((entry.check)(&settings).is_ok(), fits, "{text}");
        let error = try_make(&text).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.is_empty(), fits, "{text}: {error}");
        assert!(fits || error.contains("too large for 32-bit fixed point"), "{text}: {error}");
        assert!(weight != "2057" || error.contains("add up to 2057, without signs, and may to 2056"), "{error}");
        assert!(weight != "1900" || error.contains("and may to 1820"), "{error}");
    }
    // The sum of these is beyond all numbers, and dividing by it would leave nothing.
    let text = format!("convolve kernel={}", ["1e308"; 9].join(","));
    assert!(try_make(&text).err().expect("it is refused").to_string().contains("too large"));
    let zero = try_make("convolve kernel=1,1,1,1,1,1,1,1,1 divisor=0").err().expect("it is refused").to_string();
    assert!(zero.contains("divides nothing"), "{zero}");
}

#[test]
fn edges_are_half_the_sum_of_both_gradients_of_gray() {
    check("edges", 0, |picture| {
        // Beyond the border as far inside; an axis of one pixel has that pixel only.
        let mirrored = |at: i64, side: u32| {
            let last = i64::from(side) - 1;
            if last == 0 { 0 } else { last - (last - at.abs()).abs() }
        };
        let gray =
            |x, y| i64::from(gray(picture.at(mirrored(x, picture.size.width), mirrored(y, picture.size.height))));
        Picture::made(picture.size, |x, y| {
            let (mut along, mut down) = (0, 0);
            for i in -1..=1 {
                let weight = 2 - i64::abs(i);
                along += weight * (gray(x + 1, y + i) - gray(x - 1, y + i));
                down += weight * (gray(x + i, y + 1) - gray(x + i, y - 1));
            }
            let v = level((along.abs().min(255) + down.abs().min(255)) as f64 / 2.0);
            [v, v, v, picture.at(x, y)[3]]
        })
    });
}

/// The square of this side around a pixel, in one channel.
fn square(picture: &Picture, (x, y): (i64, i64), side: i64, channel: usize) -> Vec<u8> {
    let reach = side / 2;
    let places = (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (x + dx, y + dy)));
    places.map(|(x, y)| picture.at(x, y)[channel]).collect()
}

#[test]
fn boxblur_is_the_mean_of_its_square_to_the_bit() {
    for (text, side) in [("boxblur", 9), ("boxblur size=1", 1), ("boxblur size=3", 3), ("boxblur size=31", 31)] {
        check(text, 0, |picture| {
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let values = square(picture, (x, y), side, channel);
                    level(values.iter().map(|v| f64::from(*v)).sum::<f64>() / (side * side) as f64)
                })
            })
        });
    }
    // Squares that are far greater than any picture: their mean is that of the rows' means.
    for side in [257, 259, 1023] {
        check(&format!("boxblur size={side}"), 0, |picture| {
            let (w, h) = (i64::from(picture.size.width), i64::from(picture.size.height));
            let sums: Vec<[i64; 4]> = (0..w * h)
                .map(|at| {
                    std::array::from_fn(|channel| {
                        let value = |dx: i64| i64::from(picture.at(at % w + dx, at / w)[channel]);
                        (-(side / 2)..=side / 2).map(value).sum()
                    })
                })
                .collect();
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let row = |dy: i64| sums[((y + dy).clamp(0, h - 1) * w + x) as usize][channel];
                    let sum: i64 = (-(side / 2)..=side / 2).map(row).sum();
                    ((2 * sum + side * side) / (2 * side * side)) as u8
                })
            })
        });
    }
}

#[test]
fn median_is_the_middle_value_of_its_square() {
    for (text, side) in [("median", 3), ("median size=3", 3), ("median size=5", 5)] {
        check(text, 0, |picture| {
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let mut values = square(picture, (x, y), side, channel);
                    values.sort_unstable();
                    values[values.len() / 2]
                })
            })
        });
    }
}

#[test]
fn flip_h_swaps_left_and_right_and_v_top_and_bottom() {
    for (text, h, v) in [
        ("flip", true, false),
        ("flip axis=h", true, false),
        ("flip axis=v", false, true),
        ("flip axis=both", true, true),
    ] {
        check(text, 0, |picture| {
            let (last_x, last_y) = (i64::from(picture.size.width) - 1, i64::from(picture.size.height) - 1);
            Picture::made(picture.size, |x, y| {
                picture.at(if h { last_x - x } else { x }, if v { last_y - y } else { y })
            })
        });
    }
}

fn nearest(picture: &Picture, to: Size) -> Picture {
    let from = |at: i64, source: u32, made: u32| at * i64::from(source) / i64::from(made);
    Picture::made(to, |x, y| picture.at(from(x, picture.size.width, to.width), from(y, picture.size.height, to.height)))
}

fn bilinear(picture: &Picture, to: Size) -> Picture {
    let place = |at: i64, source: u32, made: u32| {
        let place = (at as f64 + 0.5) * f64::from(source) / f64::from(made) - 0.5;
        let place = place.clamp(0.0, f64::from(source - 1));
        (place.floor() as i64, place.fract())
    };
    Picture::made(to, |x, y| {
        let ((x, right), (y, down)) =
            (place(x, picture.size.width, to.width), place(y, picture.size.height, to.height));
        std::array::from_fn(|channel| {
            let v = |dx: i64, dy: i64| f64::from(picture.at(x + dx, y + dy)[channel]);
            let along = |dy: i64| v(0, dy) * (1.0 - right) + v(1, dy) * right;
            level(along(0) * (1.0 - down) + along(1) * down)
        })
    })
}

#[test]
fn resize_to_a_size_takes_the_nearest_or_mixes_two_along_each_axis() {
    for (width, height) in [(1, 1), (3, 2), (17, 13), (40, 70), (200, 5)] {
        let to = Size { width, height };
        check(&format!("resize size={to} filter=nearest"), 0, |picture| nearest(picture, to));
        check(&format!("resize size={to}"), 1, |picture| bilinear(picture, to));
    }
}

#[test]
fn resize_by_a_factor_rounds_each_side_half_up_to_at_least_one() {
    for (scale, from, to) in [
        ("0.5", (3, 3), (2, 2)),
        ("0.5", (1, 5), (1, 3)),
        ("0.5", (4, 2), (2, 1)),
        ("1.5", (1, 3), (2, 5)),
        ("0.1", (4, 5), (1, 1)),
        ("0.0001", (640, 480), (1, 1)),
        ("0.25", (6, 9), (2, 2)),
        ("1", (17, 13), (17, 13)),
        ("1000", (65, 1), (65_000, 1000)),
    ] {
        let [from, to] = [from, to].map(|(width, height)| Size { width, height });
        assert_eq!(make(&format!("resize scale={scale}")).size(from), to, "{scale} of {from}");
    }
    for scale in ["0.5", "0.333", "1.7", "2"] {
        let factor: f64 = scale.parse().expect("a number");
        let side = |n: u32| ((f64::from(n) * factor + 0.5).floor() as u32).max(1);
        let to = |size: Size| Size { width: side(size.width), height: side(size.height) };
        check(&format!("resize scale={scale} filter=nearest"), 0, |picture| nearest(picture, to(picture.size)));
        check(&format!("resize scale={scale}"), 1, |picture| bilinear(picture, to(picture.size)));
    }
    check("resize scale=1", 0, Picture::clone);
}

#[test]
fn resize_makes_the_size_that_was_planned() {
    let catalog = vramp_handlers::catalog();
    let profile = Profile::shipped("cpu").expect("it ships");
    for scale in ["0.5", "0.333", "0.1", "0.0005", "1.7", "2.5", "3"] {
        for from in [(1, 1), (3, 5), (101, 33), (639, 479)].map(|(width, height)| Size { width, height }) {
            let text = format!("pattern size={from} ! resize scale={scale} ! null");
            let reading = vramp_plan::read_text(&text, &catalog);
            let graph = Graph::check(&reading.spec, &catalog, &NoProbe).unwrap_or_else(|e| panic!("{e}"));
            let plan = Planner::new(&graph, &profile).decide().unwrap_or_else(|e| panic!("{e}"));
            let to_null = plan.links.iter().find(|link| plan.handlers[link.to.handler].kind == "null");
            let Content::Video(planned) = to_null.expect("it is linked").content else { panic!("{text}: no pictures") };
            assert_eq!(make(&format!("resize scale={scale}")).size(from), planned.size, "{text}");
        }
    }
}

#[test]
fn resize_without_a_size_or_a_factor_is_refused() {
    let error = try_make("resize").err().expect("it is refused").to_string();
    assert!(error.contains("size") && error.contains("scale"), "{error}");
}

#[test]
fn a_factor_that_makes_a_side_too_long_fails_the_frame_with_both_sizes() {
    let pictures = vec![random(1, (70, 1))];
    let error = try_run(vec![group(&["resize scale=1000"])], pictures).expect_err("65,536 is the longest side");
    assert!(error.contains("70x1 into 70000x1000") && error.contains("at most 65536"), "{error}");
}

#[test]
fn a_chain_in_one_kernel_equals_the_chain_one_by_one() {
    let chains: [&[&str]; 11] = [
        &["contrast amount=1.2", "brightness amount=0.0392157", "gamma value=2.2", "saturation amount=0.7", "invert"],
        &["invert", "gamma value=0.5", "resize scale=0.7", "grayscale", "threshold level=0.4"],
        &["brightness amount=0.2", "blur sigma=1.5", "hue degrees=40", "contrast amount=2 pivot=0.5"],
        &["contrast amount=1.4", "resize size=40x9 filter=area", "hue degrees=40"],
        &["invert", "grayscale", "resize scale=0.4 filter=lanczos", "gamma value=1.5", "invert"],
        &["saturation amount=2", "flip axis=both", "invert", "invert"],
        &["gamma value=2", "hue degrees=70", "convolve kernel=1,2,3,4,5,4,3,2,0.1 bias=3", "invert"],
        &["brightness amount=0.1", "saturation amount=2", "edges", "contrast amount=2"],
        &["gamma value=1.8", "invert", "boxblur size=5", "contrast amount=1.5"],
        &["brightness amount=-0.1", "median size=3", "grayscale"],
        &["hue degrees=70", "median size=5", "invert"],
    ];
    let pictures: Vec<Picture> = SIZES.iter().zip(11..).map(|(size, seed)| random(seed, *size)).collect();
    for chain in chains {
        let fused = run(chain, pictures.clone());
        let one_by_one = try_run(chain.iter().map(|text| group(&[text])).collect(), pictures.clone());
        assert!(fused == one_by_one.expect("nothing fails"), "{chain:?}");
    }
}

#[test]
fn steady_frames_allocate_nothing() {
    assert!(is_counted(), "this program counts its allocations");
    for text in [
        "invert",
        "brightness amount=0.1",
        "contrast amount=1.2",
        "gamma value=2.2",
        "saturation amount=0.7",
        "hue degrees=30",
        "grayscale",
        "threshold",
        "colormatrix m=0,0,1,0,0,0,1,0,0,0,1,0,0,0,0,0,0,0,1,0",
        "blur",
        "sharpen amount=0.3",
        "convolve kernel=-2,-1,0,-1,1,1,0,1,2",
        "edges",
        "boxblur",
        "boxblur size=301",
        "median size=3",
        "median size=5",
        "resize scale=0.5",
        "resize size=100x50 filter=nearest",
        "resize size=100x50 filter=area",
        "resize scale=0.3 filter=lanczos",
        "flip axis=v",
    ] {
        let tally = Arc::new(Tally::default());
        let give = Give { pictures: vec![random(5, (64, 48)), random(6, (64, 48))], frames: u64::MAX };
        let mut lane = lane(give, vec![group(&[text])], Forget, &tally);
        let mut step = |times: usize| {
            for _ in 0..times {
                assert!(matches!(lane.step(&|| Duration::ZERO), Stepped::Moved), "{text}");
            }
            tally.own()
        };
        let warm = step(20);
        assert!(warm > 0, "{text}: the first frames need memory");
        assert_eq!(step(100), warm, "{text}");
    }
}
