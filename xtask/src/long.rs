//! `cargo xtask long`: tests the same properties as `cargo xtask test`, in far more cases.
//!
//! This module sets `VRAMP_LONG`, and each test then decides how many cases to run.

use anyhow::Context;

use crate::shell;

/// Fuzz targets. Each has a file in `fuzz/fuzz_targets` and a folder in `fuzz/seeds`.
const FUZZED: &[&str] = &["text", "toml", "tensor_file", "onnx", "lowering"];

/// Each row names a package, a test file of that package that runs with `VRAMP_LONG`, and the cases that the file then
/// covers.
const LONG: &[(&str, &str, &str)] = &[
    ("vramp-plan", "placement::", "placement against brute force"),
    ("vramp-plan", "depth::", "simulated runs of diamonds"),
    ("vramp", "soak::", "a million frames on the CPU, a hundred thousand on the GPU"),
    ("vramp", "random::", "10,000 random pipelines on the CPU, 1,500 on the GPU"),
    ("vramp", "live::", "1,000 changes of settings in running pipelines"),
    ("vramp", "endings::", "50,000 random graphs of joins and failures against the rules"),
    ("vramp-tensor", "store_threads::", "eight threads at one store, a minute in each space"),
    ("vramp-model", "hostile::", "files of many small parts, up to the bound of memory"),
    ("vramp-model", "mutations::", "graphs with unlucky numbers are planned or refused"),
    ("vramp", "budgets::", "pools against plans over more frames"),
    ("vramp-cli", "memory::", "every source, filter and sink under every limit on memory"),
];

/// Duration of each fuzz target: long enough to get past the seeds, short enough to run before every release.
const FUZZ_SECONDS: u32 = 60;

/// Runs each long test file, then each fuzz target.
pub(crate) fn run() -> anyhow::Result<()> {
    for (package, file, what) in LONG {
        let mut cargo = shell::cargo(["test", "--release", "--package", package, "--test", "integration", file]);
        cargo.env("VRAMP_LONG", "1");
        shell::run(cargo).context(*what)?;
    }

    if let Some(missing) = missing_for_fuzzing() {
        eprintln!("xtask: nothing was fuzzed: {missing}");
        return Ok(());
    }
    for target in FUZZED {
        // The fuzzer stores new inputs in the first folder. The second folder is in the repository and stays unchanged.
        let (found, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
        std::fs::create_dir_all(shell::root().join(&found)).with_context(|| format!("{found} cannot be made"))?;
        let mut fuzz = shell::command("cargo");
        fuzz.args(["+nightly", "fuzz", "run", target, &found, &seeds, "--"]);
        fuzz.arg(format!("-max_total_time={FUZZ_SECONDS}"));
        shell::run(fuzz)
            .with_context(|| format!("fuzzing {target}; the failing input is in fuzz/artifacts/{target}"))?;
    }
    Ok(())
}

fn missing_for_fuzzing() -> Option<&'static str> {
    let works = |words: [&str; 3]| {
        let mut cargo = shell::command("cargo");
        cargo.args(words);
        shell::works(cargo)
    };
    if !shell::root().join("fuzz/Cargo.toml").is_file() {
        Some("there is no fuzz folder")
    } else if !works(["+nightly", "version", "--quiet"]) {
        Some("fuzzing needs a nightly toolchain (`rustup toolchain install nightly`)")
    } else if !works(["+nightly", "fuzz", "--version"]) {
        Some("fuzzing needs cargo-fuzz (`cargo install cargo-fuzz --locked`)")
    } else {
        None
    }
}
