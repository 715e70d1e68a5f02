//! Checks plans on this machine: the predicted time per frame, and the placement.
//!
//! Calibrates first, without storing the profile, then runs pipelines as usual.
//!
//! `cargo bench --bench placement -- predict` compares the cost of plans with the time per frame, for every handler
//! with a kernel, in both spaces. The time is wall time per frame of an unpaced run, the quickest of several. The cost
//! of a plan is the time of its steps one after another, each with all threads that it can use. If the GPU is a
//! software driver, the two should be equal; otherwise lanes that work at the same time can be quicker than the sum.
//!
//! `cargo bench --bench placement [-- TIMES...]` compares `--cpu`, `--gpu` and the planner's own choice. Kernels on the
//! CPU are computed TIMES times (default: 1 and 24), in the calibration and in the runs: with a software driver the CPU
//! wins nearly always, and a planner that always chose it would look good. Runs are interleaved, and the median of each
//! counts. If the choice is the same plan as a forced one, that run counts for both: two runs of one plan differ only
//! by noise.

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::time::Instant;

use vramp::calibrate::{Calibration, Stopwatch};
use vramp::gpu::Device;
use vramp::plan::{Graph, Plan, Profile, RunOptions, Space};
use vramp::runtime::Registry;
use vramp::{Pipeline, PipelineBuilder};

use measure::median;

/// The allowed error factor of a prediction.
const PREDICTED_WITHIN: f64 = 2.0;
/// How much slower the planner's choice may be than the better of the forced plans.
const CHOSEN_WITHIN: f64 = 1.10;
const RUN_MS: f64 = 30.0;
const ROUNDS: usize = 5;

/// Every handler with a kernel; `SIZE` is replaced by a size.
const CATALOGUE: [&str; 36] = [
    "pattern kind=bars size=SIZE ! null",
    "pattern kind=ball size=SIZE ! null",
    "pattern kind=solid size=SIZE ! null",
    "pattern kind=checker size=SIZE ! null",
    "pattern kind=noise size=SIZE ! null",
    "pattern kind=gradient size=SIZE ! null",
    "pattern kind=disc size=SIZE ! null",
    "pattern kind=solid size=SIZE ! brightness 0.1 ! null",
    "pattern kind=solid size=SIZE ! contrast 1.2 ! null",
    "pattern kind=solid size=SIZE ! gamma 2.2 ! null",
    "pattern kind=solid size=SIZE ! invert ! null",
    "pattern kind=solid size=SIZE ! saturation 0.7 ! null",
    "pattern kind=solid size=SIZE ! hue 40 ! null",
    "pattern kind=solid size=SIZE ! colormatrix m=1,0,0,0,0,0,1,0,0,0,0,0,1,0,0,0,0,0,1,0 ! null",
    "pattern kind=solid size=SIZE ! grayscale ! null",
    "pattern kind=solid size=SIZE ! threshold ! null",
    "pattern kind=solid size=SIZE ! flip h ! null",
    "pattern kind=solid size=SIZE ! flip v ! null",
    "pattern kind=solid size=SIZE ! blur sigma=0.8 ! null",
    "pattern kind=solid size=SIZE ! blur sigma=2 ! null",
    "pattern kind=solid size=SIZE ! blur sigma=6 ! null",
    "pattern kind=solid size=SIZE ! resize scale=0.5 ! null",
    "pattern kind=solid size=SIZE ! resize scale=1.5 ! null",
    "pattern kind=solid size=SIZE ! resize scale=0.5 filter=nearest ! null",
    "pattern kind=solid size=SIZE ! text \"{frame} of many\" ! null",
    "pattern kind=solid size=SIZE ! fps ! null",
    "pattern kind=solid size=SIZE ! markers ! null",
    "pattern kind=solid size=SIZE ! waveform ! null",
    "pattern kind=solid size=SIZE ! overlay path=LOGO ! null",
    "pattern kind=solid size=SIZE ! mix.a ; pattern kind=bars size=SIZE ! mix.b ; mix name=mix ! null",
    "pattern kind=solid size=SIZE ! mix.a ; pattern kind=bars size=SIZE ! mix.b ; mix name=mix mode=screen ! null",
    "pattern kind=ball size=SIZE ! markers ! waveform ! fps ! null",
    "pattern kind=ball size=SIZE ! contrast 1.2 ! brightness 0.04 ! gamma 2.2 ! saturation 0.7 ! invert ! null",
    "pattern kind=ball size=SIZE ! saturation 0.7 ! hue 40 ! grayscale ! flip h ! threshold ! null",
    "pattern kind=ball size=SIZE name=p ! blur ! mix.a ; p. ! mix.b ; mix name=mix amount=0.3 ! null",
    "pattern kind=bars size=SIZE ! saturation 0.7 ! blur sigma=1 ! gamma 2.2 ! resize scale=0.5 ! null",
];

/// Typical pipelines, short and long, with and without handlers that offer only one space.
const PIPELINES: [&str; 16] = [
    "pattern kind=ball size=SIZE ! markers ! waveform ! fps ! null",
    "pattern kind=solid size=SIZE ! null",
    "pattern kind=bars size=SIZE ! blur sigma=2 ! null",
    "pattern kind=bars size=SIZE ! blur sigma=6 ! grayscale ! null",
    "pattern kind=bars size=SIZE ! contrast 1.2 ! gamma 2.2 ! saturation 0.7 ! invert ! null",
    "pattern kind=noise size=SIZE ! grayscale ! threshold ! null",
    "pattern kind=bars size=SIZE ! resize scale=0.5 ! null",
    "pattern kind=bars size=SIZE ! flip h ! grayscale ! flip v ! threshold ! null",
    "pattern kind=ball size=SIZE name=p ! blur ! mix.a ; p. ! mix.b ; mix name=mix amount=0.3 ! null",
    "pattern kind=noise size=SIZE ! convert i420 ! null",
    "pattern kind=bars size=SIZE ! saturation 0.7 ! convert i420 ! convert rgba8 ! grayscale ! null",
    "pattern kind=noise size=SIZE ! flip h ! flip v ! grayscale ! resize scale=0.5 ! convert i420 ! null",
    "pattern kind=noise size=SIZE ! grayscale ! flip h ! threshold ! flip v ! flip h ! convert gray8 ! convert rgba8 ! blur sigma=3 ! null",
    "pattern kind=bars size=SIZE ! blur sigma=4 ! convert i420 ! convert rgba8 ! flip h ! flip v ! resize scale=0.25 ! null",
    "pattern kind=checker size=SIZE ! flip h ! resize scale=0.5 ! flip v ! text \"{frame}\" ! null",
    "pattern kind=ball size=SIZE ! every 2 ! blur sigma=3 ! null",
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let device = Device::choose().open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
    println!("{}", device.adapter());
    let (mut registry, watch) = (vramp::registry(), Stopwatch::default());
    watch.add_to(&mut registry).expect("the name is free");
    if words.iter().any(|word| word == "predict") {
        return predict(&device, &registry, &watch);
    }
    let times: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
    for times in if times.is_empty() { vec![1, 24] } else { times } {
        place(&device, &registry, &watch, times);
    }
}

fn calibrate(device: &Device, times: u32) -> Profile {
    let start = Instant::now();
    let profile = Calibration::on(Some(device)).slowed(times).measure().unwrap_or_else(|error| panic!("{error}"));
    println!("calibrated in {:.1} s", start.elapsed().as_secs_f64());
    if std::env::var_os("SHOW_PROFILE").is_some() {
        println!("{}", profile.write());
    }
    profile
}

fn graph(text: &str, size: &str, registry: &Registry) -> Graph {
    let text = text.replace("SIZE", size).replace("LOGO", &logo()).replace("! null", "! stopwatch");
    let spec = vramp::read(&text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    registry.check(&spec).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An image to draw, made once.
fn logo() -> String {
    let path = std::env::temp_dir().join("vramp-placement-logo.png");
    if !path.exists() {
        let text = format!("pattern kind=disc size=256x256 frames=1 ! png path={}", path.display());
        let builder = Pipeline::parse(text).options(RunOptions::new().only(Space::Cpu));
        builder.build().and_then(|mut pipeline| pipeline.run()).unwrap_or_else(|error| panic!("{error}"));
    }
    path.display().to_string()
}

/// A pipeline and the options of its runs.
struct Asked {
    builder: PipelineBuilder,
    options: RunOptions,
}

impl Asked {
    fn new(graph: &Graph, registry: &Registry, profile: &Profile, options: RunOptions) -> Asked {
        let builder = Pipeline::from_graph(graph.clone()).registry(registry).profile(profile.clone());
        Asked { builder, options }
    }

    fn plan(&self) -> Plan {
        self.builder.clone().options(self.options.clone()).plan().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Microseconds per frame of one run in its quicker windows, once it is steady, because machines are shared.
fn run_us(asked: &Asked, device: &Device, watch: &Stopwatch, frames: u64) -> f64 {
    let builder = asked.builder.clone().options(asked.options.clone().frames(frames)).device(device);
    builder.build().and_then(|mut pipeline| pipeline.run()).unwrap_or_else(|error| panic!("{error}"));
    watch.frame_ns().expect("there were enough frames") / 1e3
}

/// The number of frames that makes a run long enough.
fn frames_for(asked: &Asked, device: &Device, watch: &Stopwatch) -> u64 {
    let mut frames = 16_u64;
    loop {
        let us = run_us(asked, device, watch, frames) * frames as f64;
        if us >= RUN_MS * 1e3 / 2.0 || frames >= 20_000 {
            return frames;
        }
        frames = ((frames as f64 * (RUN_MS * 1e3 / us).clamp(2.0, 64.0)) as u64).min(20_000);
    }
}

fn predict(device: &Device, registry: &Registry, watch: &Stopwatch) {
    let profile = calibrate(device, 1);
    println!("{:92} {:>9} {:>4} {:>11} {:>11} {:>6}", "", "", "", "predicted us", "measured us", "ratio");
    let (mut count, mut within, mut worst) = (0, 0, (1.0_f64, String::new()));
    for text in CATALOGUE {
        for size in ["320x240", "1280x720"] {
            let graph = graph(text, size, registry);
            for space in [Space::Cpu, Space::Gpu] {
                let asked = Asked::new(&graph, registry, &profile, RunOptions::new().only(space));
                let plan = asked.plan();
                let frames = frames_for(&asked, device, watch);
                let measured = (0..5).map(|_| run_us(&asked, device, watch, frames)).fold(f64::MAX, f64::min);
                let predicted = plan.cost_ns as f64 / 1e3;
                let ratio = predicted / measured;
                let off = ratio.max(1.0 / ratio);
                let verdict = if off <= PREDICTED_WITHIN { "" } else { "  MISSED" };
                println!("{text:92} {size:>9} {space:>4} {predicted:>11.1} {measured:>11.1} {ratio:>6.2}{verdict}");
                count += 1;
                within += usize::from(off <= PREDICTED_WITHIN);
                if off > worst.0 {
                    worst = (off, format!("{text} at {size} on the {space}"));
                }
            }
        }
    }
    println!("\n{within} of {count} within {PREDICTED_WITHIN}x; the worst is off by {:.2}x: {}", worst.0, worst.1);
}

/// Where each handler runs, and what is fused.
fn decisions(plan: &Plan) -> (Vec<Space>, Vec<Option<usize>>) {
    (plan.handlers.iter().map(|h| h.space).collect(), plan.handlers.iter().map(|h| h.group).collect())
}

fn place(device: &Device, registry: &Registry, watch: &Stopwatch, times: u32) {
    println!("\nkernels on the host computed {times} times");
    let profile = calibrate(device, times);
    let title = ["--cpu us", "--gpu us", "auto us", "auto/best"];
    println!("{:136} {:>9} {:>10} {:>10} {:>10} {:>9}", "", "", title[0], title[1], title[2], title[3]);
    let (mut count, mut within, mut best) = (0, 0, [0_usize; 3]);
    for text in PIPELINES {
        for size in ["160x120", "640x480", "1280x720"] {
            let graph = graph(text, size, registry);
            let sessions = [Some(Space::Cpu), Some(Space::Gpu), None].map(|only| {
                let options = RunOptions { only, ..RunOptions::new().slowed(times) };
                Asked::new(&graph, registry, &profile, options)
            });
            let plans = sessions.each_ref().map(Asked::plan);
            let same = (0..2).find(|order| decisions(&plans[*order]) == decisions(&plans[2]));
            let frames = sessions.each_ref().map(|one| frames_for(one, device, watch));
            let mut us = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                for at in 0..if same.is_some() { 2 } else { 3 } {
                    us[at].push(run_us(&sessions[at], device, watch, frames[at]));
                }
            }
            let [cpu, gpu] = [median(&us[0]), median(&us[1])];
            let own = same.map_or_else(|| median(&us[2]), |order| [cpu, gpu][order]);
            let ratio = own / cpu.min(gpu);
            let what = ["is --cpu", "is --gpu"];
            let what = same.map_or("mixed", |order| what[order]);
            let verdict = if ratio <= CHOSEN_WITHIN { "" } else { "  MISSED" };
            println!("{text:136} {size:>9} {cpu:>10.1} {gpu:>10.1} {own:>10.1} {ratio:>9.2}  {what}{verdict}");
            count += 1;
            within += usize::from(ratio <= CHOSEN_WITHIN);
            let mixed_best = same.is_none() && own < cpu.min(gpu);
            best[if mixed_best { 2 } else { usize::from(gpu < cpu) }] += 1;
        }
    }
    println!("{within} of {count} within {CHOSEN_WITHIN}x of the better order");
    println!("best is: --cpu {}, --gpu {}, a mixed placement {}", best[0], best[1], best[2]);
}
