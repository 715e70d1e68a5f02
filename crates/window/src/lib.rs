//! Windows: the event loop on the main thread, and the sink `window`.
//!
//! Window systems want their events to be handled on the main thread. [`main`] gives the main thread to the event loop
//! and runs the program's own work on another thread, with a [`Screen`] on which `window` sinks open their windows.
//!
//! Frames on the device are drawn from their buffer, without a download; frames on the host are uploaded. A sink shows
//! each frame at the frame's time (the runtime's gate of presenting sinks). Which frames are dropped when the screen is
//! too slow is decided by the policy of the link, as for every sink: a window takes the next frame when the frame before
//! it is on the screen.
//!
//! ```no_run
//! use vramp_pipeline::Pipeline;
//!
//! let report = vramp_window::main(|screen| {
//!     let registry = screen.register(&vramp_handlers::registry());
//!     let mut pipeline = Pipeline::parse("pattern ! blur ! window title=blurred").registry(&registry).build()?;
//!     screen.attach(&pipeline); // closing the window ends the run, and `h` shows its settings
//!     pipeline.run()
//! })??;
//! println!("{} frames", report.frames);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod event_loop;
mod intervals;
mod keys;
mod layout;
mod overlay;
mod picture_file;
mod screen;
mod sink;
mod slot;
mod transfers;
mod view;

pub use error::WindowError;
pub use event_loop::main;
pub use screen::{Screen, check_display};
