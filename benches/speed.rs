//! The workloads of `vramp bench` on one CPU thread, compared with `OpenCV` if it is installed.
//!
//! `cargo bench --bench speed [-- PYTHON [WORK...]]` alternates with `benches/peers/opencv.py`, run by that interpreter
//! (default: `python3`). CPU time of the whole process counts, because machines are shared. Every workload has to be at
//! least as fast as in `OpenCV`; those that vramp is made for, by the factors below.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use vramp::bench::{Bench, Effort, WORKLOADS, Workload};
use vramp::plan::{RunOptions, Size, Space};

const ROUNDS: usize = 3;
const SIZE: Size = Size { width: 1920, height: 1080 };
const EFFORT: Effort = Effort { runs: 3, run: Duration::from_millis(200) };

/// Required speedups: a workload, its name in the measurement of `OpenCV`, and the factor.
const WANTED: [(&str, &str, f64); 3] =
    [("chain5", "chain5", 5.0), ("pipe5_seed_rgba", "demo_copying", 15.0), ("pipe5_seed_rgba", "demo_in_place", 1.0)];

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let python = words.next().unwrap_or_else(|| "python3".to_owned());
    let only: Vec<String> = words.collect();
    let works: Vec<&Workload> =
        WORKLOADS.iter().filter(|work| only.is_empty() || only.iter().any(|name| name == work.name)).collect();
    let bench = Bench::new();
    let mut own: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut others: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for work in &works {
            let measured =
                bench.measure(work, SIZE, EFFORT, &RunOptions::new().only(Space::Cpu).threads(1), |builder| builder);
            let measured = measured.unwrap_or_else(|error| panic!("{}: {error}", work.name));
            own.entry(work.name).or_default().push(measured.cpu_ms.unwrap_or(measured.ms_median));
        }
        for (work, ms) in opencv(&python, &only) {
            others.entry(work).or_default().push(ms);
        }
    }
    if others.is_empty() {
        println!("OpenCV is not installed: `pip install opencv-python-headless numpy`, then name that python\n");
    }
    println!("{SIZE}, one thread, ms of CPU time a frame, the best of {ROUNDS} rounds");
    println!("{:24} {:>8} {:>8} {:>7}  wanted", "", "vramp", "OpenCV", "ratio");
    for work in works {
        let peers: Vec<_> = WANTED.iter().filter(|(name, ..)| *name == work.name).collect();
        let ours = least(&own[work.name]);
        if peers.is_empty() {
            line(work.name, ours, others.get(work.name), 1.0);
        }
        for (_, peer, wanted) in peers {
            line(peer, ours, others.get(*peer), *wanted);
        }
    }
}

fn line(name: &str, ours: f64, theirs: Option<&Vec<f64>>, wanted: f64) {
    let Some(theirs) = theirs.map(|times| least(times)) else {
        println!("{name:24} {ours:>8.3} {:>8} {:>7}", "-", "-");
        return;
    };
    let ratio = theirs / ours;
    let verdict = if ratio >= wanted { "met" } else { "MISSED" };
    println!("{name:24} {ours:>8.3} {theirs:>8.3} {ratio:>6.2}x  {wanted}x {verdict}");
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::MAX, f64::min)
}

/// The measurements that the other program prints. Empty if it cannot run.
fn opencv(python: &str, only: &[String]) -> Vec<(String, f64)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/opencv.py");
    let peers = only.iter().flat_map(|name| {
        let named = WANTED.iter().filter(move |(work, ..)| work == name).map(|(_, peer, _)| (*peer).to_owned());
        named.chain([name.clone()])
    });
    let Ok(output) = Command::new(python).arg(script).args(peers).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let one = |line: &str| line.split_once(' ').and_then(|(work, ms)| Some((work.to_owned(), ms.parse().ok()?)));
    text.lines().filter_map(one).collect()
}
