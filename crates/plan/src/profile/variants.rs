//! Kernel variants of a device: workgroup size and pixels per invocation, for each class of kernels.
//!
//! Calibration finds the best variant, and the kernels crate composes kernels for this variant. A missing variant
//! defaults to the variant that every device supports.

use serde::{Deserialize, Serialize};

use crate::catalog::Class;
use crate::words::Variant;

/// One variant for each class of composed kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variants {
    /// Kernels that generate a pixel, or read only the pixel at the same position.
    pub pixel: Variant,
    /// Kernels that read at other positions.
    pub sample: Variant,
    /// Kernels that sum up a neighbourhood in two passes.
    pub tap: Variant,
}

impl Variants {
    pub const fn all(variant: Variant) -> Variants {
        Variants { pixel: variant, sample: variant, tap: variant }
    }

    pub fn of(&self, class: Class) -> Variant {
        match class {
            Class::Sample => self.sample,
            Class::Tap | Class::Sort => self.tap,
            Class::Pixel | Class::Draw | Class::Reduce | Class::Codec | Class::Move | Class::Network => self.pixel,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (key, variant) in self.named() {
            let Variant { workgroup, pixels_per_invocation: pixels, .. } = variant;
            if !(1..=1024).contains(&workgroup) || !(1..=16).contains(&pixels) {
                return Err(format!(
                    "gpu.variants.{key} has {workgroup} invocations of {pixels} pixels; expected 1 to 1024 \
                     invocations of 1 to 16 pixels"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn named(&self) -> [(&'static str, Variant); 3] {
        [("pixel", self.pixel), ("sample", self.sample), ("tap", self.tap)]
    }
}
