//! Adds up the summary lines of test runners.
//!
//! Reads the output of `cargo test`, cargo-nextest and pytest. The runner's exit code decides whether a run failed.

use std::fmt;

/// Tests that ran, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// The test runner. For a failing test, nextest also prints the lines that `cargo test` prints. To count no test twice,
/// only the summary lines of the runner in use are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Runner {
    Cargo,
    Nextest,
    Pytest,
}

impl Count {
    /// Adds the counts of one line of output, if the line is a summary.
    pub(crate) fn hear(&mut self, runner: Runner, line: &str) {
        let line = plain(line);
        match runner {
            // test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s
            Runner::Cargo => {
                if let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|line| line.split_once(". ")) {
                    self.add(counts, ';');
                }
            }
            // Summary [   0.006s] 5 tests run: 3 passed (1 flaky), 1 failed, 1 timed out, 0 skipped
            Runner::Nextest => {
                let summary = line.trim_start().strip_prefix("Summary [");
                if let Some((_, counts)) = summary.and_then(|line| line.split_once("run: ")) {
                    self.add(counts, ',');
                }
            }
            // ===== 1 failed, 12 passed, 1 error in 3.21s =====
            Runner::Pytest => {
                let line = line.trim_matches(['=', ' ']);
                let is_time = |time: &str| {
                    let seconds = time.split(' ').next().and_then(|word| word.strip_suffix('s'));
                    seconds.is_some_and(|seconds| seconds.parse::<f64>().is_ok())
                };
                if let Some((counts, _)) = line.rsplit_once(" in ").filter(|(_, time)| is_time(time)) {
                    self.add(counts, ',');
                }
            }
        }
    }

    fn add(&mut self, counts: &str, separator: char) {
        for part in counts.split(separator) {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            if what.starts_with("passed") {
                self.passed += number;
            } else if ["failed", "timed out", "exec failed", "error"].iter().any(|bad| what.starts_with(bad)) {
                self.failed += number;
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The line without terminal colours.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, coloured)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        rest = coloured.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(runner: Runner, lines: &[&str]) -> Count {
        let mut count = Count::default();
        for line in lines {
            count.hear(runner, line);
        }
        count
    }

    #[test]
    fn every_binary_of_cargo_test_is_added() {
        let lines = [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test a_test ... FAILED",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.25s",
        ];
        let seen = count(Runner::Cargo, &lines);
        assert_eq!(seen, Count { passed: 13, failed: 2 });
        assert_eq!(seen.to_string(), "13 passed, 2 failed");
    }

    #[test]
    fn the_summary_of_nextest_is_read_with_its_asides() {
        let lines = [
            "        PASS [   0.004s] vramp::tidy no_file_is_too_long",
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 6 filtered out; finished in 0.00s",
            "     Summary [   0.006s] 7/9 tests run: 4 passed (1 slow, 1 flaky), 2 failed, 1 timed out, 3 skipped",
        ];
        assert_eq!(count(Runner::Nextest, &lines), Count { passed: 4, failed: 3 });
        let one = "     Summary [   0.1s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(count(Runner::Nextest, &[one]), Count { passed: 1, failed: 0 });
    }

    #[test]
    fn the_last_line_of_pytest_is_read() {
        let lines =
            ["3 passed", "tests/test_run.py:12: Error", "== 1 failed, 12 passed, 2 errors in 63.21s (0:01:03) =="];
        assert_eq!(count(Runner::Pytest, &lines), Count { passed: 12, failed: 3 });
        assert_eq!(count(Runner::Pytest, &["5 passed, 1 warning in 0.02s"]), Count { passed: 5, failed: 0 });
    }

    #[test]
    fn colours_do_not_hide_a_summary() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.006s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \
                    \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m";
        assert_eq!(count(Runner::Nextest, &[line]), Count { passed: 3, failed: 0 });
    }

    #[test]
    fn lines_that_only_look_like_a_summary_add_nothing() {
        for runner in [Runner::Cargo, Runner::Nextest, Runner::Pytest] {
            let seen = count(runner, &["3 passed, 1 failed", "Summary of 9 passed", "test result: what?", ""]);
            assert_eq!(seen, Count::default(), "{runner:?}");
        }
    }
}
