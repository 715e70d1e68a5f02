//! Which files the values of one memory are from.
//!
//! Owns the order of files over one another, and how old what shows of them is.
//! Does not read files or touch memory.
//!
//! Always: where two files have values for the same place, those of the one that has missed fewer writes show; what is said
//! of a range is what holds for the oldest of its values.

/// Files over one another, the one that has missed the most writes at the bottom.
#[derive(Debug)]
pub(super) struct Layers {
    layers: Vec<Layer>,
}

#[derive(Debug, Clone, Copy)]
struct Layer {
    range: (usize, usize),
    missed: Option<u64>,
}

/// How old values of a file are, as a number to compare: what nobody knows is the oldest.
pub(super) fn age(missed: Option<u64>) -> u64 {
    missed.unwrap_or(u64::MAX)
}

impl Layers {
    /// Begins with a file that has values for all of a memory, and has missed this many writes.
    pub(super) fn over(bytes: usize, missed: Option<u64>) -> Layers {
        Layers { layers: vec![Layer { range: (0, bytes), missed }] }
    }

    /// Puts the next one on top. It has missed no more writes than those below.
    pub(super) fn add(&mut self, range: (usize, usize), missed: Option<u64>) {
        debug_assert!(self.layers.iter().all(|below| age(missed) <= age(below.missed)));
        self.layers.push(Layer { range, missed });
    }

    /// How many writes the oldest of the values in a range has missed.
    pub(super) fn missed(&self, range: (usize, usize)) -> Option<u64> {
        let mut hidden = vec![range];
        let mut oldest = Some(0);
        // From the top: each layer shows where none above it does, and those below are no younger.
        for layer in self.layers.iter().rev() {
            if hidden.iter().any(|part| is_common(*part, layer.range)) {
                oldest = layer.missed;
            }
            hidden = hidden.into_iter().flat_map(|part| without(part, layer.range)).collect();
        }
        oldest
    }

    /// Whether nothing lies on the layer of this number, the first being 0.
    pub(super) fn is_bare(&self, at: usize) -> bool {
        let range = self.layers[at].range;
        self.layers[at + 1..].iter().all(|above| !is_common(above.range, range))
    }
}

fn is_common(one: (usize, usize), two: (usize, usize)) -> bool {
    one.0.max(two.0) < one.1.min(two.1)
}

/// What is left of a range without another: before it, and behind.
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
