//! Where the classic API reports lines of text. The default is stderr.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// A receiver of lines of text. Clones refer to the same receiver.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(&str) + Send + Sync>);

impl Sink {
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Sink {
        Sink(Arc::new(tell))
    }

    /// Writes to stderr. Errors of writing are ignored.
    pub fn stderr() -> Sink {
        Sink::to(|line| drop(writeln!(std::io::stderr().lock(), "{line}")))
    }

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
