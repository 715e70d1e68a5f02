//! Levels of vector instructions, and loops that are compiled once for each level.
//!
//! x86-64 has four levels: the baseline (SSE2), AVX2, AVX-512, and AVX-512 with byte permutations. aarch64 has only the
//! baseline (NEON). The program detects the machine's level once. All levels give the same bytes.
//!
//! Safety: only the detection creates a [`Level`] above the baseline. A `Level` is therefore proof that the machine has
//! the level's instructions, and the `unsafe` calls rely on this proof.
//!
//! Most loops are plain Rust behind [`Level::run`]. Only loops that compilers do not vectorise well are written by
//! hand, one submodule for each kind of loop. Each of these loops has a scalar twin.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]

#[cfg(target_arch = "x86_64")]
mod wide;

pub(crate) mod bilinear;
pub(crate) mod blur;
pub(crate) mod convolve;
pub(crate) mod four;
pub(crate) mod gray;
pub(crate) mod halves;
pub(crate) mod matrix;
pub(crate) mod mix;
pub(crate) mod paint;
pub(crate) mod pick;
pub(crate) mod resample;
pub(crate) mod table;
pub(crate) mod triples;
pub(crate) mod turn;
pub(crate) mod weigh;

use std::fmt;
use std::sync::OnceLock;

/// A level of vector instructions that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(LevelKind);

/// Private, because code that could construct a level could run instructions that the machine does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LevelKind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx512Bytes,
}

impl Level {
    /// The instructions that every machine of this architecture has: SSE2 on `x86_64`, NEON on aarch64.
    pub const BASELINE: Level = Level(LevelKind::Baseline);

    /// The highest level of this machine. It is detected once.
    pub fn detected() -> Level {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        *DETECTED.get_or_init(detect)
    }

    /// Every level of this machine, from the baseline up.
    pub fn available() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        let above = [LevelKind::Avx2, LevelKind::Avx512, LevelKind::Avx512Bytes].map(Level);
        #[cfg(not(target_arch = "x86_64"))]
        let above = [];
        let top = Level::detected();
        [Level::BASELINE].into_iter().chain(above).filter(|level| *level <= top).collect()
    }

    /// Runs a loop that is compiled for this level.
    #[inline]
    pub(crate) fn run(self, this: impl Loop) {
        match self.0 {
            // SAFETY: a level exists only if `detect` has found all of its instructions.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Bytes => unsafe { run_avx512_bytes(this) },
            _ => self.call(
                #[inline(always)]
                || this.run(),
            ),
        }
    }

    /// Calls a closure once, with vectors of this level. The closure is compiled three times: for 512-bit vectors, for
    /// 256-bit vectors and for the baseline. Use [`vectorised!`](crate::vectorised), which marks the closure
    /// `#[inline(always)]`. Without this mark the closure may be compiled only once, for the baseline.
    #[inline]
    pub fn call<R>(self, this: impl FnOnce() -> R) -> R {
        match self.0 {
            LevelKind::Baseline => this(),
            // SAFETY: a level exists only if `detect` has found all of its instructions.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 => unsafe { call_avx2(this) },
            // SAFETY: as above. Each level has the instructions of all levels below it.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512 | LevelKind::Avx512Bytes => unsafe { call_avx512(this) },
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            LevelKind::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Bytes => "avx512-bytes",
        })
    }
}

/// Evaluates an expression with the widest vectors that this machine has. The expression is compiled once for each
/// width, and the detected [`Level`] determines which of the versions runs.
///
/// Every function that the expression calls must be `#[inline(always)]`. Other functions run with the baseline's
/// vectors.
///
/// In `vectorised!(FUSED => ...)`, the expression can use a `bool` constant with the given name, here `FUSED`. It is
/// true if one instruction multiplies and adds.
///
/// ```
/// let mut values = [1.0_f32; 100];
/// vramp_kernels::vectorised!(for value in &mut values {
///     *value *= 0.5;
/// });
/// assert_eq!(values, [0.5; 100]);
/// ```
#[macro_export]
macro_rules! vectorised {
    ($fused:ident => $body:expr) => {
        if $crate::Level::detected() == $crate::Level::BASELINE {
            const $fused: bool = cfg!(target_arch = "aarch64");
            $body
        } else {
            $crate::Level::detected().call(
                #[inline(always)]
                || {
                    const $fused: bool = true;
                    $body
                },
            )
        }
    };
    ($body:expr) => {
        $crate::Level::detected().call(
            #[inline(always)]
            || $body,
        )
    };
}

/// A loop with its operands. `run` and every function that it calls must be `#[inline(always)]`, so that they become
/// part of the function that is compiled for a level.
pub(crate) trait Loop {
    fn run(self);
}

/// Prefetches bytes that will be read or written soon. Only a hint.
#[inline(always)]
pub(crate) fn ask_for(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch may name any address, and this address is within the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::BASELINE
}

// The lists of CPU features appear twice, in `detect` and at the functions below, because attributes take no constants.

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    macro_rules! has {
        ($($feature:tt)*) => { $(is_x86_feature_detected!($feature))&&* };
    }
    if !has!("avx2" "fma" "bmi1" "bmi2" "lzcnt" "popcnt") {
        Level::BASELINE
    } else if !has!("avx512f" "avx512bw" "avx512dq" "avx512vl") {
        Level(LevelKind::Avx2)
    } else if !has!("avx512vbmi" "avx512vnni") {
        Level(LevelKind::Avx512)
    } else {
        Level(LevelKind::Avx512Bytes)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn call_avx2<R>(this: impl FnOnce() -> R) -> R {
    this()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn call_avx512<R>(this: impl FnOnce() -> R) -> R {
    this()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn run_avx512_bytes(this: impl Loop) {
    this.run();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_machine_go_from_the_baseline_to_the_detected_one() {
        let all = Level::available();
        assert_eq!((all.first(), all.last()), (Some(&Level::BASELINE), Some(&Level::detected())));
        assert!(all.is_sorted());
        assert_eq!(Level::BASELINE.to_string(), "baseline");
    }

    #[test]
    fn an_expression_gives_what_it_gives_without_vectors() {
        let mut values: Vec<f32> = (0_u8..100).map(f32::from).collect();
        let sum: f32 = vectorised!({
            for value in &mut values {
                *value = *value * 0.5 + 1.0;
            }
            values.iter().sum()
        });
        assert_eq!(sum.to_bits(), 2575.0_f32.to_bits());
        assert_eq!(values[3].to_bits(), 2.5_f32.to_bits());
    }

    #[test]
    fn every_level_calls_the_closure_once() {
        for level in Level::available() {
            let mut calls = 0;
            assert_eq!(
                level.call(|| {
                    calls += 1;
                    calls
                }),
                1,
                "{level}"
            );
        }
        assert_eq!(vectorised!(FUSED => FUSED), Level::detected() != Level::BASELINE || cfg!(target_arch = "aarch64"));
    }
}
