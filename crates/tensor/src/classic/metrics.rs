//! Named figures as one line of text, sorted by name. NaN and infinities are written as unavailable.

use std::fmt::Display;

use vramp_gpu::Readout;

/// A figure that can be logged.
pub trait Metric {
    fn words(&self) -> String;
}

impl Metric for f64 {
    fn words(&self) -> String {
        if self.is_finite() { self.to_string() } else { format!("unavailable ({self} is not finite)") }
    }
}

impl Metric for f32 {
    fn words(&self) -> String {
        if self.is_finite() { self.to_string() } else { format!("unavailable ({self} is not finite)") }
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

pub(super) fn line<N: AsRef<str>, M: Metric>(metrics: impl IntoIterator<Item = (N, M)>) -> String {
    let mut words: Vec<String> =
        metrics.into_iter().map(|(name, metric)| format!("{}={}", name.as_ref(), metric.words())).collect();
    words.sort();
    format!("metrics: {}", if words.is_empty() { "none".to_owned() } else { words.join(", ") })
}
