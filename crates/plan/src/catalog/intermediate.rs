//! The extent and the bytes of the intermediate, which the first of a kernel's two dispatches stores for the second.
//!
//! Invariant: one element is four 16-bit values.

use crate::words::Size;

/// The positions over which the first of two dispatches runs. The dispatch stores one element for each position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntermediateExtent {
    /// Every pixel of the source.
    Source,
    /// As wide as the output and as high as the source: rows are resampled first.
    Across,
    /// One element per column of the source.
    Columns,
}

impl IntermediateExtent {
    pub const ELEMENT_BYTES: u64 = 8;

    /// Elements along each side; `source` and `made` are the sizes of the input and of the output.
    pub const fn size(self, source: Size, made: Size) -> Size {
        match self {
            IntermediateExtent::Source => source,
            IntermediateExtent::Across => Size { width: made.width, height: source.height },
            IntermediateExtent::Columns => Size { width: source.width, height: 1 },
        }
    }

    /// Bytes of the whole intermediate.
    pub const fn bytes(self, source: Size, made: Size) -> u64 {
        self.size(source, made).pixels() * IntermediateExtent::ELEMENT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_depends_on_both_sizes() {
        let (source, made) = (Size { width: 30, height: 20 }, Size { width: 7, height: 90 });
        let bytes = [IntermediateExtent::Source, IntermediateExtent::Across, IntermediateExtent::Columns]
            .map(|over| over.bytes(source, made));
        assert_eq!(bytes, [30 * 20 * 8, 7 * 20 * 8, 30 * 8]);
    }
}
