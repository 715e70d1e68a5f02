//! How kernels write values that share words: the WGSL around `fn element(i: u32) -> u32`, which returns the bits of
//! result `i`, and the mapping of words to invocations.
//!
//! Invariant: an invocation owns whole words. A word that only partly holds results is read, changed and written by the
//! one invocation that owns the word, so that the other values in the word stay.

use std::fmt::Write;

use crate::ops::dtype::DType;

use super::text::{KernelText, Launch};

/// Workgroup size.
const GROUP: usize = 64;

/// The parameters that the entry point uses; they follow the kernel's own parameters.
pub(crate) const FIELDS: [&str; 5] = ["out_offset", "count", "run", "pitch", "owned"];

/// Where results go: runs of `run` values each, with `pitch` values from start to start and `count` values in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputRuns {
    pub offset: usize,
    pub count: usize,
    /// The number of contiguous values in a run.
    pub run: usize,
    /// The number of values from the start of a run to the start of the next run.
    pub pitch: usize,
}

impl OutputRuns {
    /// One run of `count` contiguous values.
    pub(crate) fn whole(offset: usize, count: usize) -> OutputRuns {
        OutputRuns { offset, count, run: count.max(1), pitch: count.max(1) }
    }

    /// The parameters, and the number of workgroups.
    fn words(&self, dtype: DType) -> ([u32; 5], u64) {
        let per = dtype.per_word();
        let runs = self.count.div_ceil(self.run);
        let owned = if per == 1 || self.count == 0 {
            self.count
        } else {
            let end = self.offset + (runs - 1) * self.pitch + self.run;
            end.div_ceil(per) - self.offset / per
        };
        let words = [self.offset, self.count, self.run, self.pitch, owned].map(|number| number as u32);
        (words, owned.div_ceil(GROUP) as u64)
    }

    /// The launch of a kernel whose own parameters are `own`.
    pub(crate) fn launch(&self, dtype: DType, own: &[u32], most: u32) -> Launch {
        let (words, groups) = self.words(dtype);
        let all: Vec<u32> = own.iter().copied().chain(words).collect();
        Launch::new(&all, groups, most)
    }
}

/// The entry point of a kernel with results of this type. The text already has the functions of [`MATH`](super::MATH).
pub(crate) fn push_main(text: &mut KernelText, dtype: DType) {
    let per = dtype.per_word();
    let store = if per == 1 {
        "    let run = quotient(number, p.run);
    out[p.out_offset + run * (p.pitch - p.run) + number] = element(number);"
            .to_owned()
    } else {
        let bits = 32 / per;
        let ones = (1_u64 << bits) - 1;
        let mut store = format!(
            "    let word = p.out_offset / {per}u + number;\n    let first = word * {per}u;\n    var made = 0u;\n    \
             var mask = 0u;\n"
        );
        for slot in 0..per {
            let shift = slot * bits;
            let _ = write!(
                store,
                "    {{
        let at = max(first + {slot}u, p.out_offset) - p.out_offset;
        let run = quotient(at, p.pitch);
        let within = at - run * p.pitch;
        let i = run * p.run + within;
        if within < p.run && i < p.count && first + {slot}u >= p.out_offset {{
            made |= (element(i) & {ones}u) << {shift}u;
            mask |= {}u;
        }}
    }}\n",
                ones << shift
            );
        }
        store
            + "    if mask == 0xffffffffu {
        out[word] = made;
    } else if mask != 0u {
        out[word] = (out[word] & ~mask) | made;
    }"
    };
    push_entry(text, &store);
}

/// The entry point of a kernel that stores its results itself: `store` is WGSL that runs once for each owned word,
/// whose index is `number`.
pub(crate) fn push_entry(text: &mut KernelText, store: &str) {
    text.push(&include_str!("words.wgsl").replace("$STORE", store));
}
