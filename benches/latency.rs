//! Compares the latency that plans predict with the latency of runs: 20 pipelines on the CPU and on the GPU.
//!
//! Calibrates first, without storing the profile. Each pipeline is planned with a latency need that every plan meets, so
//! that the usual plan is chosen. The measured latency is the median of a run's report. Of several runs, the run counts
//! during which other programs used least of the machine. If that is more than a tenth, the row is marked and counted
//! apart, because a profile describes an idle machine.
//!
//! The column `rehearsed` has the latency that the plan would predict if its costs were the times that the run measured
//! for each handler. It shows the error of the latency model without the error of the costs, and whatever else the
//! machine does.
//!
//! `cargo bench --bench latency [-- WORD...]` runs the pipelines whose text contains one of the words. Files are written
//! to the temporary folder. A disk that is busy makes writing slow at times, so set `TMPDIR` to a folder in memory. With
//! `PROFILE=FILE`, the profile is kept in the file and used by later runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vramp::Pipeline;
use vramp::calibrate::Calibration;
use vramp::gpu::Device;
use vramp::plan::{Plan, Profile, Rate, RunOptions, Space};
use vramp::runtime::Report;

/// The allowed error factor of a prediction.
const WITHIN: f64 = 1.5;
/// Runs of one case, and the time after which no further run begins.
const ROUNDS: usize = 12;
const ENOUGH: Duration = Duration::from_secs(5);
const RUN_MS: u64 = 300;
const FRAMES: u64 = 400;
/// A run counts as disturbed if other programs used more than this part of the machine meanwhile.
const DISTURBED: f64 = 0.1;

/// A pipeline, with options that change how long frames wait.
struct Case {
    text: &'static str,
    fps: Option<u32>,
    batch: u32,
    in_flight: u32,
}

const fn usual(text: &'static str) -> Case {
    Case { text, fps: None, batch: 1, in_flight: 2 }
}

const CASES: [Case; 20] = [
    usual("pattern kind=ball size=480x270 ! markers ! waveform ! fps ! null"),
    usual("pattern kind=bars size=640x360 ! blur sigma=2 ! null"),
    usual("pattern kind=bars size=640x360 ! contrast 1.2 ! gamma 2.2 ! saturation 0.7 ! invert ! null"),
    usual("pattern kind=noise size=480x270 ! grayscale ! threshold ! flip h ! null"),
    usual("pattern kind=bars size=640x360 ! resize scale=0.5 ! null"),
    usual("pattern kind=ball size=480x270 name=p ! blur ! mix.a ; p. ! mix.b ; mix name=mix amount=0.3 ! null"),
    usual("pattern kind=bars size=480x270 ! convert i420 ! null"),
    usual("pattern kind=bars size=480x270 ! blur sigma=2 ! raw path=OUT.raw"),
    usual("pattern kind=ball size=480x270 ! saturation 0.7 ! y4m path=OUT.y4m"),
    usual("pattern kind=ball size=320x240 ! blur ! png path=OUT-%03d.png"),
    usual("y4m path=IN ! blur sigma=2 ! null"),
    usual("y4m path=IN ! saturation 0.3 ! y4m path=OUT.y4m"),
    usual("pattern kind=bars size=480x270 ! blur sigma=4 !{queue depth=4} invert ! null"),
    usual("pattern kind=bars size=480x270 !{lossless depth=8} blur sigma=4 ! null"),
    usual("pattern kind=ball size=480x270 ! every 2 ! blur sigma=3 ! null"),
    usual("pattern kind=bars size=480x270 ! delay 3 keep-times=true ! blur ! null"),
    Case { fps: Some(20), ..usual("pattern kind=bars size=480x270 ! blur sigma=2 ! markers ! null") },
    Case { fps: Some(20), ..usual("y4m path=IN ! blur sigma=2 ! y4m path=OUT.y4m") },
    Case { batch: 4, ..usual("pattern kind=bars size=320x240 ! blur ! hue 40 ! null") },
    Case { in_flight: 1, ..usual("pattern kind=noise size=480x270 ! blur sigma=1 ! raw path=OUT.raw") },
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let device = Device::choose().open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
    println!("{}", device.adapter());
    let folder = std::env::temp_dir().join(format!("vramp-latency-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let profile = calibrated(&device);
    let input = format!("pattern kind=ball size=480x270 frames=120 ! y4m path={}", folder.join("in.y4m").display());
    Pipeline::parse(input)
        .options(RunOptions::new().only(Space::Cpu))
        .build()
        .and_then(|mut pipeline| pipeline.run())
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{:104} {:>4} {:>12} {:>11} {:>6} {:>6}", "", "", "predicted ms", "measured ms", "ratio", "rehearsed");
    let mut models = (0, 0);
    let (mut count, mut within, mut disturbed, mut worst) = (0, 0, (0, 0), (1.0_f64, String::new()));
    for case in CASES.iter().filter(|case| words.is_empty() || words.iter().any(|word| case.text.contains(word))) {
        for space in [Space::Cpu, Space::Gpu] {
            let Compared { predicted, measured, rehearsed, others } = case.compare(space, &folder, &profile, &device);
            let ratio = predicted / measured;
            let off = ratio.max(1.0 / ratio);
            let words = case.words();
            let verdict = match (off <= WITHIN, others > DISTURBED) {
                (true, false) => String::new(),
                (false, false) => "  MISSED".to_owned(),
                (_, true) => format!("  disturbed, {:.0} % of the machine used by others", others * 100.0),
            };
            println!(
                "{words:104} {space:>4} {predicted:>12.3} {measured:>11.3} {ratio:>6.2} {:>6.2}{verdict}",
                rehearsed / measured
            );
            let model = (rehearsed / measured).max(measured / rehearsed);
            models = (models.0 + 1, models.1 + usize::from(model <= WITHIN));
            let good = usize::from(off <= WITHIN);
            if others > DISTURBED {
                disturbed = (disturbed.0 + 1, disturbed.1 + good);
                continue;
            }
            count += 1;
            within += good;
            if off > worst.0 {
                worst = (off, format!("{words} on the {space}"));
            }
        }
    }
    println!("\n{within} of {count} within {WITHIN}x; the worst is off by {:.2}x: {}", worst.0, worst.1);
    println!("rehearsed with the run's own times, {} of {} within {WITHIN}x", models.1, models.0);
    println!("of {} disturbed rows, {} within {WITHIN}x", disturbed.0, disturbed.1);
    // The folder holds only what this program wrote.
    let _ = std::fs::remove_dir_all(&folder);
}

/// The profile of this machine, or of the file that `PROFILE` names, to repeat a comparison.
fn calibrated(device: &Device) -> Profile {
    if let Some(path) = std::env::var_os("PROFILE").map(PathBuf::from)
        && let Ok(text) = std::fs::read_to_string(&path)
    {
        return Profile::read("PROFILE", &text).unwrap_or_else(|error| panic!("{error}"));
    }
    let start = Instant::now();
    let profile = Calibration::on(Some(device)).measure().unwrap_or_else(|error| panic!("{error}"));
    println!("calibrated in {:.1} s", start.elapsed().as_secs_f64());
    if let Some(path) = std::env::var_os("PROFILE") {
        std::fs::write(path, profile.write()).unwrap_or_else(|error| panic!("{error}"));
    }
    profile
}

impl Case {
    fn words(&self) -> String {
        let fps = self.fps.map_or(String::new(), |fps| format!(" --fps {fps}"));
        let batch = if self.batch > 1 { format!(" --batch {}", self.batch) } else { String::new() };
        let in_flight = if self.in_flight == 2 { String::new() } else { format!(" --in-flight {}", self.in_flight) };
        format!("{}{fps}{batch}{in_flight}", self.text)
    }

    /// Plans the case and runs it several times.
    fn compare(&self, space: Space, folder: &Path, profile: &Profile, device: &Device) -> Compared {
        let file = |name: &str| folder.join(name).display().to_string();
        let text = self.text.replace("OUT", &file("out")).replace("IN", &file("in.y4m"));
        let options = RunOptions {
            pace: self.fps.and_then(|fps| Rate::new(fps, 1)),
            ..RunOptions::new().only(space).batch(self.batch).in_flight(self.in_flight)
        };
        let options = options.latency_ms(3.6e6).frames(FRAMES).longest_ms(RUN_MS);
        let builder = Pipeline::parse(text).profile(profile.clone()).options(options.clone());
        let builder = if space == Space::Gpu { builder.device(device) } else { builder };
        let (mut best, begun): (Option<Compared>, _) = (None, Instant::now());
        for round in 0..ROUNDS {
            if round > 1 && begun.elapsed() > ENOUGH || best.as_ref().is_some_and(|best| best.others < 0.02) {
                break;
            }
            let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{}: {error}", self.text));
            let before = Ticks::now();
            let report = pipeline.run().unwrap_or_else(|error| panic!("{}: {error}", self.text));
            let others = Ticks::now().others_since(&before);
            let need = report.latency_need.expect("the options have a need");
            let measured = need.p50_ms.expect("frames arrive");
            if best.as_ref().is_none_or(|best| others < best.others) {
                let rehearsed = rehearsed(pipeline.plan(), &report, profile, &options);
                best = Some(Compared { predicted: need.predicted_ms, measured, rehearsed, others });
            }
        }
        best.expect("there are rounds")
    }
}

/// Median latencies in milliseconds, and the part of the machine that other programs used.
struct Compared {
    predicted: f64,
    measured: f64,
    rehearsed: f64,
    others: f64,
}

/// The latency in milliseconds that a plan predicts with the times of a run instead of its costs. The times include what
/// lanes take from each other, so the rehearsal gives each of them a machine of its own.
fn rehearsed(plan: &Plan, report: &Report, profile: &Profile, options: &RunOptions) -> f64 {
    let mut timed = plan.clone();
    let most = report.units.iter().map(|unit| unit.calls).max().unwrap_or(1).max(1);
    for unit in report.units.iter().filter(|unit| !unit.handlers.is_empty()) {
        let per_frame_ns = unit.mean_us * 1e3 * unit.calls as f64 / most as f64;
        for (at, name) in unit.handlers.iter().enumerate() {
            let Some(handler) = timed.handlers.iter_mut().find(|handler| handler.name == *name) else { continue };
            handler.cost_ns = if at == 0 { per_frame_ns as u64 } else { 0 };
            if let Some(group) = handler.group {
                timed.groups[group].pass_ns = 0;
            }
        }
    }
    let mut profile = profile.clone();
    profile.cpu.threads.value = 1e3;
    if let Some(gpu) = &mut profile.gpu {
        gpu.software = false;
    }
    timed.rehearsed_ns(&profile, options).map_or(0.0, |ns| ns as f64 / 1e6)
}

/// Clock ticks since the machine started.
struct Ticks {
    all: f64,
    idle: f64,
    own: f64,
}

impl Ticks {
    /// Zeros on systems other than Linux, on which every run then counts as undisturbed.
    fn now() -> Ticks {
        let numbers = |path: &str, skip: usize| -> Vec<f64> {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().next().unwrap_or_default();
            // The name of a program stands in parentheses and may contain spaces.
            let line = line.rsplit_once(')').map_or(line, |(_, rest)| rest);
            line.split_whitespace().skip(skip).filter_map(|word| word.parse().ok()).collect()
        };
        // user, nice, system, idle, iowait, irq, softirq, steal
        let machine = numbers("/proc/stat", 1);
        let own = numbers("/proc/self/stat", 1);
        Ticks {
            all: machine.iter().take(8).sum(),
            idle: machine.iter().skip(3).take(2).sum(),
            own: own.iter().skip(10).take(2).sum(),
        }
    }

    fn others_since(&self, before: &Ticks) -> f64 {
        let all = self.all - before.all;
        let others = all - (self.idle - before.idle) - (self.own - before.own);
        if all > 0.0 { (others / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}
