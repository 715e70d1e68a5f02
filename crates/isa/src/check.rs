//! What must hold for every kernel: no spilled register, no scratch memory, and as many instructions as recorded.

use crate::table::{Column, Row, Table};

/// The allowed change of an instruction count in percent, up or down. A lower count must also be recorded, so that a
/// later increase to the old count is noticed.
const BAND_PERCENT: f64 = 5.0;

/// The outcome of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Rows that were checked.
    pub(crate) rows: usize,
    /// What is wrong, a line for each row.
    pub(crate) wrong: Vec<String>,
    /// Why counts were not compared, if they were not.
    pub(crate) not_compared: Option<String>,
}

/// Checks the current rows, and compares them with the recorded rows of the same GPUs if the driver is the same.
pub(crate) fn check(recorded: &Table, now: &Table) -> Verdict {
    let is_same = recorded.driver == now.driver;
    let mut wrong: Vec<String> = now.rows.iter().filter_map(misfit).collect();
    if is_same {
        wrong.extend(now.rows.iter().filter_map(|row| change(recorded.find(&row.gpu, &row.kernel), row)));
        let is_measured = |gpu: &str| now.rows.iter().any(|row| row.gpu == gpu);
        let gone =
            recorded.rows.iter().filter(|row| is_measured(&row.gpu) && now.find(&row.gpu, &row.kernel).is_none());
        wrong.extend(gone.map(|row| format!("{} on {}: recorded, but there is no such kernel", row.kernel, row.gpu)));
    }
    let not_compared =
        (!is_same).then(|| format!("recorded with {}, but the driver is {}", recorded.driver, now.driver));
    Verdict { rows: now.rows.len(), wrong, not_compared }
}

/// A kernel that does not fit into the registers.
fn misfit(row: &Row) -> Option<String> {
    let (spills, scratch) = (row.of(Column::Spills), row.of(Column::Scratch));
    (spills > 0 || scratch > 0).then(|| {
        let (kernel, gpu) = (&row.kernel, &row.gpu);
        format!("{kernel} on {gpu}: {spills} spilled registers and {scratch} bytes of scratch memory; expected none")
    })
}

fn change(recorded: Option<&Row>, now: &Row) -> Option<String> {
    let Row { gpu, kernel, .. } = now;
    let Some(recorded) = recorded else { return Some(format!("{kernel} on {gpu}: not recorded")) };
    let (before, after) = (recorded.of(Column::Instructions), now.of(Column::Instructions));
    let percent = (after as f64 - before as f64) / before.max(1) as f64 * 100.0;
    (percent.abs() > BAND_PERCENT)
        .then(|| format!("{kernel} on {gpu}: {before} instructions are recorded, now {after} ({percent:+.1} %)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(driver: &str, rows: &[(&str, &str, u64)]) -> Table {
        let row = |(gpu, kernel, count): &(&str, &str, u64)| {
            Row::new(gpu, kernel, |column| if column == Column::Instructions { *count } else { 0 })
        };
        Table { driver: driver.to_owned(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn five_percent_up_or_down_is_fine_and_more_is_not() {
        let recorded = table("d", &[("a", "up", 100), ("a", "down", 100), ("b", "more", 100), ("b", "less", 100)]);
        let now = table("d", &[("a", "up", 105), ("a", "down", 95), ("b", "more", 106), ("b", "less", 94)]);
        let verdict = check(&recorded, &now);
        assert_eq!((verdict.rows, verdict.not_compared), (4, None));
        assert_eq!(
            verdict.wrong,
            [
                "more on b: 100 instructions are recorded, now 106 (+6.0 %)",
                "less on b: 100 instructions are recorded, now 94 (-6.0 %)"
            ]
        );
    }

    #[test]
    fn kernels_that_are_new_or_gone_are_not_fine() {
        let verdict = check(&table("d", &[("a", "old", 1), ("c", "old", 1)]), &table("d", &[("a", "new", 1)]));
        assert_eq!(verdict.wrong, ["new on a: not recorded", "old on a: recorded, but there is no such kernel"]);
    }

    #[test]
    fn a_spill_and_scratch_memory_are_found_also_with_another_driver() {
        for bad in [Column::Spills, Column::Scratch] {
            let now = Table { driver: "new".to_owned(), rows: vec![Row::new("a", "k", |c| u64::from(c == bad))] };
            let verdict = check(&table("old", &[("a", "gone", 7)]), &now);
            assert_eq!(verdict.wrong.len(), 1, "{verdict:?}");
            assert!(verdict.wrong[0].ends_with("scratch memory; expected none"), "{verdict:?}");
            assert_eq!(verdict.not_compared.unwrap(), "recorded with old, but the driver is new");
        }
    }
}
