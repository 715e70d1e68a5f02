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
pub use fold::{Folded, Place};
pub use layout::{Layout, Part};
pub use params::Params;
pub use rows::{Frame, Program, Scratch};

use vramp_plan::catalog::Class;
use vramp_plan::{Shader, Variant};

use crate::function::PixelFn;
use crate::head::Head;
use crate::head::load_here::LOAD;

/// A fused kernel: functions in front of the head, the head, functions behind it.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Where pixels come from.
    pub head: &'static Head,
    /// Applied to source pixels before the head reads them.
    pub before: Vec<&'static PixelFn>,
    /// Applied to what the head made.
    pub after: Vec<&'static PixelFn>,
}

impl Recipe {
    /// A head by itself.
    pub fn of(head: &'static Head) -> Recipe {
        Recipe { head, before: Vec::new(), after: Vec::new() }
    }

    /// Also this function, behind what is there.
    #[must_use]
    pub fn then(mut self, function: &'static PixelFn) -> Recipe {
        self.after.push(function);
        self
    }

    /// Also this function, in front of the head.
    #[must_use]
    pub fn behind(mut self, function: &'static PixelFn) -> Recipe {
        self.before.push(function);
        self
    }

    /// Where each part finds its parameters.
    pub fn layout(&self) -> Layout {
        Layout::of(self)
    }

    /// The shaders, one per pass.
    pub fn shaders(&self, name: &str) -> Vec<Shader> {
        self.shaders_as(name, Variant::default())
    }

    /// The shaders, one per pass, spread over invocations like this. Every variant makes the same pixels.
    pub fn shaders_as(&self, name: &str, variant: Variant) -> Vec<Shader> {
        wgsl::shaders(self, name, variant)
    }

    /// Which sort of work its reading is: a device is tuned by it.
    pub fn class(&self) -> Class {
        match self.head {
            head if head.passes > 1 => Class::Tap,
            head if head.source && head.name != LOAD.name => Class::Sample,
            _ => Class::Pixel,
        }
    }

    /// The loop over rows.
    pub fn program(&self) -> Program {
        Program::of(self)
    }
}
