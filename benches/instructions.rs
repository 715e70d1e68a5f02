//! Key paths whose instructions `cargo xtask test --only instructions` counts under callgrind.
//!
//! `instructions NAME` prepares one path, runs it a few times to warm up, and then runs it inside [`run_counted`], the
//! only function in which callgrind counts. It prints the number of counted runs. Without a name it lists the paths.
//!
//! Everything runs on one thread, and pipelines are stepped with an artificial clock, so that counts are repeatable.

use std::cell::Cell;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use vramp::gpu::{Backend, Device, Player, Recording};
use vramp::plan::{Format, Plan, Profile, RunOptions, Size, Space};
use vramp::runtime::engine::Engine;
use vramp::runtime::{FramePool, Meta, Stepped};
use vramp::tensor::Context;

/// A path: its name, the number of counted runs, and a function that prepares it and returns one run of it.
struct Path {
    name: &'static str,
    runs: u64,
    prepare: fn() -> Box<dyn FnMut()>,
}

/// Few runs are enough, since every run has the same count. Paths with work every few runs, such as the report's
/// samples, need more.
const PATHS: &[Path] = &[
    path("pass_on", 200, || frames(host(&format!("pattern kind=solid size=16x16{} ! null", " ! identity".repeat(8))))),
    path("hand_over", 200, || {
        let link = " !{lossless depth=2} ";
        let text = ["pattern kind=solid size=16x16", "identity", "identity", "null"].join(link);
        frames(host(&text))
    }),
    path("chain5", 20, || {
        frames(host(&format!(
            "{GRADIENT} ! contrast 1.2 ! brightness 0.04 ! gamma 2.2 ! saturation 0.7 ! invert ! null"
        )))
    }),
    path("blur", 10, || frames(host(&format!("{GRADIENT} ! blur sigma=2 ! null")))),
    path("convert", 10, || frames(host(&format!("{GRADIENT} ! convert i420 ! convert rgba8 ! null")))),
    path("plan_1000", 1, || {
        let text = chain(1000);
        Box::new(move || drop(black_box(plan(&text))))
    }),
    path("read_text", 5, || {
        let text = chain(100);
        let registry = vramp::registry();
        Box::new(move || drop(black_box(vramp::read(&text, registry.catalog()).expect("it reads"))))
    }),
    path("plan_json", 5, || {
        let plan = plan(&chain(100));
        Box::new(move || drop(black_box(plan.to_json())))
    }),
    path("elementwise", 20, || {
        let context = Context::builder().threads(1).on_host();
        let values: Vec<f32> = (0_u16..1 << 14).map(|at| f32::from(at) / 1e4).collect();
        let x = context.tensor(&values, &[128, 128]).expect("it fits");
        Box::new(move || drop(black_box(x.lazy().mul(2.0).add(&x).relu().sub(0.5).run().expect("it runs"))))
    }),
    path("matmul", 5, || {
        let context = Context::builder().threads(1).on_host();
        let values: Vec<f32> = (0_u16..1 << 14).map(|at| f32::from(at) / 1e4).collect();
        let x = context.tensor(&values, &[128, 128]).expect("it fits");
        Box::new(move || drop(black_box(x.matmul(&x).expect("it runs"))))
    }),
    path("play_group", 50, || {
        let device = Device::choose().backend(Backend::Noop).open().expect("it is always there");
        frames(on_device("pattern kind=gradient size=64x48 ! contrast 1.2 ! invert ! gamma 2.2 ! null", &device))
    }),
    path("record", 50, record),
    path("lend", 500, || {
        let pool = FramePool::new(1 << 20);
        let meta = Meta::new(Format::Rgba8, Size { width: 64, height: 48 });
        Box::new(move || drop(black_box(pool.lend(meta).expect("there is room"))))
    }),
];

const GRADIENT: &str = "pattern kind=gradient size=320x240";

const fn path(name: &'static str, runs: u64, prepare: fn() -> Box<dyn FnMut()>) -> Path {
    Path { name, runs, prepare }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let Some(wanted) = wanted else {
        for path in PATHS {
            println!("{}", path.name);
        }
        return;
    };
    let path = PATHS.iter().find(|path| path.name == wanted).unwrap_or_else(|| panic!("there is no path `{wanted}`"));
    let mut run = (path.prepare)();
    // Rings fill, pools grow and kernels compile.
    (0..3).for_each(|_| run());
    run_counted(path.runs, &mut *run);
    println!("runs {}", path.runs);
}

/// xtask knows this name and makes callgrind count only in this function.
#[inline(never)]
fn run_counted(runs: u64, run: &mut dyn FnMut()) {
    for _ in 0..runs {
        run();
    }
}

/// One run takes one frame through a pipeline.
fn frames(mut pipeline: Engine) -> Box<dyn FnMut()> {
    pipeline.start().expect("it starts");
    let time = Cell::new(Duration::ZERO);
    let now = move || {
        time.set(time.get() + Duration::from_micros(10));
        time.get()
    };
    let watch = pipeline.watch();
    let mut step = move || assert!(matches!(pipeline.step(&now), Stepped::Moved), "each step moves a frame");
    // Links fill first, so that every later step brings one frame to the sink.
    let out = || watch.progress(Duration::ZERO).frames_out;
    for _ in 0..16 {
        step();
    }
    let before = out();
    for _ in 0..16 {
        step();
    }
    assert_eq!(out() - before, 16, "each step brings one frame to the sink");
    Box::new(step)
}

/// Recording and submitting a dispatch of a fusion group, without a pipeline.
fn record() -> Box<dyn FnMut()> {
    let device = Device::choose().backend(Backend::Noop).open().expect("it is always there");
    let recipe = vramp::kernels::Recipe::of(&vramp::kernels::head::gradient::GRADIENT);
    let kernel = device.prepare(&recipe.shaders("counted")[0]).expect("it compiles");
    let mut player = Player::on(&device).build().expect("a player");
    let mut recording = Recording::new();
    let params = vec![0; recipe.layout().words * 4];
    let buffer = device.lend(64 * 48 * 4, &"counted".into()).expect("there is memory");
    Box::new(move || {
        let grid = kernel.cover(64 * 48, device.limits());
        recording.dispatch(&kernel, &[&buffer], &params, grid).expect("it is described right");
        player.play(&mut recording).expect("the device plays it");
    })
}

/// A pipeline with this many handlers of several kinds.
fn chain(handlers: usize) -> String {
    let mut text = "pattern".to_owned();
    for at in 2..handlers {
        let _ = write!(text, " ! {}", ["invert", "blur sigma=2", "gamma 2.2", "saturation 0.7"][at % 4]);
    }
    text + " ! null"
}

// From a text to a plan and a pipeline.

/// A shipped profile, because this machine's profile would differ from machine to machine.
fn profile() -> Profile {
    Profile::shipped("integrated").expect("it is shipped")
}

fn plan(text: &str) -> Plan {
    vramp::Pipeline::parse(text).profile(profile()).plan().unwrap_or_else(|error| panic!("{error}"))
}

fn host(text: &str) -> Engine {
    engine(vramp::Pipeline::parse(text), Space::Cpu)
}

fn on_device(text: &str, device: &Device) -> Engine {
    engine(vramp::Pipeline::parse(text).device(device), Space::Gpu)
}

fn engine(builder: vramp::PipelineBuilder, space: Space) -> Engine {
    let options = RunOptions::new().only(space).threads(1).nominal_time();
    let pipeline = builder.profile(profile()).options(options).build().unwrap_or_else(|error| panic!("{error}"));
    pipeline.into_engine().expect("it has not run")
}
