//! Memory budgets as they are written: `512M`, or `cpu=1G,gpu=256M`.
//!
//! Owns the reading of sizes.
//! Does not hold anybody to them: pools do.
//!
//! Always: a budget is at least one byte; one number is for each of both sides, not for their sum.

use vramp::plan::Space;

/// What frames may take at most, by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemoryBudget {
    pub(crate) cpu_bytes: Option<u64>,
    pub(crate) gpu_bytes: Option<u64>,
}

impl MemoryBudget {
    /// Reads one number for both sides, or one for each that is named.
    pub(super) fn read(word: &str) -> Result<MemoryBudget, String> {
        if !word.contains('=') {
            let both = Some(size(word)?);
            return Ok(MemoryBudget { cpu_bytes: both, gpu_bytes: both });
        }
        let mut budget = MemoryBudget::default();
        for part in word.split(',') {
            let (side, number) = part.split_once('=').ok_or_else(|| format!("`{part}`: expected cpu=N or gpu=N"))?;
            let own = match side.trim().parse::<Space>().map_err(|error| error.to_string())? {
                Space::Cpu => &mut budget.cpu_bytes,
                Space::Gpu => &mut budget.gpu_bytes,
            };
            if own.replace(size(number)?).is_some() {
                return Err(format!("{} stands there twice", side.trim()));
            }
        }
        Ok(budget)
    }
}

/// Bytes, or thousands of 1024 of them.
fn size(word: &str) -> Result<u64, String> {
    let word = word.trim();
    let (digits, unit) = match word.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&word[..at], 1_u64 << 10),
        Some((at, 'm' | 'M')) => (&word[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&word[..at], 1 << 30),
        _ => (word, 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("`{word}` is no size: expected bytes, such as 500000, 512K, 256M or 2G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_one_size_or_one_for_each_side() {
        let budget = |cpu_bytes, gpu_bytes| Ok(MemoryBudget { cpu_bytes, gpu_bytes });
        assert_eq!(MemoryBudget::read("512K"), budget(Some(512 << 10), Some(512 << 10)));
        assert_eq!(MemoryBudget::read("cpu=1g, gpu=7"), budget(Some(1 << 30), Some(7)));
        assert_eq!(MemoryBudget::read("gpu=256M"), budget(None, Some(256 << 20)));
        for word in ["", "0", "M", "-1", "1.5G", "5 MB", "disk=1", "gpu=", "gpu=1,gpu=2", "99999999999G", "gpu=1,2"] {
            assert!(MemoryBudget::read(word).is_err(), "{word}");
        }
    }
}
