//! The matrix product kernel in two forms, with tiles in registers or in workgroup memory, and the candidate tiles for
//! tuning. A long k is split into parts, whose results a reduction adds.
//!
//! Invariants: products of i8 are exact up to [`MOST_K`] values. Products of floats are sums of f32 in the order of k
//! with one step per value. In a step, the device may or may not round the product of two values before it adds the
//! product to the sum, so the results of two tiles differ by at most `k * 2^-24` of the sum of magnitudes.

#[cfg(test)]
mod tests;
mod tile_text;

use vramp_plan::Shader;

use crate::ops::dtype::DType;

use super::hook::Hook;
use super::text::{KernelText, Launch, MATH};
use tile_text::item;

/// Maximum number of values along k in one invocation; a round takes one value or four values. A sum of that many
/// products of i8 fits in i32.
const MOST_K: usize = super::MOST_ROUNDS - 4;

/// The axis along which four values of an operand are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Along {
    /// Along k: `a` is not transposed, or `b` is transposed.
    K,
    /// Along the other axis, which counts the rows of `a` or the columns of `b`.
    Side,
    /// Neither: any strides.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    /// f32, f16 or i8.
    pub dtype: DType,
    pub along: Along,
}

/// Where a tile's values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// In registers of the invocation that reads the values.
    Registers,
    /// In workgroup memory.
    Shared,
}

/// The part of the result that one invocation computes, and how the invocation reads the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Values along k in a round: 4 for a tile in registers (1 if neither operand is contiguous along k), else a
    /// multiple of 4.
    pub k: usize,
    pub form: Form,
}

impl Tile {
    /// The tiles that tuning tries.
    pub(crate) const CANDIDATES: [Tile; 6] = [
        Tile { m: 4, n: 4, k: 4, form: Form::Registers },
        Tile { m: 8, n: 4, k: 4, form: Form::Registers },
        Tile { m: 4, n: 8, k: 4, form: Form::Registers },
        Tile { m: 8, n: 8, k: 4, form: Form::Registers },
        Tile { m: 4, n: 4, k: 16, form: Form::Shared },
        Tile { m: 8, n: 4, k: 16, form: Form::Shared },
    ];

    /// The default without a measurement. On llvmpipe (Mesa 25) a 512^3 product took 40 ms of CPU time with 8x4 in
    /// registers, 47 with 4x4, 41 with 8x8, and 78 or more with tiles in workgroup memory. 8x8 took 1.5 times as long
    /// to compile as 8x4. The default for GPUs is a tile in workgroup memory; no GPU was measured.
    pub(crate) fn usual(m: usize, n: usize, software: bool) -> Tile {
        // For a single row or column, more rows or columns in a tile would be wasted, and the operand is not contiguous
        // along that axis.
        let (m, n) = match (m, n) {
            (_, 1) => (4, 1),
            (1, _) => (1, 4),
            (2..=4, _) => (4, 4),
            _ if !software => return Tile { m: 8, n: 4, k: 16, form: Form::Shared },
            _ => (8, 4),
        };
        Tile { m, n, k: 4, form: Form::Registers }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    /// The left operand.
    pub a: Operand,
    /// The right operand.
    pub b: Operand,
    /// True if four results are stored at once: n is a multiple of 4.
    pub wide: bool,
    pub tile: Tile,
    /// The hook that results pass through.
    pub finish: Hook,
}

/// The strides of an operand, in values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Strides {
    pub offset: usize,
    /// From row to row of a, from column to column of b.
    pub side: usize,
    pub k: usize,
    /// From product to product; 0 if all products use the same matrix.
    pub product: usize,
}

impl Strides {
    /// The contiguous axis for values with these strides; `side_length` is the length of the axis that is not k.
    pub(crate) fn along(&self, side_length: usize, k: usize) -> Along {
        let whole = |length: usize, pitch: usize| {
            [length, pitch, self.offset, self.product].iter().all(|number| number.is_multiple_of(4))
        };
        if self.k == 1 && whole(k, self.side) {
            Along::K
        } else if self.side == 1 && whole(side_length, self.k) {
            Along::Side
        } else {
            Along::Any
        }
    }
}

/// The sizes of one launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sizes {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// The length of the sums.
    pub k: usize,
    /// The number of products.
    pub products: usize,
    pub a: Strides,
    pub b: Strides,
    /// False if k may also be split to keep the device busy; true if k is split only when it exceeds [`MOST_K`]. Sums
    /// of i8 are exact only if they are not split.
    pub whole: bool,
}

impl Sizes {
    /// The number of parts into which k is split. With more than one part, results are `[parts, products, m, n]` of f32
    /// that did not pass through the hook, and the caller must sum over the first axis.
    pub(crate) fn parts(&self) -> usize {
        let for_rounds = self.k.div_ceil(MOST_K).max(1);
        if self.whole {
            return for_rounds;
        }
        let invocations = (self.m * self.n * self.products).div_ceil(16).max(1);
        // Without this split, a small result with a long k would leave most of the device idle.
        let for_width = (self.k / 4096).min(256 / invocations.min(256));
        for_width.max(for_rounds)
    }
}

const FIELDS: [&str; 14] = [
    "m",
    "n",
    "k",
    "products",
    "a_offset",
    "a_side",
    "a_k",
    "a_product",
    "b_offset",
    "b_side",
    "b_k",
    "b_product",
    "parts",
    "part_k",
];

impl Product {
    /// Buffers: a, b, the inputs of `finish`, the results.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.read("a", item(self.a));
        text.read("b", item(self.b));
        text.inputs(&self.finish, "side");
        text.write("out", if self.wide { "vec4<u32>" } else { "u32" });
        text.params(&FIELDS, self.finish.vectors);
        text.push(MATH);
        text.push(&self.finish.wgsl);
        let (across, down) = self.workgroup();
        let body = match self.tile.form {
            Form::Registers => self.registers(),
            Form::Shared => {
                let (rows, columns) = (down * self.tile.m, across * self.tile.n);
                let own = self.sum_type();
                text.push(&format!("var<workgroup> shared_a: array<{own}, {}>;", rows * self.tile.k));
                text.push(&format!("var<workgroup> shared_b: array<{own}, {}>;", columns * self.tile.k));
                self.shared(rows, columns)
            }
        };
        let wgsl = include_str!("matmul.wgsl")
            .replace("$ACROSS", &format!("{across}u"))
            .replace("$DOWN", &format!("{down}u"))
            .replace("$M", &format!("{}u", self.tile.m))
            .replace("$N", &format!("{}u", self.tile.n))
            .replace("$BODY", &body)
            .replace("$STORE", &self.store());
        text.push(&wgsl);
        let Tile { m, n, .. } = self.tile;
        let name = format!("matmul of {} and {}, {m}x{n}", self.a.dtype, self.b.dtype);
        text.shader(name, (across * down * m * n) as u32)
    }

    /// Parameters and grid, on a device with at most `most` workgroups along a dimension.
    pub(crate) fn launch(&self, sizes: &Sizes, most: u32) -> Launch {
        let Sizes { m, n, k, products, a, b, .. } = *sizes;
        let parts = sizes.parts();
        let part_k = k.div_ceil(parts).next_multiple_of(4);
        let (across, down) = self.workgroup();
        let tiles = n.div_ceil(across * self.tile.n) as u64 * m.div_ceil(down * self.tile.m) as u64;
        let words = [m, n, k, products].into_iter();
        let strides = [a, b].into_iter().flat_map(|it| [it.offset, it.side, it.k, it.product]);
        let words = words.chain(strides).chain([parts, part_k]);
        let words: Vec<u32> = words.map(|number| number as u32).collect();
        Launch::new(&words, tiles * (parts * products) as u64, most)
    }

    /// Invocations of a workgroup, across and down.
    fn workgroup(&self) -> (usize, usize) {
        match self.tile.form {
            Form::Registers => (16, 4),
            Form::Shared => (16, 8),
        }
    }
}
