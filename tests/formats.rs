//! Conversion between every pair of pixel formats gives the same bytes on the GPU as on the CPU, for every
//! interpretation of YUV, alone and fused with its neighbours. Pipelines with conversions transfer and fuse what their
//! plans show.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

#[path = "../crates/kernels/tests/format_made/mod.rs"]
mod format_made;

use std::sync::Arc;
use std::time::Duration;

use crate::ran::run;
use format_made::{Converted, OTHERS, made_up};
use vramp::plan::RunOptions;
use vramp::registry;
use vramp::verify::{Options, verify};
use vramp_gpu::{Device, LimitSet, Player, Recording};
use vramp_kernels::head::flip;
use vramp_kernels::pixel::{gray, markers, table};
use vramp_kernels::stored::{Way, of};
use vramp_plan::catalog::TransferDirection;
use vramp_plan::{Format, Siting, Size, Space};

use crate::twins::variant_for;

/// No wait takes this long unless the device hangs.
const PATIENCE: Duration = Duration::from_secs(120);

struct Bench {
    device: Device,
    player: Player,
    owner: Arc<str>,
}

impl Bench {
    fn open(limits: LimitSet) -> Bench {
        let device = Device::choose().limits(limits).open().unwrap_or_else(|e| panic!("needs an adapter: {e}"));
        let player = Player::on(&device).build().expect("a player on a fresh device");
        Bench { device, player, owner: "formats".into() }
    }

    /// The bytes that a conversion makes on the device, in memory that held other values before.
    fn run(&mut self, made: &Converted) -> Vec<u8> {
        let mut recording = Recording::new();
        let lend = |bytes: u64| self.device.lend(bytes.max(16), &self.owner).expect("memory for a small frame");
        let (source, output) = (lend(made.frame.len() as u64), lend(made.into.frame_bytes(made.size)));
        recording.upload(&source, made.frame.clone()).expect("it fits");
        recording.upload(&output, vec![0x5A; made.into.frame_bytes(made.size) as usize]).expect("it fits");
        let shaders = made.recipe().shaders_as("format", variant_for(made.size));
        assert_eq!(shaders.len(), 1, "one dispatch for any pair");
        let kernel = self.device.prepare(&shaders[0]).unwrap_or_else(|e| panic!("{e}\n{}", shaders[0].wgsl));
        let elements = of(made.into).map_or(made.size.pixels(), |stored| stored.blocks(made.size));
        let grid = kernel.cover(elements, self.device.limits());
        let words: Vec<u8> = made.params().words().iter().flat_map(|w| w.to_le_bytes()).collect();
        recording.dispatch(&kernel, &[&source, &output], &words, grid).expect("it is described right");
        recording.download(&output).expect("it is there");
        self.player.play(&mut recording).expect("the device plays it");
        let arrived = self.player.readbacks().wait(PATIENCE).expect("the device lives").expect("it was asked for");
        arrived.bytes(0)[..made.into.frame_bytes(made.size) as usize].to_vec()
    }

    fn compare(&mut self, made: &Converted) {
        let (cpu, gpu) = (made.whole(), self.run(made));
        if let Some(at) = (0..cpu.len()).find(|at| cpu[*at] != gpu[*at]) {
            let Converted { from, into, size, ways, .. } = made;
            panic!("{from} to {into} at {size} {ways:?}: byte {at} is {} on the cpu, {} there", cpu[at], gpu[at]);
        }
    }
}

const SIZES: [(u32, u32); 8] = [(1, 1), (1, 2), (2, 1), (3, 3), (8, 2), (17, 5), (33, 6), (70, 9)];

fn pairs() -> impl Iterator<Item = (Format, Format)> {
    Format::RANKED.into_iter().flat_map(|from| Format::RANKED.map(|into| (from, into)))
}

#[test]
fn every_pair_of_formats_is_the_same_on_both_sides_in_every_size_and_way() {
    let mut bench = Bench::open(LimitSet::Adapter);
    for (from, into) in pairs() {
        for (at, (width, height)) in SIZES.into_iter().enumerate() {
            let size = Size { width, height };
            // All interpretations of YUV at the last size, and one of them in turn at every other size.
            let ways = if at == SIZES.len() - 1 { &Way::ALL[..] } else { &Way::ALL[at % 4..=at % 4] };
            for way in ways {
                bench.compare(&Converted::new(from, into, size, *way, made_up(from, size, at as u64)));
            }
        }
    }
}

#[test]
fn every_siting_is_the_same_on_both_sides_in_every_size_alone_and_around_functions() {
    let mut bench = Bench::open(LimitSet::Adapter);
    let sited = [Format::I420, Format::Nv12];
    let inverted = (&table::TABLE, table::pack(&std::array::from_fn(|v| 255 - v as u8)).to_vec());
    for (from, into) in pairs().filter(|(from, into)| sited.contains(from) || sited.contains(into)) {
        for (at, (width, height)) in SIZES.into_iter().enumerate() {
            let (size, one) = (Size { width, height }, at % 2);
            let sitings = [Siting::Left, Siting::Alternate, Siting::Centre];
            let mut made = Converted::new(from, into, size, Way::ALL[at % 4], made_up(from, size, at as u64));
            made.ways = [made.ways[0].sited(sitings[one]), made.ways[1].sited(sitings[1 - one + at % 3 / 2])];
            bench.compare(&made);
            if width > 8 {
                made.head = (&flip::FLIP, flip::pack(true, true).to_vec());
                made.after = vec![inverted.clone()];
                bench.compare(&made);
            }
        }
    }
}

#[test]
fn formats_are_the_same_on_both_sides_around_functions_and_gathers_under_downlevel_limits() {
    let mut bench = Bench::open(LimitSet::Downlevel);
    let size = Size { width: 37, height: 11 };
    let inverted = (&table::TABLE, table::pack(&std::array::from_fn(|v| 255 - v as u8)).to_vec());
    for from in [Format::Rgba8, Format::I420, Format::Nv12, Format::Rgb8] {
        for into in [Format::Rgba8, Format::I422, Format::Nv12, Format::Rgb8, Format::Gray8] {
            let mut made = Converted::new(from, into, size, Way::ALL[2], made_up(from, size, 9));
            made.ways[1] = Way::ALL[1];
            made.before = vec![inverted.clone(), (&gray::GRAY, vec![])];
            made.head = (&flip::FLIP, flip::pack(true, true).to_vec());
            made.after = vec![(&markers::MARKERS, markers::pack(9, 200).to_vec())];
            bench.compare(&made);
        }
    }
}

/// The bytes that a pipeline writes to a raw file.
fn written(text: &str, name: &str, with: impl FnOnce(RunOptions) -> RunOptions) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("vramp-formats-{}-{name}", std::process::id()));
    run(&format!("{text} ! raw path={}", path.display()), with);
    let bytes = std::fs::read(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it was just read");
    bytes
}

fn y4m(name: &str) -> String {
    format!("{}/crates/handlers/tests/data/{name}.y4m", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn rows_that_are_spread_over_threads_give_the_same_bytes() {
    for into in OTHERS {
        let text = format!(
            "pattern kind=noise size=331x457 frames=1 ! invert ! convert {into} ! convert rgba8 ! convert {into}"
        );
        let one = written(&text, &format!("one-{into}"), |options| options.only(Space::Cpu).threads(1));
        let many = written(&text, &format!("many-{into}"), |options| options.only(Space::Cpu).threads(5));
        assert!(one == many, "{into}");
    }
}

#[test]
fn what_crosses_to_the_device_is_what_was_read_and_converting_is_part_of_what_follows() {
    for (name, format) in [("i420", Format::I420), ("i422", Format::I422), ("gray8", Format::Gray8)] {
        let text = format!("y4m path={} ! upload ! invert ! markers ! null", y4m(name));
        let (plan, report) = run(&text, |options| options.only(Space::Gpu));
        let content = &plan.links[0].content;
        let size = content.frame().expect("frames").size;
        let up: Vec<u64> = plan
            .transfers
            .iter()
            .filter(|transfer| transfer.direction == TransferDirection::Up)
            .map(|transfer| transfer.bytes)
            .collect();
        assert_eq!(up, [format.frame_bytes(size)], "{plan:?}");
        let names = |group: &vramp_plan::FusionGroup| -> Vec<String> {
            group.handlers.iter().map(|at| plan.handlers[*at].name.clone()).collect()
        };
        assert_eq!(plan.groups.iter().map(names).collect::<Vec<_>>(), [["convert0", "invert0", "markers0"]]);
        assert_eq!(report.counters.dispatches, report.frames_in, "one dispatch a frame");
        assert_eq!(report.counters.transfer_bytes, report.frames_in * format.frame_bytes(size));
    }
}

#[test]
fn from_one_format_through_functions_to_another_is_one_dispatch() {
    let text = format!("y4m path={} ! upload ! convert rgba8 ! invert ! convert nv12 ! download ! null", y4m("i420"));
    let (plan, report) = run(&text, |options| options.only(Space::Gpu));
    assert_eq!(plan.groups.len(), 1, "{plan:?}");
    assert_eq!(report.counters.dispatches, report.frames_in);
    let down: Vec<u64> = plan
        .transfers
        .iter()
        .filter(|transfer| transfer.direction == TransferDirection::Down)
        .map(|transfer| transfer.bytes)
        .collect();
    let size = plan.links[0].content.frame().expect("frames").size;
    assert_eq!(down, [Format::Nv12.frame_bytes(size)]);
}

#[test]
fn pipelines_of_every_pair_write_the_same_files_on_both_sides() {
    for (from, into) in OTHERS.into_iter().flat_map(|from| OTHERS.map(|into| (from, into))) {
        let text = format!("pattern kind=noise size=19x7 frames=2 ! convert {from} ! convert {into}");
        let here = written(&text, &format!("here-{from}-{into}"), |options| options.only(Space::Cpu));
        let there = written(&text, &format!("there-{from}-{into}"), |options| options.only(Space::Gpu));
        assert!(!here.is_empty() && here == there, "{from} to {into}");
    }
}

#[test]
fn graphs_with_other_formats_verify_as_equal_handler_by_handler() {
    let device = Device::choose().open().expect("an adapter");
    for name in ["i420", "i422", "i444", "gray8"] {
        let text = format!(
            "y4m path={} ! convert nv12 ! convert nv12 ! convert rgb8 ! invert ! convert i444 ! null",
            y4m(name)
        );
        let registry = registry();
        let spec = vramp::read(&text, registry.catalog()).expect("it reads");
        let options = Options { frames: 2, device: Some(device.clone()), ..Options::default() };
        let verified = verify(&spec, &registry, &options).expect("it runs");
        assert!(verified.is_equal(), "{verified}");
        // One comparison of the fused graph on the CPU, six on the GPU for five handlers and an inserted converter, and
        // one of the whole graph on the GPU.
        assert!(verified.compared() == 8, "{verified}");
    }
}

#[test]
fn converting_allocates_nothing_once_it_is_steady() {
    let text = "pattern kind=noise size=64x48 frames=300 ! convert i420 ! convert nv12 ! convert rgba8 ! invert ! \
                convert rgb8 ! convert i422 ! convert i444 ! null";
    for space in [Space::Cpu, Space::Gpu] {
        let (_, report) = run(text, |options| options.only(space).threads(2));
        let steady = &report.steady;
        assert_eq!((steady.heap_allocs, steady.gpu_allocs, steady.bind_groups), (Some(0.0), 0.0, 0.0), "{report:?}");
    }
}
