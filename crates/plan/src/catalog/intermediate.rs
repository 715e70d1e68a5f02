//! What the first of a kernel's two dispatches goes over.
//!
//! Owns how many elements that is, and so how much memory lies between the two.
//! Does not know what is computed for them.
//!
//! Always: one element is four values of 16 bits.

use crate::words::Size;

/// What the first dispatch of two goes over, and what it keeps one element for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntermediateExtent {
    /// Every pixel of the source.
    Source,
    /// As wide as what is made and as high as the source: rows are brought to their new length first.
    Across,
    /// The source's columns, each as a whole.
    Columns,
}

impl IntermediateExtent {
    /// Bytes of one element.
    pub const ELEMENT_BYTES: u64 = 8;

    /// How many elements there are along each side, between a source and what is made from it.
    pub const fn size(self, source: Size, made: Size) -> Size {
        match self {
            IntermediateExtent::Source => source,
            IntermediateExtent::Across => Size { width: made.width, height: source.height },
            IntermediateExtent::Columns => Size { width: source.width, height: 1 },
        }
    }

    /// Bytes that lie between the two dispatches.
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
