//! Budgets as they are written: `submits=1,allocs=0`.
//!
//! Owns the names of the limits and their reading.
//! Does not compare them with anything.
//!
//! Always: a name is one of the report's or `drops`; a limit is a number from 0 up.

use vramp::runtime::observe::PerFrame;

/// Frames that links dropped, over the whole run.
pub(crate) const DROPS: &str = "drops";

/// Limits per frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Budget {
    /// Names with their limits, in the order in which they were given.
    pub(crate) limits: Vec<(&'static str, f64)>,
}

impl Budget {
    /// Reads one list.
    pub(super) fn read(word: &str) -> Result<Budget, String> {
        Ok(Budget { limits: word.split(',').map(limit).collect::<Result<_, _>>()? })
    }
}

fn limit(word: &str) -> Result<(&'static str, f64), String> {
    let (key, number) = word.split_once('=').ok_or_else(|| format!("`{word}`: expected KEY=N, such as submits=1"))?;
    let mut names = PerFrame::NAMES.into_iter().chain([DROPS]);
    let name = names.find(|name| *name == key.trim()).ok_or_else(|| {
        format!("`{}` cannot be limited; what can: {}, {DROPS}", key.trim(), PerFrame::NAMES.join(", "))
    })?;
    match number.trim().parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok((name, limit)),
        _ => Err(format!("`{}` is no limit for {name}: expected a number from 0 up", number.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_list_of_known_names_and_numbers() {
        let budget = Budget::read("uploads=0, submits=1.5,drops=0").unwrap();
        assert_eq!(budget.limits, [("uploads", 0.0), ("submits", 1.5), ("drops", 0.0)]);
        for word in ["", "uploads", "uploads=", "uploads=-1", "uploads=nan", "colours=1", "uploads=1,"] {
            assert!(Budget::read(word).is_err(), "{word}");
        }
    }
}
