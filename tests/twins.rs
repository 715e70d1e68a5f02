//! Twins agree: every kernel gives the same bytes on a device as on the CPU, alone and fused, under every set of
//! limits.
//!
//! Runs on whatever adapter there is; a machine without one fails here, a software driver is one package away.

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Device, LimitSet, Player, Recording};
use vramp_kernels::head::resample::{self, axis::Filter};
use vramp_kernels::head::{
    Head, ball, bars, bilinear, blur, boxblur, checker, compositor, convolve, crop, disc, edges, flip, gradient,
    load_here::LOAD, luma, median3, median5, nearest, noise, rotate, solid, warp,
};
use vramp_kernels::pixel::{
    channels, chromakey, color, cube, curve, glyphs, gray, markers, matrix, mix, overlay, table, threshold,
};
use vramp_kernels::{Frame, Params, Picture, Pixel, PixelFn, Recipe, Scratch};
use vramp_plan::catalog::Over;
use vramp_plan::{Binding, Rate, Size};

/// Nothing waits this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A small generator with a seed: the same pictures on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn offset(&mut self, most: u32) -> i32 {
        i32::try_from(self.below(most as usize)).expect("a picture is far smaller")
    }

    fn picture(&mut self, size: Size) -> Vec<Pixel> {
        let opaque = self.below(2) == 0;
        (0..size.pixels())
            .map(|_| {
                let [r, g, b, a, ..] = self.next().to_le_bytes();
                [r, g, b, if opaque { 255 } else { a }]
            })
            .collect()
    }
}

/// A part of a kernel with what it is given for one frame.
struct Given<K: 'static> {
    kernel: &'static K,
    words: Vec<u32>,
    small: Vec<u32>,
    /// Sizes of the pictures that a head reads beside its source.
    pictures: Vec<Size>,
}

fn given<K>(kernel: &'static K, words: &[u32], small: &[u32]) -> Given<K> {
    Given { kernel, words: words.to_vec(), small: small.to_vec(), pictures: Vec::new() }
}

/// Every pixel function, with random settings that fit a frame of this size.
fn functions(random: &mut Random, size: Size) -> Vec<Given<PixelFn>> {
    let amount = |random: &mut Random| random.below(300) as f64 / 100.0 - 1.0;
    let curve_rows: Vec<i32> = (0..size.width).map(|_| random.offset(size.height + 4) - 2).collect();
    let curve_words: Vec<u32> = curve_rows.iter().map(|y| y.cast_unsigned()).collect();
    let logo_size = Size { width: 1 + random.below(9) as u32, height: 1 + random.below(9) as u32 };
    let logo = random.picture(logo_size);
    let place = |random: &mut Random, side: u32| random.offset(side + 12) - 6;
    let modes = [
        mix::Mode::Mix,
        mix::Mode::Over,
        mix::Mode::Add,
        mix::Mode::Multiply,
        mix::Mode::Screen,
        mix::Mode::Difference,
    ];
    let mut all = vec![
        given(&table::TABLE, &table::pack(&color::gamma(0.4 + amount(random).abs())), &[]),
        given(&table::TABLE, &table::pack(&color::contrast(amount(random), 0.5)), &[]),
        given(&matrix::MATRIX, &matrix::pack(&color::saturation(amount(random))).expect("it fits"), &[]),
        given(&matrix::MATRIX, &matrix::pack(&color::hue(random.below(360) as f64)).expect("it fits"), &[]),
        given(&gray::GRAY, &[], &[]),
        given(&threshold::THRESHOLD, &threshold::pack(random.below(100) as f64 / 100.0), &[]),
        given(&markers::MARKERS, &markers::pack(random.below(40) as u32, random.below(256) as u8), &[]),
        given(&curve::CURVE, &curve::pack([255, 255, 0, 255], &curve_rows), &curve_words),
        given(
            &overlay::OVERLAY,
            &overlay::pack(
                place(random, size.width),
                place(random, size.height),
                logo_size,
                random.below(101) as f64 / 100.0,
            ),
            &overlay::small(&logo).collect::<Vec<_>>(),
        ),
    ];
    for mode in modes {
        all.push(given(&mix::MIX, &mix::pack(mode, random.below(101) as f64 / 100.0), &[]));
    }
    for smooth in [0.0, 0.000_1, 0.2, 1.5] {
        let [r, g, b, ..] = random.next().to_le_bytes();
        let similarity = random.below(1000) as f64 / 1500.0;
        all.push(given(&chromakey::CHROMAKEY, &chromakey::pack([r, g, b], similarity, smooth), &[]));
    }
    let tables = [color::gamma(0.4), color::invert(), color::contrast(amount(random), 0.5)];
    all.push(given(&channels::CHANNELS, &channels::pack(&tables), &[]));
    for most in [1.0, 16.0] {
        let along = 2 + random.below(5) as u32;
        let mut value = || (random.below(2001) as f64 / 1000.0 - 1.0) * most;
        let entries: Vec<[f32; 3]> = (0..along.pow(3)).map(|_| [0; 3].map(|_| value() as f32)).collect();
        let places = [0.9, 1.0, 1.3].map(|by| std::array::from_fn(|v| v as f64 / 255.0 * by));
        let mut packed = cube::pack(along, &entries, &places).expect("small and whole");
        all.push(given(&cube::CUBE, &packed.words, &packed.small));
        // As a cube is that would be larger than the table of all colours.
        packed.small.truncate(768);
        packed.small.extend((0..along.pow(3)).map(|_| random.below(1 << 24) as u32));
        all.push(given(&cube::CUBE, &[along, 0, 1], &packed.small));
    }
    let atlas: Vec<u8> = (0..64).map(|_| random.below(256) as u8).collect();
    let placed: Vec<glyphs::Glyph> = (0..=random.below(5))
        .map(|_| glyphs::Glyph {
            x: place(random, size.width),
            y: place(random, size.height),
            width: 1 + random.below(8) as u16,
            height: 1 + random.below(8) as u16,
            at: 0,
        })
        .collect();
    let mut small = Vec::new();
    let words = glyphs::pack([10, 200, 30, 200], &atlas, &[&placed[..]], size, &mut small).expect("it fits");
    all.push(given(&glyphs::GLYPHS, &words, &small));
    all
}

/// Random weights of a square, some of them 0: fractions, or whole numbers whose sums are short or long.
fn convolution(random: &mut Random) -> Given<Head> {
    let side = 3 + 2 * random.below(3);
    let (most, of) = ([3, 300, 5000][random.below(3)], [1.0, 7.0, 16.0][random.below(3)]);
    let mut weight =
        || if random.below(4) == 0 { 0.0 } else { f64::from(random.offset(2 * most) - random.offset(most)) };
    let weights: Vec<f64> = (0..side * side).map(|_| weight()).collect();
    let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
    let divisor = of * (sum / 1000.0).max(1.0);
    let weights: Vec<f64> = weights.iter().map(|weight| weight / divisor).collect();
    let bias = f64::from(random.offset(600) - 300) / [1.0, 8.0, 9.0][random.below(3)];
    let fixed = convolve::fixed(&weights, bias).expect("they add up to 1000");
    given(&convolve::CONVOLVE, &convolve::pack(&fixed), &convolve::small(&fixed))
}

/// Several pictures in one, so many at most.
fn composed(random: &mut Random, source: Size, to: Size, most: usize) -> Given<Head> {
    let layouts =
        [compositor::Layout::Grid, compositor::Layout::Row, compositor::Layout::Column, compositor::Layout::Pip];
    let pictures: Vec<Size> = (0..random.below(most)).map(|_| size(random)).collect();
    let cells = compositor::cells(layouts[random.below(4)], 1 + pictures.len(), to);
    let small = compositor::small(&cells, &[&[source][..], &pictures].concat(), to);
    Given { pictures, ..given(&compositor::COMPOSITOR, &compositor::pack(&cells), &small) }
}

/// Every head, with random settings, and the size of what it makes from a source of this size.
fn heads(random: &mut Random, source: Size, most_pictures: usize) -> Vec<(Given<Head>, Size)> {
    let n = random.next();
    let rate = Rate::new(30_000, 1001).expect("a rate");
    let to = Size { width: 1 + random.below(70) as u32, height: 1 + random.below(50) as u32 };
    let sigma = 0.3 + random.below(40) as f64 / 10.0;
    let weights = blur::weights(sigma, blur::size_of(sigma)).expect("an odd size");
    let side = [1, 3, 5, 9, 31, 257, 259, 1023][random.below(8)];
    let (x, y) = (random.below(source.width as usize) as u32, random.below(source.height as usize) as u32);
    let cut = Size { width: source.width - x, height: source.height - y };
    let turned = Size { width: source.height, height: source.width };
    let mut factor = |least: f64| least + random.below(2000) as f64 / 1000.0;
    let map = [factor(0.1), factor(-1.0), factor(-5.0), factor(-1.0), factor(-2.0), factor(3.0)];
    let back = warp::inverse(&map).expect("it can be turned round");
    let resampled = |filter, to| {
        let (words, small) = resample::pack(filter, source, to);
        given(&resample::RESAMPLE, &words, &small)
    };
    let half = Size { width: source.width.div_ceil(2), height: source.height.div_ceil(2) };
    vec![
        (given(&crop::CROP, &crop::pack(x, y), &[]), cut),
        (given(&rotate::ROTATE, &rotate::pack(1), &[]), turned),
        (given(&rotate::ROTATE, &rotate::pack(2), &[]), source),
        (given(&rotate::ROTATE, &rotate::pack(3), &[]), turned),
        (given(&warp::WARP, &warp::pack(), &warp::small(&back, source, source)), source),
        (given(&LOAD, &[], &[]), source),
        (given(&flip::FLIP, &flip::pack(random.below(2) == 0, random.below(2) == 0), &[]), source),
        (given(&nearest::NEAREST, &nearest::pack(), &nearest::small(source, to)), to),
        (given(&bilinear::BILINEAR, &bilinear::pack(), &bilinear::small(source, to)), to),
        (composed(random, source, to, most_pictures), to),
        (given(&blur::BLUR, &blur::pack(&weights), &blur::small(&weights)), source),
        (convolution(random), source),
        (convolution(random), source),
        (given(&edges::EDGES, &[], &[]), source),
        (given(&boxblur::BOXBLUR, &boxblur::pack(side, source).expect("an odd side"), &[]), source),
        (given(&median3::MEDIAN3, &median3::pack(), &[]), source),
        (given(&median5::MEDIAN5, &median5::pack(), &[]), source),
        (given(&luma::LUMA, &luma::pack(), &[]), source),
        (resampled(Filter::Area, to), to),
        (resampled(Filter::Area, half), half),
        (resampled(Filter::Lanczos, to), to),
        (given(&solid::SOLID, &solid::pack([1, 2, 3, 255]), &[]), to),
        (given(&gradient::GRADIENT, &gradient::pack(n), &[]), to),
        (given(&bars::BARS, &bars::pack(), &[]), to),
        (given(&checker::CHECKER, &checker::pack(), &[]), to),
        (given(&noise::NOISE, &noise::pack(n, random.next() as u32), &[]), to),
        (given(&ball::BALL, &ball::pack(to, rate, n % 10_000), &[]), to),
        (given(&disc::DISC, &disc::pack(to, rate, n % 10_000), &[]), to),
    ]
}

/// A kernel with everything it is given for one frame.
struct Case {
    recipe: Recipe,
    params: Params,
    size: Size,
    source_size: Size,
    source: Option<Vec<Pixel>>,
    sides: Vec<(Size, Vec<Pixel>)>,
}

fn case(
    random: &mut Random,
    head: &Given<Head>,
    (source_size, size): (Size, Size),
    before: &[&Given<PixelFn>],
    after: &[&Given<PixelFn>],
) -> Case {
    let mut recipe = Recipe::of_several(head.kernel, head.pictures.len());
    recipe.before.extend(before.iter().map(|f| f.kernel.into()));
    recipe.after.extend(after.iter().map(|f| f.kernel.into()));
    let layout = recipe.layout();
    let mut params = Params::new();
    params.begin(&layout, size, source_size, 7);
    params.set(layout.head, &head.words, &head.small);
    for (f, part) in before.iter().zip(&layout.before).chain(after.iter().zip(&layout.after)) {
        params.set(*part, &f.words, &f.small);
    }
    let mut sides: Vec<_> = head.pictures.iter().map(|size| (*size, random.picture(*size))).collect();
    for (f, at) in before.iter().map(|f| (f, source_size)).chain(after.iter().map(|f| (f, size))) {
        if f.kernel.side {
            sides.push((at, random.picture(at)));
        }
    }
    let source = head.kernel.source.then(|| random.picture(source_size));
    Case { recipe, params, size, source_size, source, sides }
}

fn on_cpu(case: &Case) -> Vec<Pixel> {
    let sides: Vec<Picture<'_>> =
        case.sides.iter().map(|(size, pixels)| Picture::new(*size, pixels).expect("it fits")).collect();
    let frame = Frame {
        size: case.size,
        source: case.source.as_deref().map(|p| Picture::new(case.source_size, p).expect("it fits")),
        sides: &sides,
        small: case.params.small(),
        words: case.params.words(),
    };
    let mut pixels = vec![[9; 4]; case.size.pixels() as usize];
    let (program, mut scratch) = (case.recipe.program(), Scratch::default());
    program.survey(&frame, 0..case.source_size.height, &mut scratch);
    program.conclude(&frame, std::slice::from_mut(&mut scratch), 1);
    program.band(&frame, 0, &mut pixels, &mut scratch);
    pixels
}

struct Rig {
    device: Device,
    player: Player,
    owner: Arc<str>,
}

impl Rig {
    fn open(limits: LimitSet) -> Rig {
        let device = Device::choose().limits(limits).open().unwrap_or_else(|e| panic!("needs an adapter: {e}"));
        let player = Player::on(&device).build().expect("a player on a fresh device");
        Rig { device, player, owner: "twins".into() }
    }

    fn run(&mut self, case: &Case) -> Vec<Pixel> {
        let mut recording = Recording::new();
        let lend = |bytes: u64| self.device.lend(bytes.max(16), &self.owner).expect("memory for a small picture");
        let bytes_of = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let mut filled = |bytes: Vec<u8>| {
            let buffer = lend(bytes.len() as u64);
            let mut padded = bytes;
            padded.resize(padded.len().next_multiple_of(4), 0);
            recording.upload(&buffer, padded).expect("it fits");
            buffer
        };
        let source = case.source.as_ref().map(|p| filled(p.as_flattened().to_vec()));
        let sides: Vec<_> = case.sides.iter().map(|(_, p)| filled(p.as_flattened().to_vec())).collect();
        let small = filled(bytes_of(if case.params.small().is_empty() { &[0] } else { case.params.small() }));
        let output = lend(case.size.pixels() * 4);
        let over = case.recipe.head.first.map(|first| first.over.size(case.source_size, case.size));
        let kept = lend(over.map_or(16, |over| over.pixels() * Over::ELEMENT_BYTES));
        let shaders = case.recipe.shaders("twin");
        let in_front = case.recipe.before.iter().filter(|f| f.side()).count();
        for (pass, shader) in shaders.iter().enumerate() {
            let kernel = self.device.prepare(shader).unwrap_or_else(|e| panic!("{e}\n{}", shader.wgsl));
            let (first, second) = (over.filter(|_| pass == 0), over.filter(|_| pass == 1));
            let again = case.recipe.head.first.is_some_and(|first| first.source_again);
            let reads_source = second.is_none() || again;
            let mut reads = Vec::new();
            reads.extend(source.as_ref().filter(|_| reads_source));
            reads.extend(second.map(|_| &kept));
            // Each pass binds the pictures of its own functions: those in front first, those behind last.
            let from = if reads_source { 0 } else { in_front };
            reads.extend(&sides[from..if first.is_some() { in_front } else { sides.len() }]);
            let wanted = shader.bindings.iter().filter(|b| **b == Binding::Read).count();
            if reads.len() < wanted {
                reads.push(&small);
            }
            assert_eq!(reads.len(), wanted);
            reads.push(if first.is_some() { &kept } else { &output });
            let grid = kernel.cover(first.unwrap_or(case.size).pixels(), self.device.limits());
            recording.dispatch(&kernel, &reads, &bytes_of(case.params.words()), grid).expect("it is described right");
        }
        recording.download(&output).expect("it is there");
        self.player.play(&mut recording).expect("the device plays it");
        let arrived = self.player.readbacks().wait(PATIENCE).expect("the device lives").expect("it was asked for");
        let wanted = case.size.pixels() as usize * 4;
        arrived.bytes(0)[..wanted].as_chunks::<4>().0.to_vec()
    }

    fn compare(&mut self, case: &Case, what: &str) {
        let (cpu, gpu) = (on_cpu(case), self.run(case));
        if let Some(at) = (0..cpu.len()).find(|i| cpu[*i] != gpu[*i]) {
            let (x, y) = (at as u32 % case.size.width, at as u32 / case.size.width);
            panic!("{what} at {x},{y} of {}: cpu {:?}, device {:?}", case.size, cpu[at], gpu[at]);
        }
    }
}

const SIZES: [(u32, u32); 6] = [(1, 1), (1, 7), (9, 1), (17, 13), (64, 48), (5, 70)];

fn size(random: &mut Random) -> Size {
    let (width, height) = SIZES[random.below(SIZES.len())];
    Size { width, height }
}

#[test]
fn every_pixel_function_agrees_with_its_twin() {
    let (mut rig, mut random) = (Rig::open(LimitSet::Adapter), Random(1));
    let load = given(&LOAD, &[], &[]);
    for (width, height) in SIZES {
        let size = Size { width, height };
        for function in functions(&mut random, size) {
            let case = case(&mut random, &load, (size, size), &[], &[&function]);
            rig.compare(&case, function.kernel.name);
        }
    }
}

#[test]
fn every_head_agrees_with_its_twin() {
    let (mut rig, mut random) = (Rig::open(LimitSet::Adapter), Random(2));
    for (width, height) in SIZES {
        let source = Size { width, height };
        for (head, to) in heads(&mut random, source, compositor::MOST_PICTURES) {
            let case = case(&mut random, &head, (source, to), &[], &[]);
            rig.compare(&case, head.kernel.name);
        }
    }
}

#[test]
fn every_side_of_a_boxblur_agrees_with_its_twin_on_every_width() {
    let (mut rig, mut random) = (Rig::open(LimitSet::Adapter), Random(6));
    // Sums along a row of more than 257 pixels are told by two columns: even ones, odd ones, the last of an odd number.
    for (width, height) in [(1, 1), (1, 5), (5, 1), (2, 3), (3, 2), (4, 4), (37, 6), (300, 3)] {
        let source = Size { width, height };
        for side in [1, 3, 9, 255, 257, 259, 261, 511, 1021, 1023] {
            let head = given(&boxblur::BOXBLUR, &boxblur::pack(side, source).expect("an odd side"), &[]);
            let mut case = case(&mut random, &head, (source, source), &[], &[]);
            rig.compare(&case, &format!("boxblur {side}"));
            // The greatest sums there are, and the greatest differences between neighbours.
            let steep = |i: usize| [255, if i.is_multiple_of(2) { 255 } else { 0 }, if i < 2 { 255 } else { 0 }, 0];
            case.source = Some((0..source.pixels() as usize).map(steep).collect());
            rig.compare(&case, &format!("steep boxblur {side}"));
        }
    }
}

#[test]
fn thousands_of_taps_and_rows_agree_with_their_twins() {
    let (mut rig, mut random) = (Rig::open(LimitSet::Adapter), Random(6));
    // Of 65,536 taps every one has a weight; drivers that end long loops would leave some out.
    for (from, to) in [((65_536, 2), (3, 1)), ((2, 65_536), (5, 1)), ((3000, 2000), (2, 3))] {
        let [source, size] = [from, to].map(|(width, height)| Size { width, height });
        let luma = given(&luma::LUMA, &luma::pack(), &[]);
        let of_luma = case(&mut random, &luma, (source, source), &[], &[]);
        rig.compare(&of_luma, "many rows");
        for filter in [Filter::Area, Filter::Lanczos] {
            let (words, small) = resample::pack(filter, source, size);
            let head = given(&resample::RESAMPLE, &words, &small);
            let case = case(&mut random, &head, (source, size), &[], &[]);
            rig.compare(&case, "many taps");
        }
    }
}

/// Random kernels: functions in front of a gather or stencil, functions behind anything.
fn random_kernels(limits: LimitSet, seed: u64, count: usize, most_pictures: usize) {
    let (mut rig, mut random) = (Rig::open(limits), Random(seed));
    let mut made = 0;
    while made < count {
        let source = size(&mut random);
        let mut heads = heads(&mut random, source, 1 + most_pictures);
        let (head, to) = heads.swap_remove(random.below(heads.len()));
        let (front, behind) = (functions(&mut random, source), functions(&mut random, to));
        let pick = |random: &mut Random, from: &[Given<PixelFn>], most: usize| -> Vec<usize> {
            (0..random.below(most + 1)).map(|_| random.below(from.len())).collect()
        };
        let in_front = if head.kernel.source { pick(&mut random, &front, 2) } else { Vec::new() };
        let before: Vec<_> = in_front.iter().map(|i| &front[*i]).collect();
        let after: Vec<_> = pick(&mut random, &behind, 4).iter().map(|i| &behind[*i]).collect();
        // A second pass that reads the source again binds one more.
        let again = usize::from(head.kernel.first.is_some_and(|first| first.source_again));
        let sides = before.iter().chain(&after).filter(|f| f.kernel.side).count();
        if again + head.pictures.len() + sides > most_pictures {
            continue;
        }
        let names: Vec<_> = before.iter().map(|f| f.kernel.name).chain([head.kernel.name]).collect();
        let names = [names, after.iter().map(|f| f.kernel.name).collect()].concat().join(" + ");
        let case = case(&mut random, &head, (source, to), &before, &after);
        rig.compare(&case, &names);
        made += 1;
    }
}

#[test]
fn random_fused_kernels_agree_under_the_adapters_own_limits() {
    random_kernels(LimitSet::Adapter, 3, 60, 3);
}

#[test]
fn random_fused_kernels_agree_under_webgpus_default_limits() {
    random_kernels(LimitSet::WebGpu, 4, 30, 3);
}

#[test]
fn random_fused_kernels_agree_under_downlevel_limits() {
    // Four storage buffers: source, output, small data and one picture more.
    random_kernels(LimitSet::Downlevel, 5, 30, 1);
}
