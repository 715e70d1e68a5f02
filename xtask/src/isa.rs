//! Asks GPUs' own compilers what they make of the kernels. `cargo xtask isa` prints it, `cargo xtask test --only isa`
//! compares it with a recorded table, and `cargo xtask isa --record` writes that table.
//!
//! The compiler is RADV of Mesa 25, which compiles for AMD's GPUs without one. The program crates/isa compiles the
//! kernels for one GPU and prints a table; this module starts it once for each GPU and joins the tables.
//!
//! Invariant: counts are compared only if the driver is the one that made the table. Registers are checked with any.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::count::Count;
use crate::{apt, instructions, shell};

/// The GPUs, by the names that `RADV_FORCE_FAMILY` takes: GCN 5, RDNA 2, RDNA 3, RDNA 4.
const GPUS: [&str; 4] = ["vega10", "navi21", "navi31", "gfx1201"];
const TABLE: &str = "benches/isa.txt";
const FOLDER: &str = "target/isa";
const RECORD: &str = "cargo xtask isa --record";

/// The options of `cargo xtask isa`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options<'a> {
    /// Kernels whose names contain this word.
    only: Option<&'a str>,
    /// A revision to compare with.
    against: Option<&'a str>,
    /// A kernel whose machine code is printed.
    code: Option<&'a str>,
    output: Output,
    /// Files with kernels, instead of vramp's own.
    files: Vec<&'a str>,
}

/// What to do with the tables.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// Prints them.
    #[default]
    Show,
    Json,
    /// Prints a model of a frame on real cards.
    Frames,
    /// Prints the rates of profiles.
    Rates,
    /// Writes the table that later tables are compared with.
    Record,
}

/// Prints what compilers make of the kernels.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let options = Options::read(words)?;
    let driver =
        Driver::found()?.context("no RADV of Mesa 25 here: `scripts/lavapipe25.sh target/mesa25` brings it")?;
    let program = built()?;
    if let Some(kernel) = options.code {
        let mut commands = GPUS.map(|gpu| driver.command(&program, gpu, &["code", gpu, kernel]));
        return commands.iter_mut().try_for_each(|command| finished(command.spawn()?));
    }
    let before = options.against.map(recorded_at).transpose()?;
    let tables = driver.compile(&program, &options)?;
    let print = |words: &[&str]| {
        let mut command = shell::command(&program);
        command.args(words).args(&tables);
        finished(command.spawn()?)
    };
    if let Some(before) = before {
        return print(&["against", &before.to_string_lossy()]);
    }
    match options.output {
        Output::Show => print(&["show"]),
        Output::Json => print(&["json"]),
        Output::Frames => print(&["frames"]),
        Output::Rates => print(&["rates"]),
        Output::Record => {
            let table = shell::command(&program).arg("join").args(&tables).stderr(Stdio::inherit()).output()?;
            ensure!(table.status.success(), "the tables could not be joined");
            let path = shell::root().join(TABLE);
            std::fs::write(path, table.stdout).with_context(|| format!("{TABLE} cannot be written"))
        }
    }
}

/// Compiles every kernel and compares with the table. Every row counts as one test in `tests`.
pub(crate) fn check(tests: &mut Count) -> anyhow::Result<()> {
    let Some(driver) = Driver::found()? else {
        println!("NOT CHECKED: there is no RADV of Mesa 25 here, see scripts/lavapipe25.sh");
        return Ok(());
    };
    let program = built()?;
    let tables = driver.compile(&program, &Options::default())?;
    let mut command = shell::command(&program);
    command.arg("check").arg(TABLE).args(&tables);
    let output = command.stderr(Stdio::inherit()).output().context("the check could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let (rows, wrong) = outcome(&text).context("the check printed no counts; its error is above")?;
    tests.passed += rows - wrong;
    tests.failed += wrong;
    ensure!(
        wrong == 0 && output.status.success(),
        "{wrong} of {rows} rows are wrong; make the kernels as cheap as before, or record the new counts with `{RECORD}` \
         and give the reason in the commit"
    );
    Ok(())
}

/// The counts of the check's last line: `8 rows, 1 wrong`.
fn outcome(text: &str) -> Option<(u64, u64)> {
    let (rows, wrong) = text.lines().last()?.split_once(" rows, ")?;
    Some((rows.parse().ok()?, wrong.strip_suffix(" wrong")?.parse().ok()?))
}

impl<'a> Options<'a> {
    fn read(words: &[&'a str]) -> anyhow::Result<Options<'a>> {
        let mut options = Options::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word {
                "--only" => options.only = Some(value()?),
                "--against" => options.against = Some(value()?),
                "--code" => options.code = Some(value()?),
                "--json" => options.output = Output::Json,
                "--frames" => options.output = Output::Frames,
                "--rates" => options.output = Output::Rates,
                "--record" => options.output = Output::Record,
                file if Path::new(file).extension().is_some_and(|end| end == "wgsl") => options.files.push(file),
                _ => bail!("`{word}` is not an option of isa"),
            }
        }
        let parts = options.only.is_some() || !options.files.is_empty();
        ensure!(!(options.output == Output::Record && parts), "a table of some kernels cannot be recorded");
        ensure!(options.only.is_none() || options.files.is_empty(), "`--only` is for vramp's own kernels");
        Ok(options)
    }
}

/// RADV, unpacked below `target`.
struct Driver {
    /// The file that tells the Vulkan loader where the driver is.
    manifest: PathBuf,
    libraries: PathBuf,
}

impl Driver {
    /// Unpacks the driver if it is not there. `None` if that is not possible.
    fn found() -> anyhow::Result<Option<Driver>> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Ok(None);
        }
        apt::provide()?;
        apt::second_driver();
        let libraries = shell::root().join("target/mesa25/usr/lib/x86_64-linux-gnu");
        let library = libraries.join("libvulkan_radeon.so");
        if !library.is_file() {
            return Ok(None);
        }
        let folder = shell::root().join(FOLDER);
        std::fs::create_dir_all(&folder).with_context(|| format!("{FOLDER} cannot be made"))?;
        let manifest = folder.join("radeon_icd.json");
        std::fs::write(&manifest, manifest_of(&library)).with_context(|| format!("{FOLDER} cannot be written"))?;
        Ok(Some(Driver { manifest, libraries }))
    }

    /// The program, compiling for this GPU.
    fn command(&self, program: &Path, gpu: &str, words: &[&str]) -> Command {
        let mut command = shell::command(program);
        command.args(words);
        for variable in ["RADV_DEBUG", "RADV_PERFTEST", "ACO_DEBUG", "VK_INSTANCE_LAYERS", "VK_DRIVER_FILES"] {
            command.env_remove(variable);
        }
        let mut libraries = self.libraries.clone().into_os_string();
        if let Some(more) = std::env::var_os("LD_LIBRARY_PATH").filter(|more| !more.is_empty()) {
            libraries.push(":");
            libraries.push::<OsString>(more);
        }
        command.env("LD_LIBRARY_PATH", libraries).env("VK_ICD_FILENAMES", &self.manifest);
        // A cached pipeline has no figures.
        command.env("RADV_FORCE_FAMILY", gpu).env("MESA_SHADER_CACHE_DISABLE", "true");
        command
    }

    /// Compiles for all GPUs at the same time, and returns the files of the tables.
    fn compile(&self, program: &Path, options: &Options<'_>) -> anyhow::Result<Vec<PathBuf>> {
        let folder = shell::root().join(FOLDER);
        let mut running: Vec<(PathBuf, PathBuf, Child)> = Vec::new();
        for gpu in GPUS {
            let mut command = self.command(program, gpu, &["compile", gpu]);
            command.args(options.only.map(|word| ["--only", word]).into_iter().flatten()).args(&options.files);
            let (table, errors) = (folder.join(format!("{gpu}.txt")), folder.join(format!("{gpu}.err")));
            command.stdout(File::create(&table)?).stderr(File::create(&errors)?);
            running.push((table, errors, command.spawn().context("the program could not be started")?));
        }
        let mut tables = Vec::new();
        for (table, errors, mut child) in running {
            if !child.wait()?.success() {
                bail!("{}", std::fs::read_to_string(&errors)?.trim());
            }
            tables.push(table);
        }
        Ok(tables)
    }
}

/// The manifest of a driver at this path.
fn manifest_of(library: &Path) -> String {
    let library = library.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "{{\"ICD\": {{\"api_version\": \"1.4.0\", \"library_path\": \"{library}\"}}, \"file_format_version\": \"1.0.0\"}}\n"
    )
}

/// Builds the program with everything else, so that no dependency is built twice.
fn built() -> anyhow::Result<PathBuf> {
    instructions::built(&["build", "--workspace", "--bin", "vramp-isa"], "vramp-isa")
}

/// The table of a revision, in a file.
fn recorded_at(revision: &str) -> anyhow::Result<PathBuf> {
    let git = shell::command("git")
        .args(["show", &format!("{revision}:{TABLE}")])
        .output()
        .context("git cannot be started")?;
    ensure!(git.status.success(), "{revision} has no {TABLE}: {}", String::from_utf8_lossy(&git.stderr).trim());
    let file = shell::root().join(FOLDER).join("against.txt");
    std::fs::write(&file, git.stdout)?;
    Ok(file)
}

fn finished(mut child: Child) -> anyhow::Result<()> {
    ensure!(child.wait()?.success(), "the program failed; its error is above");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order() {
        let read = Options::read(&["--json", "--only", "blur", "--against", "HEAD~1"]).unwrap();
        let expected =
            Options { only: Some("blur"), against: Some("HEAD~1"), output: Output::Json, ..Options::default() };
        assert_eq!(read, expected);
        assert_eq!(Options::read(&["a.wgsl", "--frames", "b.wgsl"]).unwrap().files, ["a.wgsl", "b.wgsl"]);
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (words, expected) in [
            (&["--only"][..], "`--only` needs a value"),
            (&["fast"], "`fast` is not an option of isa"),
            (&["--record", "--only", "a"], "a table of some kernels cannot be recorded"),
            (&["--only", "a", "b.wgsl"], "`--only` is for vramp's own kernels"),
        ] {
            assert_eq!(Options::read(words).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn the_last_line_of_a_check_has_the_counts() {
        assert_eq!(outcome("a on b: not recorded\n8 rows, 1 wrong\n"), Some((8, 1)));
        assert_eq!(outcome("8 rows, 1 wrong\nmore"), None);
        assert_eq!(outcome(""), None);
    }

    #[test]
    fn the_manifest_names_the_library() {
        let text = manifest_of(Path::new("/a \"b\"/lib.so"));
        assert!(text.contains(r#""library_path": "/a \"b\"/lib.so""#), "{text}");
    }
}
