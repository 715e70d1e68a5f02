//! The composer: fuses a head and pixel functions into one kernel, for the GPU and for the CPU.
//!
//! A [`Recipe`] is a head (load, generator, gather or stencil) with pixel functions before and after it. The composer
//! turns a recipe into one WGSL text, in which the names of every part are made unique, and into one loop over rows
//! ([`RowProgram`]), in which each row passes through every function while it is in the cache. A function runs only on
//! the pixels that it can change ([`Spans`](crate::Spans)), so the cost of a logo depends on the size of the logo, not
//! on the size of the frame.
//!
//! The WGSL and its CPU twin read the same parameter words at the same offsets ([`ParamLayout`], [`FrameParams`]).
//! Everything that needs floats is computed once per frame, on the CPU.
//!
//! Pixels are rounded to rgba8 after every function, whether the function is fused or not, so fusing changes no pixel.
//! Neighbouring tables become one table ([`Folded`]).

mod chain;
mod fold;
mod layout;
mod params;
mod rows;
mod wgsl;

pub(crate) use chain::Chain;
pub use fold::{Folded, FunctionPlace};
pub use layout::{ParamLayout, ParamPart};
pub use params::FrameParams;
pub use rows::{KernelFrame, RowProgram, RowScratch};

use std::sync::Arc;

use vramp_plan::catalog::{Class, IntermediateExtent};

use vramp_plan::{Format, Shader, Size, Variant};

use crate::function::Function;
use crate::head::Head;
use crate::head::load_here::LOAD;
use crate::own::OwnKernel;
use crate::stored::{self, StoredFormat};

/// A fused kernel: functions before the head, the head, functions after the head. The kernel's source and output may
/// have another storage format than rgba8.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub head: &'static Head,
    /// Applied to source pixels before the head reads them.
    pub before: Vec<Function>,
    /// Applied to the pixels that the head computes.
    pub after: Vec<Function>,
    /// The storage format of the source; `None` for rgba8.
    pub from: Option<&'static StoredFormat>,
    /// The storage format of the output; `None` for rgba8.
    pub into: Option<&'static StoredFormat>,
    /// Number of images that the head reads besides its source. Zero for all heads but `compositor`.
    pub pictures: usize,
    /// A user's kernel, which replaces everything above. It cannot be fused.
    pub whole: Option<Arc<OwnKernel>>,
}

impl Recipe {
    /// A head without functions.
    pub fn of(head: &'static Head) -> Recipe {
        Recipe { head, before: Vec::new(), after: Vec::new(), from: None, into: None, pictures: 0, whole: None }
    }

    /// A head that reads this many images besides its source.
    pub fn of_several(head: &'static Head, pictures: usize) -> Recipe {
        Recipe { pictures, ..Recipe::of(head) }
    }

    /// A user's kernel, without other parts.
    pub fn whole(kernel: &Arc<OwnKernel>) -> Recipe {
        Recipe { whole: Some(Arc::clone(kernel)), ..Recipe::of(&LOAD) }
    }

    /// Number of workgroups along each axis that cover a frame. `None` except for a user's kernel.
    pub fn grid(&self, size: Size) -> Option<[u32; 3]> {
        self.whole.as_ref().map(|kernel| kernel.grid(size))
    }

    /// Appends a function after the head.
    #[must_use]
    pub fn then(mut self, function: impl Into<Function>) -> Recipe {
        self.after.push(function.into());
        self
    }

    /// Appends a function before the head.
    #[must_use]
    pub fn before_head(mut self, function: impl Into<Function>) -> Recipe {
        self.before.push(function.into());
        self
    }

    /// Sets the storage format of the source.
    #[must_use]
    pub fn reading(mut self, format: Format) -> Recipe {
        self.from = stored::of(format);
        self
    }

    /// Sets the storage format of the output.
    #[must_use]
    pub fn writing(mut self, format: Format) -> Recipe {
        self.into = stored::of(format);
        self
    }

    pub fn layout(&self) -> ParamLayout {
        ParamLayout::of(self)
    }

    /// The shaders, one per pass.
    pub fn shaders(&self, name: &str) -> Vec<Shader> {
        self.shaders_as(name, Variant::default())
    }

    /// The shaders, one per pass, with this variant's work per invocation. Every variant computes the same pixels. A
    /// user's kernel ignores the variant.
    pub fn shaders_as(&self, name: &str, variant: Variant) -> Vec<Shader> {
        match &self.whole {
            Some(kernel) => vec![kernel.shader(name)],
            None => wgsl::shaders(self, name, variant),
        }
    }

    /// Whether the CPU can compute the same pixels. Users' shaders have no CPU twin.
    pub fn has_twin(&self) -> bool {
        let both = |function: &Function| matches!(function, Function::Both(_));
        self.whole.is_none() && self.before.iter().chain(&self.after).all(both)
    }

    /// The class of the kernel's memory accesses. Devices are tuned separately for each class.
    pub fn class(&self) -> Class {
        match self.head {
            head if head.first.is_some_and(|first| first.over == IntermediateExtent::Columns) => Class::Reduce,
            head if head.first.is_some() => Class::Tap,
            head if head.source && head.name != LOAD.name => Class::Sample,
            _ => Class::Pixel,
        }
    }

    pub fn program(&self) -> RowProgram {
        RowProgram::of(self)
    }
}
