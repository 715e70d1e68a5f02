//! The integration tests of vramp-kernels in one binary, so that dependencies are linked once and not per file.
//!
//! `cargo test -p vramp-kernels --test integration steady::` runs one file.

// Helpers shared by several files.
mod format_made;
mod golden;
mod heads_made;

mod box_golden;
mod compositor_golden;
mod format_golden;
mod format_laws;
mod heads_golden;
mod heads_laws;
mod luma_golden;
mod pixels_properties;
mod pixels_reference;
mod point_golden;
mod resample_golden;
mod samples;
mod shaders;
mod squares_golden;
mod squares_laws;
mod steady;
