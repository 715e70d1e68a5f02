//! The composer: joins a head and pixel functions into one kernel, for both sides.
//!
//! Owns the recipe of a fused kernel, the layout of its parameters, its WGSL text and its loop over rows.
//! Does not know handlers or plans: it is given heads and functions.
//!
//! Always: both sides read the same parameter words at the same places; fused or one by one, the result is the same.

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

/// A fused kernel: functions in front of the head, the head, functions behind it. What it reads and what it writes may
/// be stored otherwise than as pixels.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Where pixels come from.
    pub head: &'static Head,
    /// Applied to source pixels before the head reads them.
    pub before: Vec<Function>,
    /// Applied to what the head made.
    pub after: Vec<Function>,
    /// How the source is stored; none where that is as pixels.
    pub from: Option<&'static StoredFormat>,
    /// How the output is stored; none where that is as pixels.
    pub into: Option<&'static StoredFormat>,
    /// Pictures that the head reads beside its source; none but for heads of several.
    pub pictures: usize,
    /// A user's kernel in place of everything above: it can be joined with nothing.
    pub whole: Option<Arc<OwnKernel>>,
}

impl Recipe {
    /// A head by itself.
    pub fn of(head: &'static Head) -> Recipe {
        Recipe { head, before: Vec::new(), after: Vec::new(), from: None, into: None, pictures: 0, whole: None }
    }

    /// A head that reads this many pictures beside its source.
    pub fn of_several(head: &'static Head, pictures: usize) -> Recipe {
        Recipe { pictures, ..Recipe::of(head) }
    }

    /// A user's kernel, which is one by itself.
    pub fn whole(kernel: &Arc<OwnKernel>) -> Recipe {
        Recipe { whole: Some(Arc::clone(kernel)), ..Recipe::of(&LOAD) }
    }

    /// Workgroups that cover a frame, where the kernel says so itself.
    pub fn grid(&self, size: Size) -> Option<[u32; 3]> {
        self.whole.as_ref().map(|kernel| kernel.grid(size))
    }

    /// Also this function, behind what is there.
    #[must_use]
    pub fn then(mut self, function: impl Into<Function>) -> Recipe {
        self.after.push(function.into());
        self
    }

    /// Also this function, in front of the head.
    #[must_use]
    pub fn behind(mut self, function: impl Into<Function>) -> Recipe {
        self.before.push(function.into());
        self
    }

    /// With its source stored in this format.
    #[must_use]
    pub fn reading(mut self, format: Format) -> Recipe {
        self.from = stored::of(format);
        self
    }

    /// With its output stored in this format.
    #[must_use]
    pub fn writing(mut self, format: Format) -> Recipe {
        self.into = stored::of(format);
        self
    }

    /// Where each part finds its parameters.
    pub fn layout(&self) -> ParamLayout {
        ParamLayout::of(self)
    }

    /// The shaders, one per pass.
    pub fn shaders(&self, name: &str) -> Vec<Shader> {
        self.shaders_as(name, Variant::default())
    }

    /// The shaders, one per pass, spread over invocations like this. Every variant makes the same pixels; a user's own
    /// kernel is spread as it says itself.
    pub fn shaders_as(&self, name: &str, variant: Variant) -> Vec<Shader> {
        match &self.whole {
            Some(kernel) => vec![kernel.shader(name)],
            None => wgsl::shaders(self, name, variant),
        }
    }

    /// Whether the host can make the same pixels.
    pub fn has_twin(&self) -> bool {
        let both = |function: &Function| matches!(function, Function::Both(_));
        self.whole.is_none() && self.before.iter().chain(&self.after).all(both)
    }

    /// Which sort of work its reading is: a device is tuned by it.
    pub fn class(&self) -> Class {
        match self.head {
            head if head.first.is_some_and(|first| first.over == IntermediateExtent::Columns) => Class::Reduce,
            head if head.first.is_some() => Class::Tap,
            head if head.source && head.name != LOAD.name => Class::Sample,
            _ => Class::Pixel,
        }
    }

    /// The loop over rows.
    pub fn program(&self) -> RowProgram {
        RowProgram::of(self)
    }
}
