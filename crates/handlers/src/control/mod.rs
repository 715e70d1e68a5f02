//! Control: which frames pass, and when.
//!
//! Owns one declaration per control handler.
//! Does not change pixels.

pub mod delay;
pub mod every;
pub mod identity;
pub mod probe;
