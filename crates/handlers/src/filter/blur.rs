//! `blur`: a Gaussian.
//!
//! Owns sigma, size and the number of taps they come to.
//! Does not compute the weights: they belong to the kernel.
//!
//! Always: the number of taps is odd; pixels beyond the border repeat the outermost ones.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Settings, Units, ValueType, Work};

use crate::declare::{defaults, number};

/// What `blur` declares.
pub static ENTRY: Entry = Entry {
    name: "blur",
    about: "blurs with a Gaussian",
    example: "pattern size=64x64 ! blur sigma=2 ! null",
    settings: &[
        defaults("sigma", number(0.01, 100.0), "2", Liveness::Rebuild, "how wide, in pixels"),
        defaults(
            "size",
            ValueType::Odd { max: 1023, zero: true },
            "0",
            Liveness::Rebuild,
            "taps in a row; 0 takes six sigma and one, made odd",
        ),
    ],
    bare: Some("sigma"),
    kernel: KernelRule::Reading(Kernel::separable(13), |settings| taps(settings) as u32),
    work: Work { class: Class::Tap, units: Units::PerPixelBy(|settings| 2.0 * taps(settings)) },
    small: true,
    ..Entry::FILTER
};

/// Taps along one axis.
fn taps(settings: &Settings) -> f64 {
    match settings.int("size") {
        Some(size) if size > 0 => size as f64,
        _ => {
            let size = (6.0 * settings.number("sigma").unwrap_or(2.0) + 1.0).round();
            if size % 2.0 == 0.0 { size + 1.0 } else { size }
        }
    }
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::Value;

    use super::*;

    #[test]
    fn the_number_of_taps_follows_from_sigma_unless_it_is_set() {
        for (sigma, size, expected) in [(0.8, 0, 7.0), (2.0, 0, 13.0), (5.0, 0, 31.0), (0.01, 0, 1.0), (5.0, 3, 3.0)] {
            let mut settings = Settings::default();
            settings.set("sigma", Value::Number(sigma));
            settings.set("size", Value::Int(size));
            assert!((taps(&settings) - expected).abs() < 1e-9, "sigma {sigma}, size {size}");
        }
    }
}
