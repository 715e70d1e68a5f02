//! Counts the instructions of key paths. `cargo xtask test --only instructions` compares the counts with a recorded
//! table, and `cargo xtask instructions --record` writes that table.
//!
//! Times on a shared machine vary by more than most regressions cost; counts under callgrind do not vary. The paths are
//! in benches/instructions.rs, which is built in the same way as tests, so that no dependency is built twice. The table
//! is beside that file.
//!
//! Counts depend on the compiler, on whether the build is incremental, on the C library and on the vector instructions
//! of the machine. The table records these four conditions and the target.
//!
//! Invariant: counts are compared only if all conditions are the same as in the table. Otherwise the step reports that
//! nothing was compared.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::count::Count;
use crate::{apt, shell};

/// The allowed change of a count in percent, up or down. A lower count must also be recorded, so that a later increase
/// to the old count is noticed.
const BAND_PERCENT: f64 = 3.0;
const TABLE: &str = "benches/instructions.txt";
/// The function of benches/instructions.rs whose instructions callgrind counts.
const COUNTED: &str = "*instructions::run_counted*";
const RECORD: &str = "cargo xtask instructions --record";

/// Counts by path, and the conditions under which they were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Table {
    /// Everything besides the code that affects counts, as key and value.
    made_with: Vec<(String, String)>,
    counts: Vec<(String, u64)>,
}

/// Compares the counts of the current code with the table. Every path counts as one test in `tests`.
pub(crate) fn check(tests: &mut Count) -> anyhow::Result<()> {
    let Some(now) = measure()? else { return Ok(()) };
    let recorded = std::fs::read_to_string(shell::root().join(TABLE))
        .with_context(|| format!("{TABLE} cannot be read; `{RECORD}` makes it"))?;
    let recorded = Table::read(&recorded)?;
    let other = recorded.other_making(&now);
    let rows = compare(&recorded.counts, &now.counts);
    print!("{}", shown(&rows));
    if !other.is_empty() {
        println!("NOT COMPARED: {TABLE} was recorded with {}.", other.join("; "));
        println!(
            "With CARGO_INCREMENTAL=0 the build is the same as in CI. With another compiler or machine, record the old"
        );
        println!("code first with `{RECORD}`, then run this step on the new code.");
        return Ok(());
    }
    let failed = rows.iter().filter(|row| !row.is_fine()).count();
    tests.passed += (rows.len() - failed) as u64;
    tests.failed += failed as u64;
    ensure!(
        failed == 0,
        "{failed} of {} counts are outside of {BAND_PERCENT} %; make the path as cheap as before, or record the new counts \
         with `{RECORD}` and give the reason in the commit",
        rows.len()
    );
    Ok(())
}

/// Writes a new table.
pub(crate) fn record() -> anyhow::Result<()> {
    let Some(now) = measure()? else { bail!("counts are recorded on Linux on x86-64 only") };
    let path = shell::root().join(TABLE);
    let before = std::fs::read_to_string(&path).ok().and_then(|text| Table::read(&text).ok()).unwrap_or_default();
    print!("{}", shown(&compare(&before.counts, &now.counts)));
    std::fs::write(&path, now.to_string()).with_context(|| format!("{TABLE} cannot be written"))
}

/// The counts of every path in the current code. `None` if callgrind does not run here.
fn measure() -> anyhow::Result<Option<Table>> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("NOT COMPARED: instructions are counted on Linux on x86-64 only");
        return Ok(None);
    }
    apt::provide()?;
    let program = build()?;
    let listed = answer(&mut shell::command(&program))?;
    let mut counts = Vec::new();
    for name in listed.lines() {
        counts.push((name.to_owned(), count(&program, name).with_context(|| format!("path `{name}`"))?));
    }
    Ok(Some(Table { made_with: made_with()?, counts }))
}

/// Builds benches/instructions.rs in the same way as `cargo xtask test` builds tests, so that the two builds share
/// all dependencies.
fn build() -> anyhow::Result<PathBuf> {
    built(&["test", "--no-run", "--workspace", "--bench", "instructions"], "instructions-")
}

/// Runs this command of cargo, and returns the path of the built program whose name starts with `name`.
pub(crate) fn built(words: &[&str], name: &str) -> anyhow::Result<PathBuf> {
    let mut command = shell::cargo(words.iter().copied().chain(["--message-format=json-render-diagnostics"]));
    command.stderr(std::process::Stdio::inherit());
    let output = answer(&mut command)?;
    output
        .lines()
        .rev()
        .find_map(|line| executable(line, name))
        .with_context(|| format!("cargo named no program `{name}`"))
}

/// The path of the built program, if a line of cargo's messages names it.
fn executable(line: &str, name: &str) -> Option<PathBuf> {
    let path = line.split_once("\"executable\":\"")?.1.split('"').next()?;
    Path::new(path).file_name()?.to_str()?.starts_with(name).then(|| path.into())
}

/// Instructions of one run of a path.
fn count(program: &Path, name: &str) -> anyhow::Result<u64> {
    let out = program.with_extension(format!("{name}.callgrind"));
    let mut command = shell::command("valgrind");
    // The environment is cleared, because it is stored on the stack and can change the alignment of other data.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["--tool=callgrind", "--quiet", "--collect-atstart=no"]);
    command.arg(format!("--toggle-collect={COUNTED}"));
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(program).arg(name);
    let output = answer(&mut command)?;
    let runs: u64 =
        output.trim().strip_prefix("runs ").context("the program did not print the number of runs")?.parse()?;
    let profile = std::fs::read_to_string(&out).with_context(|| format!("no profile at {}", out.display()))?;
    std::fs::remove_file(&out)?;
    let all = total(&profile).context("the profile has no total")?;
    ensure!(all > 0, "callgrind counted nothing: is there a function `{COUNTED}`?");
    Ok(all / runs.max(1))
}

/// The total of a callgrind profile.
fn total(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

/// Everything besides the code that affects counts, on this machine.
fn made_with() -> anyhow::Result<Vec<(String, String)>> {
    let rustc = answer(shell::command(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV"))?;
    let release = rustc.lines().next().and_then(|line| line.strip_prefix("rustc ")).unwrap_or("unknown");
    let target = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("unknown");
    let libc = answer(shell::command("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_else(|_| "unknown".to_owned());
    let pairs = [
        ("rustc", release),
        ("target", target),
        ("incremental", incremental(std::env::var("CARGO_INCREMENTAL").ok().as_deref())),
        ("libc", libc.trim()),
        ("vectors", vectors()),
    ];
    Ok(pairs.map(|(word, value)| (word.to_owned(), value.to_owned())).into())
}

/// Interprets `CARGO_INCREMENTAL` as cargo does. Incremental builds split code into more units and inline less: the
/// path `lend` then has 30 % more instructions.
fn incremental(variable: Option<&str>) -> &'static str {
    if matches!(variable, None | Some("1")) { "on" } else { "off" }
}

/// The widest vectors that a program under valgrind sees on this machine. valgrind does not support AVX-512.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if std::arch::is_x86_feature_detected!("avx2") { "avx2" } else { "sse2" };
    #[cfg(not(target_arch = "x86_64"))]
    "unknown"
}

/// The output of a command. Fails if the command fails.
fn answer(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?} could not be started"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Table {
    /// Reads the format that `Display` writes.
    fn read(text: &str) -> anyhow::Result<Table> {
        let mut table = Table::default();
        for (at, line) in text.lines().enumerate() {
            let place = || format!("{TABLE}, line {}: `{line}`", at + 1);
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let (word, rest) = line.split_once(' ').with_context(|| format!("{}: expected two words", place()))?;
            let rest = rest.trim();
            if let Some(word) = word.strip_suffix(':') {
                table.made_with.push((word.to_owned(), rest.to_owned()));
                continue;
            }
            let count = rest.parse().with_context(|| format!("{}: expected a count", place()))?;
            ensure!(table.counts.iter().all(|(name, _)| name != word), "{}: `{word}` is listed twice", place());
            table.counts.push((word.to_owned(), count));
        }
        Ok(table)
    }

    /// How the conditions of another table differ from those of this table, as text.
    fn other_making(&self, other: &Table) -> Vec<String> {
        let find = |table: &Table, word: &str| {
            let found = table.made_with.iter().find(|(key, _)| key == word);
            found.map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
        };
        let words = self.made_with.iter().chain(&other.made_with).map(|(word, _)| word);
        let mut different: Vec<String> = Vec::new();
        for word in words {
            let (one, two) = (find(self, word), find(other, word));
            let line = format!("{word} {one}, but now it is {two}");
            if one != two && !different.contains(&line) {
                different.push(line);
            }
        }
        different
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "# Instructions for one run of each path of instructions.rs; `{RECORD}` writes this.")?;
        self.made_with.iter().try_for_each(|(word, value)| writeln!(f, "{word}: {value}"))?;
        self.counts.iter().try_for_each(|(name, count)| writeln!(f, "{name} {count}"))
    }
}

/// A path with its recorded count and its current count.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    recorded: Option<u64>,
    now: Option<u64>,
}

impl Row {
    /// How much the count has grown, in percent.
    fn percent(&self) -> Option<f64> {
        let (recorded, now) = (self.recorded? as f64, self.now? as f64);
        Some((now - recorded) / recorded.max(1.0) * 100.0)
    }

    fn is_fine(&self) -> bool {
        self.percent().is_some_and(|percent| percent.abs() <= BAND_PERCENT)
    }
}

/// A row for every path: the current paths in their order, then the paths that are only recorded.
fn compare(recorded: &[(String, u64)], now: &[(String, u64)]) -> Vec<Row> {
    let of = |counts: &[(String, u64)], name: &str| counts.iter().find(|(other, _)| other == name).map(|(_, n)| *n);
    let gone = recorded.iter().filter(|(name, _)| of(now, name).is_none());
    let names = now.iter().chain(gone).map(|(name, _)| name);
    names.map(|name| Row { name: name.clone(), recorded: of(recorded, name), now: of(now, name) }).collect()
}

fn shown(rows: &[Row]) -> String {
    let mut text = format!("{:14} {:>14} {:>14} {:>11}\n", "instructions", "recorded", "now", "difference");
    for row in rows {
        let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
        let percent = row.percent().map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.2} %"));
        let verdict = match (row.recorded, row.now) {
            (None, _) => "  not recorded",
            (_, None) => "  gone",
            _ if row.is_fine() => "",
            _ => "  OUTSIDE",
        };
        let (recorded, now) = (number(row.recorded), number(row.now));
        let _ = writeln!(text, "{:14} {recorded:>14} {now:>14} {percent:>11}{verdict}", row.name);
    }
    text
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn table(rustc: &str, pairs: &[(&str, u64)]) -> Table {
        Table { made_with: vec![("rustc".to_owned(), rustc.to_owned())], counts: counts(pairs) }
    }

    #[test]
    fn a_table_reads_back_as_it_was_written() {
        let table = table("1.90.0 (1159e78c4 2025-09-14)", &[("blur", 123), ("plan_1000", 4_567_890_123)]);
        assert_eq!(Table::read(&table.to_string()).unwrap(), table);
    }

    #[test]
    fn a_table_that_is_not_one_is_refused_with_its_line() {
        for (text, expected) in [
            ("# a\nblur", "line 2: `blur`: expected two words"),
            ("blur many", "line 1: `blur many`: expected a count"),
            ("blur 1\nblur 2", "line 2: `blur 2`: `blur` is listed twice"),
        ] {
            let error = Table::read(text).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn three_percent_up_or_down_is_fine_and_more_is_not() {
        let recorded = counts(&[("a", 10_000), ("b", 10_000), ("c", 10_000), ("d", 10_000), ("e", 10_000)]);
        let now = counts(&[("a", 10_300), ("b", 9_700), ("c", 10_301), ("d", 9_699), ("e", 10_000)]);
        let fine: Vec<bool> = compare(&recorded, &now).iter().map(Row::is_fine).collect();
        assert_eq!(fine, [true, true, false, false, true]);
    }

    #[test]
    fn paths_that_are_new_or_gone_are_not_fine() {
        let rows = compare(&counts(&[("old", 5), ("both", 5)]), &counts(&[("both", 5), ("new", 5)]));
        assert_eq!(
            shown(&rows).lines().skip(1).collect::<Vec<_>>(),
            [
                "both                        5              5     +0.00 %",
                "new                         -              5           -  not recorded",
                "old                         5              -           -  gone",
            ]
        );
        assert_eq!(rows.iter().map(Row::is_fine).collect::<Vec<_>>(), [true, false, false]);
    }

    #[test]
    fn a_count_outside_of_the_band_is_marked() {
        let rows = compare(&counts(&[("blur", 1_234_567)]), &counts(&[("blur", 1_300_000)]));
        assert!(
            shown(&rows).ends_with("blur                1,234,567      1,300,000     +5.30 %  OUTSIDE\n"),
            "{rows:?}"
        );
    }

    #[test]
    fn another_compiler_is_named_and_the_same_one_is_not() {
        let (one, two) = (table("1.90.0", &[]), table("1.91.0", &[]));
        assert_eq!(one.other_making(&two), ["rustc 1.90.0, but now it is 1.91.0"]);
        assert!(one.other_making(&one.clone()).is_empty());
        assert_eq!(Table::default().other_making(&one), ["rustc nothing, but now it is 1.90.0"]);
    }

    #[test]
    fn builds_are_incremental_by_default() {
        assert_eq!([None, Some("1"), Some("0"), Some("")].map(incremental), ["on", "on", "off", "off"]);
    }

    #[test]
    fn totals_and_programs_are_found_where_callgrind_and_cargo_write_them() {
        assert_eq!(total("version: 1\nevents: Ir\nfn=(1)\n12 34\ntotals: 98765\n"), Some(98765));
        assert_eq!(total("events: Ir\n"), None);
        let line = r#"{"reason":"compiler-artifact","executable":"/t/deps/instructions-0f","fresh":true}"#;
        assert_eq!(executable(line, "instructions-"), Some("/t/deps/instructions-0f".into()));
        assert_eq!(executable(r#"{"executable":"/t/deps/plan-0f"}"#, "instructions-"), None);
        assert_eq!(executable(r#"{"executable":null}"#, "instructions-"), None);
    }
}
