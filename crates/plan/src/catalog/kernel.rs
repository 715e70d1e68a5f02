//! Kernels as the planner sees them: what they are like, and which one a handler has under its settings.
//!
//! Owns kinds, dispatches and intermediates of kernels, as plain data.
//! Does not compute anything: the kernels themselves are another crate's.

use crate::words::Size;

use super::{IntermediateExtent, SettingValues};

/// What a kernel is like, which decides what it can be fused with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelKind {
    /// Makes pixels from nothing.
    Generator,
    /// One pixel in, one out, at the same place.
    Pointwise,
    /// One read per output pixel, from somewhere else; may change size.
    Gather,
    /// Several reads around a place.
    Stencil,
    /// Needs the whole frame before its first result.
    Reduction,
    /// Unknown inside.
    Opaque,
}

impl KernelKind {
    /// The word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            KernelKind::Generator => "generator",
            KernelKind::Pointwise => "pointwise",
            KernelKind::Gather => "gather",
            KernelKind::Stencil => "stencil",
            KernelKind::Reduction => "reduction",
            KernelKind::Opaque => "opaque",
        }
    }
}

/// A kernel as the planner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDesc {
    /// What it is like.
    pub kind: KernelKind,
    /// How many dispatches it takes by itself.
    pub dispatches: u32,
    /// What it keeps elements of between its two dispatches.
    pub keeps: Option<IntermediateExtent>,
    /// How often a run of pixel functions joined in front of it is evaluated per output pixel.
    pub reads_per_pixel: u32,
}

impl KernelDesc {
    const ONE: KernelDesc = KernelDesc { kind: KernelKind::Opaque, dispatches: 1, keeps: None, reads_per_pixel: 1 };
    /// Makes pixels.
    pub const GENERATOR: KernelDesc = KernelDesc { kind: KernelKind::Generator, ..KernelDesc::ONE };
    /// One pixel in, one out.
    pub const POINTWISE: KernelDesc = KernelDesc { kind: KernelKind::Pointwise, ..KernelDesc::ONE };
    /// One read per pixel, from elsewhere.
    pub const GATHER: KernelDesc = KernelDesc { kind: KernelKind::Gather, ..KernelDesc::ONE };
    /// Unknown inside.
    pub const OPAQUE: KernelDesc = KernelDesc::ONE;
    /// Whole columns first, then a pass that uses what they came to and changes pixels in their places.
    pub const REDUCTION: KernelDesc = KernelDesc {
        kind: KernelKind::Reduction,
        dispatches: 2,
        keeps: Some(IntermediateExtent::Columns),
        ..KernelDesc::ONE
    };

    /// A neighbourhood of this many reads in one dispatch.
    pub const fn stencil(reads_per_pixel: u32) -> KernelDesc {
        KernelDesc { kind: KernelKind::Stencil, reads_per_pixel, ..KernelDesc::ONE }
    }

    /// A horizontal and a vertical pass with a 16-bit intermediate, of about this many reads each.
    pub const fn separable(reads_per_pixel: u32) -> KernelDesc {
        KernelDesc {
            kind: KernelKind::Stencil,
            dispatches: 2,
            keeps: Some(IntermediateExtent::Source),
            reads_per_pixel,
        }
    }

    /// As [`KernelDesc::separable`], for a picture of another size.
    pub const fn resampling(reads_per_pixel: u32) -> KernelDesc {
        KernelDesc { keeps: Some(IntermediateExtent::Across), ..KernelDesc::separable(reads_per_pixel) }
    }

    /// Bytes that lie between its dispatches.
    pub fn kept_bytes(&self, source: Size, made: Size) -> u64 {
        self.keeps.map_or(0, |over| over.bytes(source, made))
    }

    /// Whether every pixel that it makes depends on the one in its place, and else on nothing but whole-frame results:
    /// the host can then write it over what is read.
    pub fn works_in_place(&self) -> bool {
        self.kind == KernelKind::Pointwise || self.keeps == Some(IntermediateExtent::Columns)
    }
}

/// Which kernel a handler has under given settings.
#[derive(Debug, Clone, Copy)]
pub enum KernelRule {
    /// None: it moves, holds, reads or writes frames.
    None,
    /// Always this one.
    Always(KernelDesc),
    /// This one, with as many reads per pixel as the settings say.
    Reading(KernelDesc, fn(&SettingValues) -> u32),
    /// The one that belongs to the word this setting has.
    By {
        /// The setting.
        setting: &'static str,
        /// Words with a kernel of their own.
        cases: &'static [(&'static str, KernelDesc)],
        /// For every other word.
        otherwise: KernelDesc,
    },
}

impl KernelRule {
    /// The kernel under these settings.
    pub fn under(&self, settings: &SettingValues) -> Option<KernelDesc> {
        match self {
            KernelRule::None => None,
            KernelRule::Always(kernel) => Some(*kernel),
            KernelRule::Reading(kernel, reads) => {
                Some(KernelDesc { reads_per_pixel: reads(settings).max(1), ..*kernel })
            }
            KernelRule::By { setting, cases, otherwise } => {
                let word = settings.word(setting);
                Some(cases.iter().find(|(w, _)| Some(*w) == word).map_or(*otherwise, |(_, k)| *k))
            }
        }
    }
}
