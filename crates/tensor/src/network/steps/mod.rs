//! The steps of networks, one kind per file: what the step computes on the host and on a device, and the methods of
//! [`NetworkBuilder`](super::NetworkBuilder) that add it.

mod annotate;
mod arg;
mod by_word;
mod concat;
mod convolution;
mod ending;
mod gather;
mod lrn;
mod mask;
mod norm;
mod pad;
mod picture;
mod pool;
mod product;
mod reduce;
mod resample;
mod reverse;
mod softmax;
mod suppress;
#[cfg(test)]
mod tests;
mod top_k;

pub use annotate::{Annotation, LabelStrips};
pub use mask::MaskShow;
pub use pad::PadMode;
pub use picture::{PictureChannel, PictureLevel, PictureSpec};
pub use pool::IndexOrder;
pub use reduce::NetworkReduction;
pub use resample::Taps;
