//! Reports: a plan or a run as one HTML page that needs no other file, no network and, except for zooming and tips, no
//! script.
//!
//! [`Page`] draws the page and carries its data as JSON. [`Recorder`] collects during a run what the page shows beyond
//! the [`Report`](vramp_runtime::Report): a timeline of frames, memory over time, and events.
//!
//! ```
//! use vramp::prelude::*;
//! use vramp::report::{Page, Recorder};
//!
//! let recorder = Recorder::new();
//! let mut pipeline = Pipeline::parse("pattern size=64x48 frames=30 ! blur ! null")
//!     .trace(recorder.trace())
//!     .listener(recorder.listener())
//!     .build()?;
//! let report = pipeline.run()?;
//! let page = Page::of_run(pipeline.plan(), &report, recorder.record(&pipeline.watch()));
//! assert!(page.to_html().starts_with("<!doctype html>"));
//! # Ok::<(), vramp::Error>(())
//! ```
//!
//! A notebook may show the text of [`Page::to_html`] as HTML output: styles apply only inside the page, and several
//! pages do not disturb each other.

mod data;
mod draw;
mod figures;
pub mod layout;
mod markup;
mod page;
mod recorder;
mod section;
mod timeline;
mod units;

pub use data::VERSION;
pub use page::Page;
pub use recorder::{Recorder, RunRecord};
