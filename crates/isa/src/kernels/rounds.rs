//! How often the loops of kernels run in the frame for which their work is counted.
//!
//! A row lists the rounds of the loops in the machine code, in the order of the code. Compilers unroll the loop over the
//! pixels of an invocation, so most kernels have the same loop several times: after the last of the rounds comes the
//! first again. A kernel without a row has no loops, or loops whose rounds depend on data; for those the compiler's
//! assumption stands.
//!
//! Settings: `blur` with sigma 2 (13 taps), `boxblur` of 9x9, `convolve` of 3x3, `resample` with lanczos from 1920x1080
//! to 1280x720, chroma at its default position.

/// Rows by name; `*` stands for the first part of a name of one pass.
const ROUNDS: &[(&str, &[u32])] = &[
    ("blur/1", &[6]),
    ("blur/2", &[6]),
    ("table-before-blur/1", &[6]),
    ("table-before-blur/2", &[6]),
    ("nv12-blur-i420/1", &[6]),
    // Four sums over taps of pixels; then the loops over pixels around chroma that is not centred, which do not run.
    ("nv12-blur-i420/2", &[6, 6, 6, 6, 0, 0, 6]),
    ("boxblur/1", &[9]),
    ("boxblur/2", &[9]),
    ("convolve", &[8]),
    ("luma/1", &[270, 0]),
    ("median3", &[3, 3]),
    ("matrix-before-median3", &[3, 3]),
    ("median5", &[5, 5]),
    ("resample/1", &[3]),
    ("resample/2", &[3]),
    ("*-to-rgb8", &[4]),
    ("*-to-i444", &[4]),
    ("*-to-gray8", &[4]),
    // The loops over pixels around chroma that is not centred.
    ("*-to-i420", &[0, 0]),
    ("*-to-nv12", &[0, 0]),
    // Clearing the memory of the workgroup; rounds of 16 values of k; these values.
    ("matmul-512", &[4, 32, 16]),
    ("matmul-1024", &[4, 64, 16]),
    // Three times over the row, four values in a round, and the rest; twice, eight lanes join eight values each.
    ("softmax-1024", &[4, 0, 7, 4, 0, 7, 4, 0]),
];

/// The rounds of a kernel's loops. Variants of a kernel have the same.
pub(crate) fn of(kernel: &str) -> &'static [u32] {
    let (name, pass) = kernel.split_once('/').map_or((kernel, None), |(name, pass)| (name, Some(pass)));
    let name = name.split('@').next().unwrap_or(name);
    let is_this = |row: &str| match row.strip_prefix('*') {
        Some(end) => pass.is_none() && name.ends_with(end),
        None => row.split_once('/').map_or((row, None), |(row, pass)| (row, Some(pass))) == (name, pass),
    };
    ROUNDS.iter().find(|(row, _)| is_this(row)).map_or(&[], |(_, rounds)| rounds)
}

#[cfg(test)]
mod tests {
    use vramp::kernels::head::{blur, resample};
    use vramp::plan::Size;

    use super::*;

    #[test]
    fn variants_and_pairs_of_formats_share_rows() {
        assert_eq!(of("blur@64x8/2"), [6]);
        assert_eq!(of("nv12-to-gray8"), [4]);
        assert_eq!((of("blur"), of("load")), (&[][..], &[][..]));
    }

    #[test]
    fn the_rounds_are_those_of_the_settings() {
        let weights = blur::weights(2.0, blur::size_of(2.0)).unwrap();
        assert_eq!(blur::small(&weights).len(), of("blur/1")[0] as usize);
        let (source, size) = (Size { width: 1920, height: 1080 }, Size { width: 1280, height: 720 });
        let (words, _) = resample::pack(resample::axis::ResampleFilter::Lanczos, source, size);
        // Narrow weights: two taps in a word, four in a round.
        assert_eq!(words[2], 0);
        assert_eq!(words[..2].iter().map(|words| words.div_ceil(2)).collect::<Vec<_>>(), [of("resample/1")[0]; 2]);
    }
}
