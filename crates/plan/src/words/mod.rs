//! The vocabulary of all crates, with its text forms: spaces, formats, sizes, rates, content, capabilities and
//! policies.

mod caps;
mod content;
mod format;
mod policy;
mod shader;
mod size;
mod space;
mod tags;

pub use caps::{ANY_SIDE, Cap, Caps, Dimension, Interval, Media, PortType};
pub use content::{Content, DType, FrameDesc, MAX_RANK, TensorDesc};
pub use format::{Format, Plane, UnknownFormat};
pub use policy::{OnError, Policy, UnknownWord, Until};
pub use shader::{Binding, Shader, Variant};
pub use size::{BadRate, BadSize, Rate, Size};
pub use space::{Space, SpaceSet, UnknownSpace};
pub use tags::{Interlacing, PixelAspect, Siting, StreamOrigin, StreamTags};
