//! Chroma of half the width for a row of pixels, mixed from two rows of the chroma planes.
//!
//! Two neighbouring rows of pixels lie between the same two rows of 4:2:0 chroma. Both are computed when the upper one
//! is requested, because the rows of chroma are then loaded and interleaved once. [`Halves::begin`] discards a row that
//! was computed in advance for another frame.
//!
//! Values are distances from the middle. Their scale ([`Halves::scale`]) leaves the smallest weights for the
//! interpolation along the row.

use crate::simd::halves::{self, RowWeights};
use crate::simd::{Level, Loop};

use super::way::Site;

/// The position of chroma relative to a row of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sited {
    pub(super) across: Site,
    /// Weight of the nearer row of u and of v, in quarters.
    pub(super) near: [u16; 2],
    /// The same for the next row of pixels, if it lies between the same two rows of chroma. The other row of chroma is
    /// then the nearer one.
    pub(super) next: Option<[u16; 2]>,
    /// The number of the row of pixels.
    pub(super) y: usize,
}

impl Sited {
    pub(super) const CENTRE: Sited = Sited { across: Site::Between, near: [3, 3], next: None, y: 0 };
}

/// Rows of u and of v, allocated once and reused.
#[derive(Debug, Default)]
pub(super) struct Halves {
    own: [HalfRow; 2],
    next: [HalfRow; 2],
    /// The row of pixels whose chroma is in `next`.
    ahead: Option<usize>,
}

impl Halves {
    /// Starts a frame or a band.
    pub(super) fn begin(&mut self) {
        self.ahead = None;
    }

    /// The weight of a quarter of a row of chroma. Along a row, chroma between two pixels then needs the weights 3 and
    /// 1. Chroma on even pixels needs the weight 2 for even pixels, and 1 and 1 for odd pixels.
    const fn scale(across: Site) -> u8 {
        match across {
            Site::Between => 16,
            Site::First | Site::Second => 32,
        }
    }

    /// Chroma from two planes. Each has the row that covers the pixels, and the row on the other side of the pixels.
    pub(super) fn of_planes(&mut self, level: Level, chroma: [[&[u8]; 2]; 2], sited: Sited) -> [&[i16]; 2] {
        if !self.is_ahead(sited) {
            let (weights, both) = (sited.weights(), sited.next.is_some());
            for (plane, rows) in chroma.into_iter().enumerate() {
                let count = rows[0].len();
                let (own, next) = (self.own[plane].resized(count), self.next[plane].resized(count));
                let weights = [weights[0][plane], weights[1][plane]];
                if !halves::mix_plane(level, rows, weights, [&mut *own, &mut *next], both) {
                    level.run(Mixed { rows, weights: weights[0], into: own });
                    if both {
                        level.run(Mixed { rows, weights: weights[1], into: next });
                    }
                }
            }
        }
        self.ended()
    }

    /// Like [`Halves::of_planes`], with u and v interleaved.
    pub(super) fn of_pairs(&mut self, level: Level, rows: [&[u8]; 2], sited: Sited) -> [&[i16]; 2] {
        if !self.is_ahead(sited) {
            let count = rows[0].len() / 2;
            let (weights, both) = (sited.weights(), sited.next.is_some());
            let Halves { own: [u, v], next: [next_u, next_v], .. } = self;
            let (u, v, next_u, next_v) =
                (u.resized(count), v.resized(count), next_u.resized(count), next_v.resized(count));
            let into = [[&mut *u, &mut *v], [&mut *next_u, &mut *next_v]];
            if !halves::mix_pairs(level, rows, weights, into, both) {
                level.run(MixedApart { rows, weights: weights[0], u, v });
                if both {
                    level.run(MixedApart { rows, weights: weights[1], u: next_u, v: next_v });
                }
            }
        }
        self.ended()
    }

    fn ended(&mut self) -> [&[i16]; 2] {
        let [u, v] = &mut self.own;
        [u.ended(), v.ended()]
    }

    /// Whether the chroma of this row is already computed. Otherwise the caller must compute it, and that of the next
    /// row.
    fn is_ahead(&mut self, sited: Sited) -> bool {
        let is_ahead = self.ahead == Some(sited.y);
        if is_ahead {
            std::mem::swap(&mut self.own, &mut self.next);
        }
        self.ahead = if is_ahead { None } else { sited.next.map(|_| sited.y + 1) };
        is_ahead
    }
}

impl Sited {
    /// The weights of the two rows of chroma for u and v of this row, and for u and v of the next row.
    fn weights(&self) -> [[RowWeights; 2]; 2] {
        let scale = Halves::scale(self.across);
        let mut weights = [self.near, self.next.unwrap_or_default()]
            .map(|of_row| of_row.map(|near| [scale * near as u8, scale * (4 - near as u8)]));
        weights[1].iter_mut().for_each(|of_plane| of_plane.reverse());
        weights
    }
}

/// A row, with one more element at each end.
///
/// The elements between the ends start at a cache line, so that stores of vectors do not cross lines.
#[derive(Debug, Default)]
struct HalfRow {
    memory: Vec<i16>,
    first: usize,
    count: usize,
}

impl HalfRow {
    /// Makes room for this many elements between the ends.
    #[inline]
    fn resized(&mut self, count: usize) -> &mut [i16] {
        const LINE: usize = 64;
        let len = count + 2 + LINE / 2;
        if self.memory.len() != len {
            self.memory.resize(len, 0);
            // `align_offset` may return any number if it cannot tell the address.
            (self.first, self.count) = (self.memory[1..].as_ptr().align_offset(LINE).min(LINE / 2), count);
        }
        &mut self.memory[self.first + 1..][..count]
    }

    /// Repeats the first and the last element, and returns all elements.
    #[inline]
    fn ended(&mut self) -> &[i16] {
        let all = &mut self.memory[self.first..][..self.count + 2];
        (all[0], all[self.count + 1]) = (all[1], all[self.count]);
        all
    }
}

/// Mixes two rows of chroma.
struct Mixed<'a> {
    rows: [&'a [u8]; 2],
    weights: RowWeights,
    into: &'a mut [i16],
}

impl Loop for Mixed<'_> {
    #[inline(always)]
    fn run(self) {
        let [near, far] = self.rows;
        for ((sum, near), far) in self.into.iter_mut().zip(near).zip(far) {
            *sum = mixed(u16::from(*near), u16::from(*far), self.weights);
        }
    }
}

/// Like [`Mixed`], with u and v interleaved.
struct MixedApart<'a> {
    rows: [&'a [u8]; 2],
    weights: [RowWeights; 2],
    u: &'a mut [i16],
    v: &'a mut [i16],
}

impl Loop for MixedApart<'_> {
    #[inline(always)]
    fn run(self) {
        let [near, far] = self.rows;
        let rows = near.as_chunks::<2>().0.iter().zip(far.as_chunks::<2>().0);
        for ((u, v), (near, far)) in self.u.iter_mut().zip(self.v).zip(rows) {
            let (near, far) = (u16::from_le_bytes(*near), u16::from_le_bytes(*far));
            *u = mixed(near & 255, far & 255, self.weights[0]);
            *v = mixed(near >> 8, far >> 8, self.weights[1]);
        }
    }
}

#[inline(always)]
fn mixed(near: u16, far: u16, [one, other]: RowWeights) -> i16 {
    let (one, other) = (u16::from(one), u16::from(other));
    (one * near + other * far).wrapping_sub(128 * (one + other)).cast_signed()
}
