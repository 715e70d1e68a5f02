//! The value of `--memory`: `512M` for each memory space, or `cpu=1G,gpu=256M`.
//!
//! A budget is at least one byte. A single number applies to each space, not to the sum of the spaces. The memory
//! pools of the runtime enforce the budget.

use vramp::plan::Space;

use super::bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemoryBudget {
    pub(crate) cpu_bytes: Option<u64>,
    pub(crate) gpu_bytes: Option<u64>,
}

impl MemoryBudget {
    /// Parses one number for both spaces, or one number per named space.
    pub(super) fn read(word: &str) -> Result<MemoryBudget, String> {
        if !word.contains('=') {
            let both = Some(bytes::read(word)?);
            return Ok(MemoryBudget { cpu_bytes: both, gpu_bytes: both });
        }
        let mut budget = MemoryBudget::default();
        for part in word.split(',') {
            let (side, number) = part.split_once('=').ok_or_else(|| format!("`{part}`: expected cpu=N or gpu=N"))?;
            let own = match side.trim().parse::<Space>().map_err(|error| error.to_string())? {
                Space::Cpu => &mut budget.cpu_bytes,
                Space::Gpu => &mut budget.gpu_bytes,
            };
            if own.replace(bytes::read(number)?).is_some() {
                return Err(format!("{} is given twice", side.trim()));
            }
        }
        Ok(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_one_size_or_one_for_each_side() {
        let budget = |cpu_bytes, gpu_bytes| Ok(MemoryBudget { cpu_bytes, gpu_bytes });
        assert_eq!(MemoryBudget::read("512K"), budget(Some(512_000), Some(512_000)));
        assert_eq!(MemoryBudget::read("cpu=1g, gpu=7"), budget(Some(1_000_000_000), Some(7)));
        assert_eq!(MemoryBudget::read("gpu=256Mi"), budget(None, Some(256 << 20)));
        for word in ["", "0", "M", "-1", "disk=1", "gpu=", "gpu=1,gpu=2", "99999999999G", "gpu=1,2"] {
            assert!(MemoryBudget::read(word).is_err(), "{word}");
        }
    }
}
