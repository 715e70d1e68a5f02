//! Where lines for people go.
//!
//! Owns the default, one line each on the standard error output.
//! Does not keep or filter them.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// Somebody who is told lines. Clones are the same one.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(&str) + Send + Sync>);

impl Sink {
    /// Tells somebody.
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Sink {
        Sink(Arc::new(tell))
    }

    /// Tells whoever reads the standard error output; where nobody can, the line is lost and nothing else.
    pub fn stderr() -> Sink {
        Sink::to(|line| drop(writeln!(std::io::stderr().lock(), "{line}")))
    }

    /// Says a line.
    pub fn tell(&self, line: &str) {
        (self.0)(line);
    }
}

impl Default for Sink {
    fn default() -> Self {
        Sink::stderr()
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}
