//! Every kernel gives the same bytes on the GPU as on the CPU, alone and fused, under every set of limits.
//!
//! The kernels come from `pixel::ALL` and `head::ALL`. Each kernel has samples of its settings.
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Device, LimitSet, Player, Recording};
use vramp_kernels::head::resample::{self, axis::ResampleFilter};
use vramp_kernels::head::{self, Head, boxblur, load_here::LOAD, luma};
use vramp_kernels::sample::{Chance, KernelSample};
use vramp_kernels::{FrameParams, KernelFrame, Picture, Pixel, PixelFn, Recipe, RowScratch, pixel};
use vramp_plan::catalog::IntermediateExtent;
use vramp_plan::{Binding, Size, Variant};

/// No wait takes this long unless the device hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A part of a kernel with its parameters and small data for one frame.
struct Given<K: 'static> {
    kernel: &'static K,
    sample: KernelSample,
}

fn given<K>(kernel: &'static K, size: Size, words: &[u32], small: &[u32]) -> Given<K> {
    Given { kernel, sample: KernelSample::new(size, words).small(small) }
}

/// Every sample of every pixel function, for a frame of this size.
fn functions(chance: &mut Chance, size: Size) -> Vec<Given<PixelFn>> {
    let drawn = pixel::ALL.iter().map(|kernel| (*kernel, kernel.drawn(chance, size)));
    drawn.flat_map(|(kernel, samples)| samples.into_iter().map(move |sample| Given { kernel, sample })).collect()
}

/// Every sample of every head, for a source of this size.
fn heads(chance: &mut Chance, source: Size) -> Vec<Given<Head>> {
    let drawn = head::ALL.iter().map(|kernel| (*kernel, kernel.drawn(chance, source)));
    drawn.flat_map(|(kernel, samples)| samples.into_iter().map(move |sample| Given { kernel, sample })).collect()
}

/// A kernel with all its inputs for one frame.
struct Case {
    recipe: Recipe,
    params: FrameParams,
    size: Size,
    source_size: Size,
    source: Option<Vec<Pixel>>,
    extra_inputs: Vec<(Size, Vec<Pixel>)>,
}

fn case(
    chance: &mut Chance,
    head: &Given<Head>,
    source_size: Size,
    before: &[&Given<PixelFn>],
    after: &[&Given<PixelFn>],
) -> Case {
    let size = head.sample.size;
    let mut recipe = Recipe::of_several(head.kernel, head.sample.pictures.len());
    recipe.before.extend(before.iter().map(|f| f.kernel.into()));
    recipe.after.extend(after.iter().map(|f| f.kernel.into()));
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, size, source_size, 7);
    params.set(layout.head, &head.sample.words, &head.sample.small);
    for (f, part) in before.iter().zip(&layout.before).chain(after.iter().zip(&layout.after)) {
        params.set(*part, &f.sample.words, &f.sample.small);
    }
    let mut extra_inputs: Vec<_> = head.sample.pictures.iter().map(|size| (*size, chance.picture(*size))).collect();
    for (f, at) in before.iter().map(|f| (f, source_size)).chain(after.iter().map(|f| (f, size))) {
        if f.kernel.extra_input {
            extra_inputs.push((at, chance.picture(at)));
        }
    }
    let source = head.kernel.source.then(|| chance.picture(source_size));
    Case { recipe, params, size, source_size, source, extra_inputs }
}

fn on_cpu(case: &Case) -> Vec<Pixel> {
    let extra_inputs: Vec<Picture<'_>> =
        case.extra_inputs.iter().map(|(size, pixels)| Picture::new(*size, pixels).expect("it fits")).collect();
    let frame = KernelFrame {
        size: case.size,
        source: case.source.as_deref().map(|p| Picture::new(case.source_size, p).expect("it fits")),
        extra_inputs: &extra_inputs,
        small: case.params.small(),
        words: case.params.words(),
    };
    let mut pixels = vec![[9; 4]; case.size.pixels() as usize];
    let (program, mut scratch) = (case.recipe.program(), RowScratch::default());
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

/// Both forms of kernels, by size, so that each kernel is tested in both.
pub(crate) fn variant_for(size: Size) -> Variant {
    Variant { wide: (size.width ^ size.height) & 2 == 0, ..Variant::default() }
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
        let extra_inputs: Vec<_> = case.extra_inputs.iter().map(|(_, p)| filled(p.as_flattened().to_vec())).collect();
        let small = filled(bytes_of(if case.params.small().is_empty() { &[0] } else { case.params.small() }));
        let output = lend(case.size.pixels() * 4);
        let over = case.recipe.head.first.map(|first| first.over.size(case.source_size, case.size));
        let kept = lend(over.map_or(16, |over| over.pixels() * IntermediateExtent::ELEMENT_BYTES));
        let shaders = case.recipe.shaders_as("twin", variant_for(case.size));
        let before_head = case.recipe.before.iter().filter(|f| f.extra_input()).count();
        for (pass, shader) in shaders.iter().enumerate() {
            let kernel = self.device.prepare(shader).unwrap_or_else(|e| panic!("{e}\n{}", shader.wgsl));
            let (first, second) = (over.filter(|_| pass == 0), over.filter(|_| pass == 1));
            let again = case.recipe.head.first.is_some_and(|first| first.source_again);
            let reads_source = second.is_none() || again;
            let mut reads = Vec::new();
            reads.extend(source.as_ref().filter(|_| reads_source));
            reads.extend(second.map(|_| &kept));
            // Each pass binds the images of its own functions: first those of the functions before the head, then those
            // of the functions after it.
            let from = if reads_source { 0 } else { before_head };
            reads.extend(&extra_inputs[from..if first.is_some() { before_head } else { extra_inputs.len() }]);
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

fn size(chance: &mut Chance) -> Size {
    let (width, height) = chance.one_of(&SIZES);
    Size { width, height }
}

#[test]
fn every_pixel_function_agrees_with_its_twin() {
    let (mut rig, mut chance) = (Rig::open(LimitSet::Adapter), Chance::new(1));
    for (width, height) in SIZES {
        let size = Size { width, height };
        let load = given(&LOAD, size, &[], &[]);
        for function in functions(&mut chance, size) {
            let case = case(&mut chance, &load, size, &[], &[&function]);
            rig.compare(&case, function.kernel.name);
        }
    }
}

#[test]
fn every_head_agrees_with_its_twin() {
    let (mut rig, mut chance) = (Rig::open(LimitSet::Adapter), Chance::new(2));
    for (width, height) in SIZES {
        let source = Size { width, height };
        for head in heads(&mut chance, source) {
            let case = case(&mut chance, &head, source, &[], &[]);
            rig.compare(&case, head.kernel.name);
        }
    }
}

#[test]
fn every_side_of_a_boxblur_agrees_with_its_twin_on_every_width() {
    let (mut rig, mut chance) = (Rig::open(LimitSet::Adapter), Chance::new(6));
    // For sides above 257, an odd column also keeps bits of the sum of the even column before it. Even and odd widths
    // are tested, because the last column of an odd width has no odd column after it.
    for (width, height) in [(1, 1), (1, 5), (5, 1), (2, 3), (3, 2), (4, 4), (37, 6), (300, 3)] {
        let source = Size { width, height };
        for side in [1, 3, 9, 255, 257, 259, 261, 511, 1021, 1023] {
            let head = given(&boxblur::BOXBLUR, source, &boxblur::pack(side, source).expect("an odd side"), &[]);
            let mut case = case(&mut chance, &head, source, &[], &[]);
            rig.compare(&case, &format!("boxblur {side}"));
            // The largest possible sums, and the largest differences between neighbours.
            let steep = |i: usize| [255, if i.is_multiple_of(2) { 255 } else { 0 }, if i < 2 { 255 } else { 0 }, 0];
            case.source = Some((0..source.pixels() as usize).map(steep).collect());
            rig.compare(&case, &format!("steep boxblur {side}"));
        }
    }
}

#[test]
fn thousands_of_taps_and_rows_agree_with_their_twins() {
    let (mut rig, mut chance) = (Rig::open(LimitSet::Adapter), Chance::new(6));
    // Each of 65,536 taps has a weight. A driver that cuts long loops short would skip some taps.
    for (from, to) in [((65_536, 2), (3, 1)), ((2, 65_536), (5, 1)), ((3000, 2000), (2, 3))] {
        let [source, size] = [from, to].map(|(width, height)| Size { width, height });
        let luma = given(&luma::LUMA, source, &luma::pack(), &[]);
        let of_luma = case(&mut chance, &luma, source, &[], &[]);
        rig.compare(&of_luma, "many rows");
        for filter in [ResampleFilter::Area, ResampleFilter::Lanczos] {
            let (words, small) = resample::pack(filter, source, size);
            let head = given(&resample::RESAMPLE, size, &words, &small);
            let case = case(&mut chance, &head, source, &[], &[]);
            rig.compare(&case, "many taps");
        }
    }
}

/// Compares random kernels, with functions before a gather or a stencil, and functions after any head.
fn random_kernels(limits: LimitSet, seed: u64, count: usize, most_pictures: usize) {
    let (mut rig, mut chance) = (Rig::open(limits), Chance::new(seed));
    let mut made = 0;
    while made < count {
        let source = size(&mut chance);
        let mut heads = heads(&mut chance, source);
        let head = heads.swap_remove(chance.below(heads.len() as u32) as usize);
        let (front, behind) = (functions(&mut chance, source), functions(&mut chance, head.sample.size));
        let pick = |chance: &mut Chance, from: &[Given<PixelFn>], most: u32| -> Vec<usize> {
            (0..chance.below(most + 1)).map(|_| chance.below(from.len() as u32) as usize).collect()
        };
        let before_head = if head.kernel.source { pick(&mut chance, &front, 2) } else { Vec::new() };
        let before: Vec<_> = before_head.iter().map(|i| &front[*i]).collect();
        let after: Vec<_> = pick(&mut chance, &behind, 4).iter().map(|i| &behind[*i]).collect();
        // A second pass that reads the source again binds one more buffer.
        let again = usize::from(head.kernel.first.is_some_and(|first| first.source_again));
        let extra_inputs = before.iter().chain(&after).filter(|f| f.kernel.extra_input).count();
        if again + head.sample.pictures.len() + extra_inputs > most_pictures {
            continue;
        }
        let names: Vec<_> = before.iter().map(|f| f.kernel.name).chain([head.kernel.name]).collect();
        let names = [names, after.iter().map(|f| f.kernel.name).collect()].concat().join(" + ");
        let case = case(&mut chance, &head, source, &before, &after);
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
    // The limit is four storage buffers: source, output, small data and one more image.
    random_kernels(LimitSet::Downlevel, 5, 30, 1);
}
