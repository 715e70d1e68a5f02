//! Networks: fixed sequences of steps over memory that is planned once, such as a neural network for one size of input.
//!
//! ```text
//! NetworkBuilder -> memories, views, steps -> fused steps -> slots -> Network
//! (one method        (what is computed)       (fewer          (whose   (compiled,
//!  for each op)                                 steps)         memory)  runs)
//! ```
//!
//! An expression ([`Expr`](crate::Expr)) is planned whenever it runs. A network is planned once and runs for every frame:
//! a run compiles nothing and allocates no memory but that of its results.
//!
//! Invariants: a network knows neither files nor the ops of a file format; crates/model translates those. All values are
//! words of f32 or i32 ([`WordKind`]). A step whose inputs are all known when it is added is computed at once, so that
//! arithmetic over shapes leaves no steps.

mod builder;
#[cfg(not(target_arch = "wasm32"))]
mod device;
mod fit;
mod folded;
mod fuse;
mod host;
mod layout;
mod map;
#[expect(clippy::module_inception, reason = "the module of the type that the room is named after")]
mod network;
#[cfg(not(target_arch = "wasm32"))]
mod on_device;
mod on_host;
mod slots;
mod step;
mod steps;
mod value;
mod window;

pub use builder::NetworkBuilder;
pub use fit::{Fit, FittedAxis, Span};
pub use layout::NetworkLayout;
pub use network::{ConstantShelf, Network};
pub use step::WordKind;
pub use steps::{
    Annotation, IndexOrder, LabelStrips, MaskShow, NetworkReduction, PadMode, PictureChannel, PictureLevel,
    PictureSpec, Taps,
};
pub use value::ValueId;
pub use window::Window;
