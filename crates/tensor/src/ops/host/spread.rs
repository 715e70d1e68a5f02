//! Distributes rows of results over rayon's threads; a browser has a single thread.
//!
//! Invariants: a piece is whole rows, and every row is in exactly one piece. The values of a row do not depend on how
//! rows are divided into pieces. No memory is allocated on rayon's threads, because work is halved by `join` and not
//! spawned.

/// Minimum number of values per thread. Waking a thread takes about 10 us, and so does processing this many values.
const WORTH: usize = 32 * 1024;

/// Calls `work` once for each piece of `out`, with the index of the piece's first row. A piece is whole rows of `row`
/// values. `values` is the number of values to process in all.
pub(crate) fn spread<T: Send>(
    out: &mut [T],
    row: usize,
    values: usize,
    threads: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    in_pieces(out, row, values, threads, &work);
}

/// Takes `work` as a trait object. If this function were generic over `work`, the loops of `work` would be compiled
/// twice: inlined into the call on this thread, and into the calls on other threads.
fn in_pieces<T: Send>(
    out: &mut [T],
    row: usize,
    values: usize,
    threads: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    if row == 0 || out.is_empty() {
        return;
    }
    let pieces = threads.min(values / WORTH).min(out.len() / row).max(1);
    halve(0, out, row, pieces, work);
}

fn halve<T: Send>(first: usize, out: &mut [T], row: usize, pieces: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    #[cfg(not(target_arch = "wasm32"))]
    if pieces > 1 {
        let left = pieces / 2;
        let rows = out.len() / row * left / pieces;
        let (one, two) = out.split_at_mut(rows * row);
        rayon::join(|| halve(first, one, row, left, work), || halve(first + rows, two, row, pieces - left, work));
        return;
    }
    let _ = pieces;
    work(first, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_worked_on_once() {
        for threads in [1, 2, 3, 7] {
            let mut out = vec![0_usize; 11 * 3];
            spread(&mut out, 3, 10 * WORTH, threads, |first, out| {
                for (row, out) in out.chunks_mut(3).enumerate() {
                    for value in out {
                        *value += first + row + 1;
                    }
                }
            });
            let rows: Vec<usize> = (0..33).map(|at| at / 3 + 1).collect();
            assert_eq!(out, rows, "{threads} threads");
        }
    }
}
