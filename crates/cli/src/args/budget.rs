//! The value of `--budget`: a list such as `submits=1,allocs=0`.
//!
//! Each key is a name from [`PerFrame::NAMES`] or `drops`; each limit is a number from 0 up. `run/budget.rs` compares
//! the limits with a report.

use vramp::runtime::observe::PerFrame;

/// The key for the number of dropped frames, divided by the number of frames from the sources. This key covers the
/// whole run; all other keys cover the steady state.
pub(crate) const DROPS: &str = "drops";

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Budget {
    /// In the order given on the command line.
    pub(crate) limits: Vec<(&'static str, f64)>,
}

impl Budget {
    pub(super) fn read(word: &str) -> Result<Budget, String> {
        Ok(Budget { limits: word.split(',').map(limit).collect::<Result<_, _>>()? })
    }
}

fn limit(word: &str) -> Result<(&'static str, f64), String> {
    let (key, number) = word.split_once('=').ok_or_else(|| format!("`{word}`: expected KEY=N, such as submits=1"))?;
    let mut names = PerFrame::NAMES.into_iter().chain([DROPS]);
    let name = names.find(|name| *name == key.trim()).ok_or_else(|| {
        format!("`{}` is not a budget key; the keys are {}, {DROPS}", key.trim(), PerFrame::NAMES.join(", "))
    })?;
    match number.trim().parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok((name, limit)),
        _ => Err(format!("`{}` is not a limit for {name}: expected a number from 0 up", number.trim())),
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
