//! The catalogue: which handlers there are and what each declares.
//!
//! Owns entries, settings and the catalogue that finds them by name.
//! Does not contain a single handler: those are registered from outside.

mod entry;
mod kernel;
mod over;
mod probe;
mod registry;
mod setting;

pub use entry::{
    Class, Direction, Entry, Family, FormatRule, Frames, Input, Output, PortMedia, RateRule, SizeRule, SmallBytes,
    Units, When, Work,
};
pub use kernel::{Kernel, KernelKind, KernelRule};
pub use over::Over;
pub use probe::{DeclareError, Declared, DeclaredSetting, NoProbe, Probe, ProbeError, Probed};
pub(crate) use registry::nearest;
pub use registry::{Catalog, EntryError};
pub use setting::{Fallback, Liveness, PathUse, Setting, Settings, Value, ValueType};
