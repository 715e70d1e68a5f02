//! How a device's kernels are spread: one variant for each way of reading.
//!
//! Owns which variant a kernel of a class is composed with, and which variants make sense.
//! Does not compose anything and does not find out which variant is best: a calibration does.
//!
//! Always: what is not said is the variant that every device takes.

use serde::{Deserialize, Serialize};

use crate::catalog::Class;
use crate::words::Variant;

/// One variant for each class of kernels that is composed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variants {
    /// Kernels that make a pixel, or read one in its place.
    pub pixel: Variant,
    /// Kernels that read somewhere else.
    pub sample: Variant,
    /// Kernels that sum up a neighbourhood, in two passes.
    pub tap: Variant,
}

impl Variants {
    /// The same variant for every class.
    pub const fn all(variant: Variant) -> Variants {
        Variants { pixel: variant, sample: variant, tap: variant }
    }

    /// The variant for kernels of this class.
    pub fn of(&self, class: Class) -> Variant {
        match class {
            Class::Sample => self.sample,
            Class::Tap | Class::Sort => self.tap,
            Class::Pixel | Class::Draw | Class::Reduce | Class::Codec | Class::Move => self.pixel,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (key, variant) in self.named() {
            let Variant { workgroup, pixels_per_invocation: pixels } = variant;
            if !(1..=1024).contains(&workgroup) || !(1..=16).contains(&pixels) {
                return Err(format!(
                    "gpu.variants.{key} has {workgroup} invocations of {pixels} pixels; expected 1 to 1024 of 1 to 16"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn named(&self) -> [(&'static str, Variant); 3] {
        [("pixel", self.pixel), ("sample", self.sample), ("tap", self.tap)]
    }
}
