//! Vectors of floats for the loops of this module: the vectors that the crate `pulp` has for this machine, or arrays.
//!
//! Arrays of plain floats are not enough for the tiles of a product: compilers keep the sums of a tile in memory.
//!
//! Invariant: a [`Level`] exists only for instructions that this machine has. `pulp` checks them.

#![expect(unsafe_code, reason = "loops that check a whole run of values load them by pointers")]

use bytemuck::AnyBitPattern;
use pulp::{Simd, WithSimd};

/// The instructions that the loops use.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Plain(Plain),
    #[cfg(target_arch = "x86_64")]
    V3(pulp::x86::V3),
    #[cfg(target_arch = "x86_64")]
    V4(pulp::x86::V4),
    #[cfg(target_arch = "aarch64")]
    Neon(pulp::aarch64::Neon),
}

impl Level {
    /// The widest vectors of this machine.
    #[inline]
    pub(crate) fn detected() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(set) = pulp::x86::V4::try_new() {
                return Level::V4(set);
            }
            if let Some(set) = pulp::x86::V3::try_new() {
                return Level::V3(set);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(set) = pulp::aarch64::Neon::try_new() {
            return Level::Neon(set);
        }
        Level::Plain(Plain)
    }

    /// All levels of this machine.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Level> {
        let mut all = vec![Level::Plain(Plain)];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(pulp::x86::V3::try_new().map(Level::V3));
            all.extend(pulp::x86::V4::try_new().map(Level::V4));
        }
        #[cfg(target_arch = "aarch64")]
        all.extend(pulp::aarch64::Neon::try_new().map(Level::Neon));
        all
    }
}

/// One set of vector instructions.
pub(crate) trait Lanes: Copy + Send + Sync {
    type Vector: AnyBitPattern;
    /// Floats of a vector; a divisor of 16.
    const COUNT: usize;

    /// Calls a closure that is compiled for these instructions. The closure must be `#[inline(always)]`.
    fn call<R>(self, work: impl FnOnce() -> R) -> R;
    fn splat(self, value: f32) -> Self::Vector;
    /// The first values of a slice that has at least [`Lanes::COUNT`] values.
    fn load(self, from: &[f32]) -> Self::Vector;
    /// The [`Lanes::COUNT`] values from `from`.
    ///
    /// # Safety
    ///
    /// All of them are initialised values of one allocation.
    #[inline(always)]
    unsafe fn load_at(self, from: *const f32) -> Self::Vector {
        const { assert!(size_of::<Self::Vector>() == Self::COUNT * size_of::<f32>()) }
        // SAFETY: a vector has the size of its values, and any bits are values of it.
        unsafe { from.cast::<Self::Vector>().read_unaligned() }
    }
    /// As many values as the slice has, up to [`Lanes::COUNT`], and zeros.
    fn load_part(self, from: &[f32]) -> Self::Vector;
    fn store(self, vector: Self::Vector, to: &mut [f32]);
    /// Stores as many values as the slice has, up to [`Lanes::COUNT`].
    fn store_part(self, vector: Self::Vector, to: &mut [f32]);
    /// a * b + c. The product is rounded only if the machine has no instruction that does both.
    fn multiply_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `low` if a value is less than that, `high` if it is greater than that, and otherwise the value. NaN stays NaN.
    fn clamp(self, value: Self::Vector, low: Self::Vector, high: Self::Vector) -> Self::Vector;
}

/// Vectors of `pulp`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide<S>(pub(crate) S);

struct Call<F>(F);

impl<R, F: FnOnce() -> R> WithSimd for Call<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> R {
        (self.0)()
    }
}

impl<S: Simd> Lanes for Wide<S> {
    type Vector = S::f32s;
    const COUNT: usize = S::F32_LANES;

    #[inline(always)]
    fn call<R>(self, work: impl FnOnce() -> R) -> R {
        self.0.vectorize(Call(work))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> S::f32s {
        self.0.splat_f32s(value)
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> S::f32s {
        S::as_simd_f32s(&from[..Self::COUNT]).0[0]
    }

    #[inline(always)]
    fn load_part(self, from: &[f32]) -> S::f32s {
        self.0.partial_load_f32s(from)
    }

    #[inline(always)]
    fn store(self, vector: S::f32s, to: &mut [f32]) {
        S::as_mut_simd_f32s(&mut to[..Self::COUNT]).0[0] = vector;
    }

    #[inline(always)]
    fn store_part(self, vector: S::f32s, to: &mut [f32]) {
        self.0.partial_store_f32s(to, vector);
    }

    #[inline(always)]
    fn multiply_add(self, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        self.0.mul_add_e_f32s(a, b, c)
    }

    #[inline(always)]
    fn add(self, a: S::f32s, b: S::f32s) -> S::f32s {
        self.0.add_f32s(a, b)
    }

    #[inline(always)]
    fn clamp(self, value: S::f32s, low: S::f32s, high: S::f32s) -> S::f32s {
        // Selects, because a maximum of NaN and a number is the number on some machines.
        let value = self.0.select_f32s(self.0.less_than_f32s(value, low), low, value);
        self.0.select_f32s(self.0.less_than_f32s(high, value), high, value)
    }
}

/// Arrays as long as the shortest vectors of any machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Lanes for Plain {
    type Vector = [f32; 4];
    const COUNT: usize = 4;

    #[inline(always)]
    fn call<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; 4] {
        [value; 4]
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> [f32; 4] {
        *from.first_chunk().expect("a vector is loaded only from at least as many values")
    }

    #[inline(always)]
    fn load_part(self, from: &[f32]) -> [f32; 4] {
        let mut vector = [0.0; 4];
        for (lane, value) in vector.iter_mut().zip(from) {
            *lane = *value;
        }
        vector
    }

    #[inline(always)]
    fn store(self, vector: [f32; 4], to: &mut [f32]) {
        to[..4].copy_from_slice(&vector);
    }

    #[inline(always)]
    fn store_part(self, vector: [f32; 4], to: &mut [f32]) {
        for (value, lane) in to.iter_mut().zip(vector) {
            *value = lane;
        }
    }

    #[inline(always)]
    fn multiply_add(self, a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    fn add(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn clamp(self, value: [f32; 4], low: [f32; 4], high: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| {
            let value = if value[lane] < low[lane] { low[lane] } else { value[lane] };
            if high[lane] < value { high[lane] } else { value }
        })
    }
}
