//! `vramp-isa`: what GPUs' own compilers make of vramp's kernels. `cargo xtask isa` runs it once for each GPU.
//!
//! `compile` asks the driver that the environment chooses, and prints a table of one GPU. The other commands read such
//! tables: they print them, compare them, check them, and model a frame on real cards.

mod cards;
mod check;
mod compiler;
mod disassembly;
mod kernels;
mod measure;
mod print;
mod rates;
mod spirv;
mod table;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use vramp::plan::Shader;

use compiler::Compiler;
use kernels::Kernel;
use spirv::Checks;
use table::Table;

const HELP: &str = "\
vramp-isa COMMAND

  compile GPU [--only WORD] [FILE.wgsl...]   compiles the kernels whose names contain WORD, or the files, and prints a
                                             table; the environment chooses the driver
  code GPU KERNEL|FILE.wgsl [--unchecked]    prints the texts of the driver for one kernel, at last its machine code
  show TABLE...                              prints tables for people
  frames TABLE...                            models a frame of 1920x1080 on real cards
  rates TABLE...                             prints the rates of the shipped profiles
  json TABLE...                              both as JSON
  against OLD TABLE...                       prints what differs from the table OLD
  check RECORDED TABLE...                    fails if a register is spilled or a count is not as recorded
  join TABLE...                              prints one table
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match obey(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("vramp-isa: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(words: &[&str]) -> anyhow::Result<ExitCode> {
    match words {
        ["compile", gpu, "--only", word] => print!("{}", compile(gpu, named(word)?)?),
        ["compile", gpu] => print!("{}", compile(gpu, kernels::all()?)?),
        ["compile", gpu, files @ ..] => print!("{}", compile(gpu, written(files)?)?),
        ["code", gpu, name] => code(gpu, name, Checks::On)?,
        ["code", gpu, name, "--unchecked"] => code(gpu, name, Checks::Off)?,
        ["show", tables @ ..] => print!("{}", print::table(&joined(tables)?)),
        ["frames", tables @ ..] => print!("{}", print::frames(&kernels::all()?, &joined(tables)?)),
        ["rates", tables @ ..] => print!("{}", rates::lines(&rates::rates(&kernels::all()?, &joined(tables)?)?)),
        ["json", tables @ ..] => println!("{}", print::json(&kernels::all()?, &joined(tables)?)),
        ["against", old, tables @ ..] => print!("{}", print::difference(&joined(&[old])?, &joined(tables)?)),
        ["check", recorded, tables @ ..] => return check(&joined(&[recorded])?, &joined(tables)?),
        ["join", tables @ ..] => print!("{}", joined(tables)?),
        [] | ["help" | "--help" | "-h"] => print!("{HELP}"),
        _ => bail!("`{}` is not a command\n\n{HELP}", words.join(" ")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The kernels whose names contain a word.
fn named(word: &str) -> anyhow::Result<Vec<Kernel>> {
    let mut kernels = kernels::all()?;
    kernels.retain(|kernel| kernel.name.contains(word));
    ensure!(!kernels.is_empty(), "no kernel is called `{word}`");
    Ok(kernels)
}

/// Kernels in files.
fn written(files: &[&str]) -> anyhow::Result<Vec<Kernel>> {
    let read = |file: &&str| {
        let wgsl = std::fs::read_to_string(file).with_context(|| (*file).to_owned())?;
        let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().replace(' ', "_");
        let shader = Shader { name: name.clone(), wgsl, bindings: Vec::new(), per_workgroup: 1 };
        Ok(Kernel::new(name, shader, None))
    };
    files.iter().map(read).collect()
}

fn compile(gpu: &str, kernels: Vec<Kernel>) -> anyhow::Result<Table> {
    let compiler = Compiler::open()?;
    let mut table = Table { driver: compiler.driver.clone(), rows: Vec::new() };
    for kernel in kernels {
        let made = spirv::translate(&kernel.shader.wgsl, Checks::On).and_then(|spirv| compiler.compile(&spirv));
        let row = made.and_then(|made| measure::row(gpu, &kernel.name, &made, kernel.rounds()));
        table.rows.push(row.with_context(|| format!("{} on {}", kernel.name, compiler.gpu))?);
    }
    Ok(table)
}

fn code(gpu: &str, name: &str, checks: Checks) -> anyhow::Result<()> {
    let is_file = Path::new(name).extension().is_some_and(|end| end == "wgsl");
    let kernels = if is_file { written(&[name])? } else { named(name)? };
    let compiler = Compiler::open()?;
    for kernel in kernels.iter().filter(|kernel| is_file || kernel.name == name) {
        let made = compiler.compile(&spirv::translate(&kernel.shader.wgsl, checks)?)?;
        println!("# {name} on {gpu}, waves of {}\n\n{}", made.wave, kernel.shader.wgsl);
        for (title, text) in &made.texts {
            println!("# {title}\n{text}");
        }
        for (figure, value) in &made.statistics {
            println!("# {figure}: {value}");
        }
    }
    Ok(())
}

/// Tables joined to one.
fn joined(files: &[&str]) -> anyhow::Result<Table> {
    let mut all = Table::default();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?;
        let table = Table::read(&text).with_context(|| (*file).to_owned())?;
        ensure!(
            all.driver.is_empty() || all.driver == table.driver,
            "{file} was made by {}, another by {}",
            table.driver,
            all.driver
        );
        all.driver = table.driver;
        all.rows.extend(table.rows);
    }
    Ok(all)
}

fn check(recorded: &Table, now: &Table) -> anyhow::Result<ExitCode> {
    let verdict = check::check(recorded, now);
    ensure!(verdict.rows > 0, "there are no rows to check");
    for line in &verdict.wrong {
        println!("{line}");
    }
    if let Some(why) = &verdict.not_compared {
        println!("NOT COMPARED: {why}");
    }
    println!("{} rows, {} wrong", verdict.rows, verdict.wrong.len());
    Ok(if verdict.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
