//! Kernels as the planner sees them: kind, dispatches, intermediates, and which kernel a handler has under its
//! settings.
//!
//! The kernels themselves are in the kernels crate.

use crate::words::Size;

use super::{IntermediateExtent, SettingValues};

/// The access pattern of a kernel. The pattern decides which other kernels can be fused with this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelKind {
    /// Produces pixels without an input.
    Generator,
    /// Reads one pixel and writes one pixel at the same position.
    Pointwise,
    /// Reads one pixel from another position; may change the size.
    Gather,
    /// Reads several pixels around a position.
    Stencil,
    /// Needs the whole frame before its first result.
    Reduction,
    /// No access pattern is known.
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

/// The properties of a kernel that planning needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDesc {
    pub kind: KernelKind,
    /// Dispatches if the kernel is not fused.
    pub dispatches: u32,
    /// The extent of the intermediate between the kernel's two dispatches.
    pub keeps: Option<IntermediateExtent>,
    /// How often the pixel functions that are fused before this kernel are evaluated for each output pixel.
    pub reads_per_pixel: u32,
}

impl KernelDesc {
    const ONE: KernelDesc = KernelDesc { kind: KernelKind::Opaque, dispatches: 1, keeps: None, reads_per_pixel: 1 };
    pub const GENERATOR: KernelDesc = KernelDesc { kind: KernelKind::Generator, ..KernelDesc::ONE };
    pub const POINTWISE: KernelDesc = KernelDesc { kind: KernelKind::Pointwise, ..KernelDesc::ONE };
    pub const GATHER: KernelDesc = KernelDesc { kind: KernelKind::Gather, ..KernelDesc::ONE };
    pub const OPAQUE: KernelDesc = KernelDesc::ONE;
    /// First a dispatch over whole columns, then a second dispatch that uses the columns' results and changes pixels in
    /// place.
    pub const REDUCTION: KernelDesc = KernelDesc {
        kind: KernelKind::Reduction,
        dispatches: 2,
        keeps: Some(IntermediateExtent::Columns),
        ..KernelDesc::ONE
    };

    /// Reads a neighbourhood of this many pixels in one dispatch.
    pub const fn stencil(reads_per_pixel: u32) -> KernelDesc {
        KernelDesc { kind: KernelKind::Stencil, reads_per_pixel, ..KernelDesc::ONE }
    }

    /// A horizontal and a vertical pass with a 16-bit intermediate between the two. Each pass reads about this many
    /// pixels per output pixel.
    pub const fn separable(reads_per_pixel: u32) -> KernelDesc {
        KernelDesc {
            kind: KernelKind::Stencil,
            dispatches: 2,
            keeps: Some(IntermediateExtent::Source),
            reads_per_pixel,
        }
    }

    /// Like [`KernelDesc::separable`], with an output of another size.
    pub const fn resampling(reads_per_pixel: u32) -> KernelDesc {
        KernelDesc { keeps: Some(IntermediateExtent::Across), ..KernelDesc::separable(reads_per_pixel) }
    }

    /// Bytes of the intermediate between the kernel's dispatches.
    pub fn kept_bytes(&self, source: Size, made: Size) -> u64 {
        self.keeps.map_or(0, |over| over.bytes(source, made))
    }

    /// True if each output pixel depends only on the input pixel at the same position and on results for the whole
    /// frame. The host can then write the output over the input.
    pub fn works_in_place(&self) -> bool {
        self.kind == KernelKind::Pointwise || self.keeps == Some(IntermediateExtent::Columns)
    }
}

/// The rule for a handler's kernel.
#[derive(Debug, Clone, Copy)]
pub enum KernelRule {
    /// No kernel: the handler moves, holds, reads or writes frames.
    None,
    Always(KernelDesc),
    /// This kernel, with the number of reads per pixel depending on settings.
    Reading(KernelDesc, fn(&SettingValues) -> u32),
    /// The kernel for the word that this setting has.
    By {
        setting: &'static str,
        /// Words with their own kernel.
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
