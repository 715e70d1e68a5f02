//! A filter of one kernel whose parameters are the same for every frame. Most filters become such a filter once their
//! settings are read. Each filter packs its own parameter words.

use vramp_kernels::PixelFn;
use vramp_kernels::head::Head;
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Worker};

struct FixedFunction {
    part: Part,
    words: Vec<u32>,
}

/// A filter that consists of this pixel function with these parameters.
pub(super) fn function(function: &'static PixelFn, words: &[u32]) -> Worker {
    Worker::pixels(FixedFunction { part: Part::Function(function), words: words.to_vec() })
}

/// A filter that consists of this head with these parameters.
pub(super) fn head(head: &'static Head, words: &[u32]) -> Worker {
    Worker::pixels(FixedFunction { part: Part::Head(head), words: words.to_vec() })
}

impl PixelHandler for FixedFunction {
    fn parts(&self) -> Vec<Part> {
        vec![self.part.clone()]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.words, &[]);
        Ok(Flow::Produced)
    }
}
