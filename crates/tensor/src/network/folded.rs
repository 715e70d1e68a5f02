//! What is computed while a network is built: steps over known values, and the strides of reshaped views.

use smallvec::SmallVec;

use crate::ops::error::TensorError;

use super::step::{HostCall, Step};
use super::value::{Lengths, View};

/// Maximum number of words that one step may compute from known values. A larger result would be a file that asks for more
/// memory than it has weights.
const MOST_WORDS: usize = 1 << 28;

/// Maximum number of operations of such a step: a few seconds. A small file could ask for years.
const MOST_WORK: u64 = 1 << 34;

/// Computes a step over known words.
pub(super) fn compute(
    step: &dyn Step,
    inputs: &[&[u32]],
    counts: &[usize],
    threads: usize,
) -> Result<Vec<Vec<u32>>, TensorError> {
    let words: usize = counts.iter().sum();
    if words > MOST_WORDS {
        let problem =
            format!("a value that is the same in every run has {words} values; at most {MOST_WORDS} are computed");
        return Err(TensorError::NotSupported { op: step.name(), problem });
    }
    if step.work() > MOST_WORK {
        let work = step.work();
        let problem =
            format!("a value that is the same in every run takes {work} operations; at most {MOST_WORK} are done");
        return Err(TensorError::NotSupported { op: step.name(), problem });
    }
    let mut made: Vec<Vec<u32>> = counts.iter().map(|count| vec![0; *count]).collect();
    let mut scratch = vec![0; step.scratch(threads)];
    let mut outputs: SmallVec<[&mut [u32]; 4]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    step.host(HostCall { inputs, outputs: &mut outputs, scratch: &mut scratch, threads });
    drop(outputs);
    Ok(made)
}

/// The words of a view, first axis slowest.
pub(super) fn read(words: &[u32], view: &View) -> Vec<u32> {
    let mut out = Vec::with_capacity(view.count());
    let mut at: Lengths = SmallVec::from_elem(0, view.lengths.len());
    for _ in 0..view.count() {
        let place: usize = at.iter().zip(&view.strides).map(|(at, stride)| at * stride).sum();
        out.push(words[view.offset + place]);
        for axis in (0..at.len()).rev() {
            at[axis] += 1;
            if at[axis] < view.lengths[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    out
}

/// The strides with which a view has other lengths; `None` if no strides describe that.
pub(super) fn reshaped_strides(view: &View, lengths: &[usize]) -> Option<Lengths> {
    if view.count() == 0 {
        return Some(super::value::dense_strides(lengths, &super::value::straight(lengths.len())));
    }
    // Runs of axes that are equivalent to one axis with one stride. A new axis must lie within one such run.
    let mut runs: Vec<(usize, usize)> =
        crate::ops::shape::merged(&view.lengths, &view.strides).iter().copied().collect();
    let mut strides: Lengths = SmallVec::from_elem(0, lengths.len());
    for axis in (0..lengths.len()).rev() {
        if lengths[axis] == 1 {
            continue;
        }
        while runs.last().is_some_and(|run| run.0 == 1) {
            runs.pop();
        }
        let run = runs.last_mut()?;
        if run.0 % lengths[axis] != 0 {
            return None;
        }
        strides[axis] = run.1;
        *run = (run.0 / lengths[axis], run.1 * lengths[axis]);
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::super::value::{channels_last, dense_strides, straight};
    use super::*;

    fn view(lengths: &[usize], order: &[usize]) -> View {
        View { memory: 0, lengths: lengths.into(), strides: dense_strides(lengths, order), offset: 0 }
    }

    #[test]
    fn a_reshaped_view_has_strides_if_no_axis_spans_a_gap() {
        let dense = view(&[2, 3, 4], &straight(3));
        assert_eq!(reshaped_strides(&dense, &[6, 2, 2]).unwrap().as_slice(), [4, 2, 1]);
        let turned = view(&[1, 3, 4, 5], &channels_last(4));
        assert_eq!(reshaped_strides(&turned, &[1, 3, 20]).unwrap().as_slice(), [0, 1, 3]);
        assert_eq!(reshaped_strides(&turned, &[1, 60]), None);
    }

    #[test]
    fn a_view_is_read_by_its_strides() {
        let words: Vec<u32> = (0..6).collect();
        let turned = View {
            memory: 0,
            lengths: SmallVec::from_slice(&[3, 2]),
            strides: SmallVec::from_slice(&[1, 3]),
            offset: 0,
        };
        assert_eq!(read(&words, &turned), [0, 3, 1, 4, 2, 5]);
    }
}
