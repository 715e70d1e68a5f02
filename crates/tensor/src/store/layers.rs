//! Tracks which file each value of a memory comes from while the memory is restored from several overlapping files.
//!
//! This module only keeps track: it neither reads files nor touches memory.
//!
//! Invariants: if two files overlap, the values of the file that missed fewer writes win. The age of a value is the
//! number of writes that its file has missed. The age of a range is the age of the oldest value in that range.

/// Overlapping files, bottom to top. The bottom file has missed the most writes.
#[derive(Debug)]
pub(super) struct Layers {
    layers: Vec<Layer>,
}

#[derive(Debug, Clone, Copy)]
struct Layer {
    range: (usize, usize),
    missed: Option<u64>,
}

/// The age of a file's values, as a number to compare. An unknown age counts as the oldest.
pub(super) fn age(missed: Option<u64>) -> u64 {
    missed.unwrap_or(u64::MAX)
}

impl Layers {
    /// Starts with a file that covers the whole memory.
    pub(super) fn over(bytes: usize, missed: Option<u64>) -> Layers {
        Layers { layers: vec![Layer { range: (0, bytes), missed }] }
    }

    /// Adds a layer on top. The new layer must not have missed more writes than the layers below.
    pub(super) fn add(&mut self, range: (usize, usize), missed: Option<u64>) {
        debug_assert!(self.layers.iter().all(|below| age(missed) <= age(below.missed)));
        self.layers.push(Layer { range, missed });
    }

    /// The number of writes that the oldest value in a range has missed.
    pub(super) fn missed(&self, range: (usize, usize)) -> Option<u64> {
        let mut hidden = vec![range];
        let mut oldest = Some(0);
        // From the top: a layer is visible in the parts that no layer above covers. Layers below are never younger.
        for layer in self.layers.iter().rev() {
            if hidden.iter().any(|part| is_common(*part, layer.range)) {
                oldest = layer.missed;
            }
            hidden = hidden.into_iter().flat_map(|part| without(part, layer.range)).collect();
        }
        oldest
    }

    /// True if no layer above overlaps the layer with this index.
    pub(super) fn is_bare(&self, at: usize) -> bool {
        let range = self.layers[at].range;
        self.layers[at + 1..].iter().all(|above| !is_common(above.range, range))
    }
}

fn is_common(one: (usize, usize), two: (usize, usize)) -> bool {
    one.0.max(two.0) < one.1.min(two.1)
}

/// The parts of a range before and after another range.
fn without(range: (usize, usize), other: (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let parts = [(range.0, range.1.min(other.0)), (range.0.max(other.1), range.1)];
    parts.into_iter().filter(|(start, end)| start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_as_old_as_the_oldest_value_that_shows_in_it() {
        let mut layers = Layers::over(10, None);
        layers.add((0, 6), Some(3));
        layers.add((4, 8), Some(1));
        layers.add((5, 6), Some(0));
        let missed = [(0, 10), (0, 8), (4, 8), (5, 6), (8, 9), (7, 7)].map(|range| layers.missed(range));
        assert_eq!(missed, [None, Some(3), Some(1), Some(0), None, Some(0)]);
        assert_eq!([0, 1, 2, 3].map(|at| layers.is_bare(at)), [false, false, false, true]);
    }
}
