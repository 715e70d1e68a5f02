//! The Python package: `cargo xtask python` builds the wheel, and the step `python` of the tests checks it.
//!
//! The step builds the wheel with the profile of the other tests, whose artifacts it shares: only the crate itself and
//! its bindings are compiled. It installs the wheel into a clean environment and runs pytest, strict mypy and stubtest
//! there, and imports the same wheel with every Python from 3.11 on that is in PATH.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::count::{Count, Runner};
use crate::{apt, shell};

/// Where wheels for users are built.
const WHEELS: &str = "target/wheels";
/// Environments and wheels of tests.
const FOLDER: &str = "target/python";
/// What the tests need. The versions are those that the stubs were written with.
const PACKAGES: [&str; 4] = ["maturin==1.16.0", "mypy==2.4.1", "numpy>=2,<3", "pytest>=8,<10"];
/// Interpreters with which the wheel is tried.
const VERSIONS: [&str; 5] = ["python3.11", "python3.12", "python3.13", "python3.14", "python3.15"];

/// Builds the wheel for users.
pub(crate) fn wheel() -> anyhow::Result<()> {
    let python = interpreter()?;
    let tools = environment(&python, "tools", &PACKAGES[..1])?;
    build(&tools, &["--release"], WHEELS)?;
    let wheel = newest_wheel(WHEELS)?;
    println!("{}", wheel.display());
    Ok(())
}

/// Builds a wheel and tests it.
pub(crate) fn test(count: &mut Count) -> anyhow::Result<()> {
    let python = interpreter()?;
    let tested = environment(&python, "tested", &PACKAGES)?;
    let wheels = format!("{FOLDER}/wheels");
    build(&tested, &["--profile", "dev"], &wheels)?;
    let wheel = newest_wheel(&wheels)?;
    install(&tested, &["--no-deps", "--force-reinstall", &wheel.to_string_lossy()])?;
    let mut pytest = in_environment(&tested, "python");
    pytest.args(["-B", "-m", "pytest", "-p", "no:cacheprovider", "crates/python/tests"]);
    let outcome = shell::overhear(pytest, &mut |line| count.hear(Runner::Pytest, line));
    let mut mypy = in_environment(&tested, "mypy");
    mypy.args(["--config-file", "crates/python/pyproject.toml", "--cache-dir", "target/python/mypy"]);
    mypy.args(["-p", "vramp"]);
    outcome.and(shell::run(mypy))?;
    let mut typed = in_environment(&tested, "mypy");
    typed.args(["--config-file", "crates/python/pyproject.toml", "--cache-dir", "target/python/mypy"]);
    typed.args(["crates/python/tests/typed.py"]);
    shell::run(typed)?;
    let mut stubtest = in_environment(&tested, "stubtest");
    stubtest.args(["--mypy-config-file", "crates/python/pyproject.toml", "--allowlist", "crates/python/stubtest.txt"]);
    stubtest.args(["--ignore-unused-allowlist", "vramp"]);
    shell::run(stubtest)?;
    with_every_version(&tested, &wheel)
}

/// Imports the wheel and runs a pipeline with every interpreter in PATH, without numpy.
fn with_every_version(tools: &Path, wheel: &Path) -> anyhow::Result<()> {
    for version in VERSIONS {
        let Some(python) = shell::find(version).filter(is_usable) else { continue };
        let own = shell::root().join(FOLDER).join(version);
        let mut make = shell::command(python);
        make.args(["-m", "venv", "--clear", "--without-pip"]).arg(&own);
        shell::run(make)?;
        let mut pip = in_environment(tools, "python");
        pip.args(["-m", "pip", "--python"]).arg(own.join("bin/python"));
        pip.args(["install", "--quiet", "--no-deps", "--disable-pip-version-check"]).arg(wheel);
        shell::run(pip)?;
        let mut smoke = in_environment(&own, "python");
        smoke.args(["-B", "crates/python/tests/without_numpy.py"]);
        shell::run(smoke).with_context(|| format!("the wheel does not work with {version}"))?;
    }
    Ok(())
}

/// A Python from 3.11 on that can make environments; installed if there is none.
fn interpreter() -> anyhow::Result<PathBuf> {
    let find = || ["python3"].into_iter().chain(VERSIONS).filter_map(shell::find).find(is_usable);
    if let Some(python) = find() {
        return Ok(python);
    }
    eprintln!("xtask: Python 3.11 or newer with `venv` is missing: the Python package is built and tested with it");
    apt::install(&["python3", "python3-venv"])?;
    match find() {
        Some(python) => Ok(python),
        None => bail!("no Python in PATH is 3.11 or newer and has `venv`, even with python3-venv installed"),
    }
}

fn is_usable(python: &PathBuf) -> bool {
    let mut command = shell::command(python);
    let code = "import sys, ensurepip, venv; assert sys.version_info >= (3, 11) and 't' not in sys.abiflags";
    command.args(["-c", code]);
    shell::works(command)
}

/// A clean environment with these packages.
fn environment(python: &Path, name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = shell::root().join(FOLDER).join(name);
    let mut make = shell::command(python);
    make.args(["-m", "venv", "--clear"]).arg(&folder);
    shell::run(make)?;
    install(&folder, packages)?;
    Ok(folder)
}

fn install(environment: &Path, packages: &[&str]) -> anyhow::Result<()> {
    let mut pip = in_environment(environment, "python");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    shell::run(pip)
}

fn in_environment(environment: &Path, program: &str) -> Command {
    shell::command(environment.join("bin").join(program))
}

/// Builds the wheel into a folder, which then holds no other wheel of this package.
fn build(tools: &Path, profile: &[&str], folder: &str) -> anyhow::Result<()> {
    let whole = shell::root().join(folder);
    if whole.is_dir() {
        for entry in std::fs::read_dir(&whole)?.flatten().filter(|entry| is_wheel(&entry.path())) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let mut maturin = in_environment(tools, "maturin");
    maturin.args(["build", "--locked", "--strip", "--manifest-path", "crates/python/Cargo.toml", "--out", folder]);
    shell::run({
        maturin.args(profile);
        maturin
    })
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "whl")
}

fn newest_wheel(folder: &str) -> anyhow::Result<PathBuf> {
    let entries = std::fs::read_dir(shell::root().join(folder)).with_context(|| format!("{folder} has no wheel"))?;
    let wheel = entries.flatten().map(|entry| entry.path()).find(|path| is_wheel(path));
    wheel.with_context(|| format!("maturin left no wheel in {folder}"))
}
