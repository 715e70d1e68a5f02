//! How much memory reading one file may take beside the bytes of the file.
//!
//! Invariant: memory is claimed before it is allocated, so that a hostile file is refused before it does harm.

use super::error::OnnxError;

/// What every file may take, however small it is.
const BASE_BYTES: u64 = 64 << 20;

/// The memory that is left for decoding a file: together, the size of the file and 64 MB. The file itself takes its
/// size once more.
#[derive(Debug)]
pub(super) struct Allowance {
    most: u64,
    left: u64,
}

impl Allowance {
    pub(super) fn for_file(file_bytes: usize) -> Allowance {
        let most = (file_bytes as u64).saturating_add(BASE_BYTES);
        Allowance { most, left: most }
    }

    /// Claims memory. `at` names the place in the file, for the error.
    pub(super) fn claim(&mut self, bytes: u64, at: impl FnOnce() -> String) -> Result<(), OnnxError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(OnnxError::TooManyParts { at: at(), most: self.most }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_add_up_to_the_size_of_the_file_and_64_mb() {
        let mut allowance = Allowance::for_file(1000);
        assert!(allowance.claim(1000, String::new).is_ok());
        assert!(allowance.claim(BASE_BYTES, String::new).is_ok());
        let error = allowance.claim(1, || "graph".into()).unwrap_err();
        assert!(error.to_string().starts_with("graph: decoding needs more than 67109864 bytes"), "{error}");
    }
}
