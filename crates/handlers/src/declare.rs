//! Short forms for declaring settings.
//!
//! Owns the three ways a setting can stand: it has to be given, it may be left out, it has a default.
//! Does not check anything: the catalogue does when the entry is registered.

use vramp_plan::catalog::{Fallback, Liveness, Setting, ValueType};

/// A setting that has to be given.
pub(crate) const fn required(name: &'static str, value: ValueType, liveness: Liveness, about: &'static str) -> Setting {
    Setting { name, value, fallback: Fallback::Required, liveness, about }
}

/// A setting that may be left out and then has no value.
pub(crate) const fn optional(name: &'static str, value: ValueType, liveness: Liveness, about: &'static str) -> Setting {
    Setting { name, value, fallback: Fallback::Unset, liveness, about }
}

/// A setting that has this value unless another is given.
pub(crate) const fn defaults(
    name: &'static str,
    value: ValueType,
    default: &'static str,
    liveness: Liveness,
    about: &'static str,
) -> Setting {
    Setting { name, value, fallback: Fallback::Is(default), liveness, about }
}

/// A number from `min` to `max`.
pub(crate) const fn number(min: f64, max: f64) -> ValueType {
    ValueType::Number { min, max }
}

/// A whole number from `min` to `max`.
pub(crate) const fn int(min: i64, max: i64) -> ValueType {
    ValueType::Int { min, max }
}

/// A place along one side of a picture, or beyond either end of it.
pub(crate) const OFFSET: ValueType = int(-65_536, 65_536);
