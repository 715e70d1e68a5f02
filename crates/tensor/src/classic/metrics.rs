//! Numbers with names, as one line.
//!
//! Owns how a number, a doubt and a reason look.
//! Does not say the line to anybody.
//!
//! Always: sorted by name, whatever map they come in; what is no number says so.

use std::fmt::Display;

use vramp_gpu::Readout;

/// What can stand behind a name.
pub trait Metric {
    /// As it is written.
    fn words(&self) -> String;
}

impl Metric for f64 {
    fn words(&self) -> String {
        if self.is_finite() { self.to_string() } else { format!("unavailable ({self} is no number)") }
    }
}

impl Metric for f32 {
    fn words(&self) -> String {
        if self.is_finite() { self.to_string() } else { format!("unavailable ({self} is no number)") }
    }
}

impl Metric for u64 {
    fn words(&self) -> String {
        self.to_string()
    }
}

impl<T: Copy + Display> Metric for Readout<T> {
    fn words(&self) -> String {
        match self {
            Readout::Is { value, doubt: Some(doubt), .. } => format!("{value} (unreliable: {doubt})"),
            Readout::Is { value, .. } => value.to_string(),
            Readout::Unavailable(why) => format!("unavailable ({why})"),
        }
    }
}

impl<M: Metric> Metric for &M {
    fn words(&self) -> String {
        (*self).words()
    }
}

/// All of them in one line.
pub(super) fn line<N: AsRef<str>, M: Metric>(metrics: impl IntoIterator<Item = (N, M)>) -> String {
    let mut words: Vec<String> =
        metrics.into_iter().map(|(name, metric)| format!("{}={}", name.as_ref(), metric.words())).collect();
    words.sort();
    format!("metrics: {}", if words.is_empty() { "none".to_owned() } else { words.join(", ") })
}
