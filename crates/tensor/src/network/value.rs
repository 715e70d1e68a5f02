//! The values of a network that is being built: memories, and views of memories.
//!
//! A memory is dense words that one step writes. A view is how a value lies in a memory: lengths, strides and an offset.
//! Transposed, sliced, split and repeated values are views and cost nothing until a step needs dense words. So a picture
//! whose channels lie last is a view in the order [n, c, h, w] over a memory in the order [n, h, w, c].

use std::sync::Arc;

use smallvec::SmallVec;

use crate::ops::shape::merged;

use super::step::WordKind;

/// A value of a network under construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueId(pub(super) usize);

/// Numbers of a memory and of its first word, for a step that reads dense words.
pub(super) type MemoryId = usize;

pub(super) type Lengths = SmallVec<[usize; 6]>;

/// How a value lies in a memory.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) memory: MemoryId,
    pub(super) lengths: Lengths,
    pub(super) strides: Lengths,
    pub(super) offset: usize,
}

/// Dense words that one step writes, or that are known, or that the caller gives.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) kind: WordKind,
    pub(super) words: usize,
    pub(super) source: Source,
}

#[derive(Debug, Clone)]
pub(super) enum Source {
    Input,
    Known(Arc<Vec<u32>>),
    Step,
}

/// Strides of dense words whose axes, slowest first, are `order`.
pub(super) fn dense_strides(lengths: &[usize], order: &[usize]) -> Lengths {
    let mut strides: Lengths = SmallVec::from_elem(0, lengths.len());
    let mut step = 1;
    for axis in order.iter().rev() {
        strides[*axis] = step;
        step *= lengths[*axis].max(1);
    }
    strides
}

/// The axes from first to last.
pub(super) fn straight(rank: usize) -> Lengths {
    (0..rank).collect()
}

/// The order of axes with the channels (axis 1) last.
pub(super) fn channels_last(rank: usize) -> Lengths {
    [0].into_iter().chain(2..rank).chain([1]).take(rank.max(1)).filter(|axis| *axis < rank).collect()
}

impl View {
    pub(super) fn count(&self) -> usize {
        self.lengths.iter().product()
    }

    /// True if the words of the view, in this order of axes, are contiguous words from the start of the memory.
    pub(super) fn is_dense(&self, order: &[usize]) -> bool {
        if self.offset != 0 {
            return false;
        }
        if self.count() == 0 {
            return true;
        }
        let (lengths, strides) = (in_order(&self.lengths, order), in_order(&self.strides, order));
        matches!(merged(&lengths, &strides).as_slice(), [] | [(_, 1)])
    }

    /// The order of axes in which the view's words lie in memory: by falling stride; axes of length 1 and repeated axes
    /// stay where they are.
    pub(super) fn order(&self) -> Lengths {
        let counted = |axis: &usize| self.lengths[*axis] > 1 && self.strides[*axis] > 0;
        let mut moving: Vec<usize> = (0..self.lengths.len()).filter(counted).collect();
        let places = moving.clone();
        moving.sort_by_key(|axis| std::cmp::Reverse(self.strides[*axis]));
        let mut order = straight(self.lengths.len());
        for (place, axis) in places.into_iter().zip(moving) {
            order[place] = axis;
        }
        order
    }
}

pub(super) fn in_order(of: &[usize], order: &[usize]) -> Lengths {
    order.iter().map(|axis| of[*axis]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_with_its_channels_last_is_dense_in_that_order_only() {
        let order = channels_last(4);
        assert_eq!(order.as_slice(), [0, 2, 3, 1]);
        let lengths: Lengths = SmallVec::from_slice(&[1, 3, 4, 5]);
        let strides = dense_strides(&lengths, &order);
        let view = View { memory: 0, lengths, strides, offset: 0 };
        assert!(view.is_dense(&order) && !view.is_dense(&straight(4)));
        assert_eq!(view.order().as_slice(), [0, 2, 3, 1]);
    }

    #[test]
    fn axes_of_length_one_do_not_matter_for_the_order() {
        let lengths: Lengths = SmallVec::from_slice(&[1, 7, 1, 1]);
        let view = View { memory: 0, strides: dense_strides(&lengths, &straight(4)), lengths, offset: 0 };
        assert!(view.is_dense(&channels_last(4)) && view.is_dense(&straight(4)));
    }
}
