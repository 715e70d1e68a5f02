//! Distributes bands of whole rows of an output over rayon's threads; a browser has a single thread.
//!
//! Invariant: no memory is allocated on rayon's threads, because the work is halved by `join` and not spawned.

/// Minimum number of multiplications per thread. Waking a thread takes about 10 us, and so do these.
const WORTH: usize = 512 * 1024;

/// Calls `work` once for each band of `out`, with the index of the band's first row. `multiplications` is the number of
/// all rows together.
pub(super) fn bands(
    out: &mut [f32],
    row: usize,
    multiplications: usize,
    threads: usize,
    work: &(dyn Fn(usize, &mut [f32]) + Sync),
) {
    if row == 0 || out.is_empty() {
        return;
    }
    let pieces = threads.min(multiplications / WORTH).min(out.len() / row).max(1);
    halve(0, out, row, pieces, work);
}

fn halve(first: usize, out: &mut [f32], row: usize, pieces: usize, work: &(dyn Fn(usize, &mut [f32]) + Sync)) {
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
