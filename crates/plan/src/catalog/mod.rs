//! The catalogue: which handlers exist and what each one declares. Handlers are registered from outside.

mod entry;
mod intermediate;
mod kernel;
mod probe;
mod registry;
mod setting;
mod work;

pub use entry::{
    Entry, Family, FormatRule, Frames, Input, Output, PortMedia, RateRule, SizeRule, SmallBytes, TensorBy, TensorRule,
    TransferDirection, When, is_live_address,
};
pub use intermediate::IntermediateExtent;
pub use kernel::{KernelDesc, KernelKind, KernelRule};
pub use probe::{
    DeclareError, DeclaredSetting, DeclaredShader, NoProbe, ProbeError, Probed, SourceProbe, StreamLength,
};
pub use registry::nearest;
pub use registry::{Catalog, EntryError};
pub use setting::{Fallback, Liveness, PathUse, Setting, SettingValues, Value, ValueType};
pub use work::{Class, NetworkNeeds, NetworkNeedsBy, Units, Work};
