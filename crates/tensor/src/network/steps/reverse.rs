//! Values in the opposite order along an axis.

use crate::ops::error::TensorError;

use crate::network::NetworkBuilder;
use crate::network::value::ValueId;

impl NetworkBuilder {
    /// The value with the entries of an axis from last to first.
    pub fn reversed(&mut self, x: ValueId, axis: usize) -> Result<ValueId, TensorError> {
        self.has_axis("reverse", x, axis)?;
        // A table of positions, twice: as it is made, and as words.
        self.claim_known("reverse", self.lengths(x)[axis].saturating_mul(2))?;
        let positions: Vec<usize> = (0..self.lengths(x)[axis]).rev().collect();
        self.picked(x, axis, &positions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check};

    #[test]
    fn a_reversed_axis_is_read_from_its_end() {
        for (lengths, axis) in [
            (vec![5], 0),
            (vec![2, 1], 1),
            (vec![2, 3, 4], 1),
            (vec![1, 3, 2, 5], 3),
            (vec![2, 3, 2, 2, 3], 1),
            (vec![2, 0], 1),
        ] {
            let x = Words::noise(&lengths, 4);
            let wanted = by_place(&lengths, |place| {
                let mut from = place.to_vec();
                from[axis] = lengths[axis] - 1 - from[axis];
                x.float(&from)
            });
            let wanted = Words::floats(&wanted, &lengths);
            check(&[x], true, &[wanted], &|net, x| vec![net.reversed(x[0], axis).unwrap()]);
        }
    }
}
