//! Products of matrices.
//!
//! Owns the kernel in two forms, with tiles in registers or in memory that a workgroup shares, and the list of tiles that
//! are worth a try.
//! Does not choose a tile: whoever measures does. Does not add up the parts of a long k: a reduction does.
//!
//! Always: products of i8 are exact up to [`MOST_K`] values; others are sums of f32 in the order of k with a step per value, so that tiles
//! differ by at most `k * 2^-24` of the sum of magnitudes (a step may or may not be rounded before it is added).

#[cfg(test)]
mod tests;
mod tile_text;

use vramp_plan::Shader;

use crate::ops::dtype::DType;

use super::hook::Hook;
use super::text::{KernelText, Launch, MATH};
use tile_text::item;

/// Values along k in one invocation, at most: a round takes one or four. So many products of i8 fit into i32.
const MOST_K: usize = super::MOST_ROUNDS - 4;

/// Where four values of an operand lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Along {
    /// Along k: a as it stands, or b transposed.
    K,
    /// Along the other axis: rows of a, columns of b.
    Side,
    /// Nowhere that can be relied on: any strides.
    Any,
}

/// One of both matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    /// f32, f16 or i8.
    pub dtype: DType,
    /// How it may be read.
    pub along: Along,
}

/// Where a tile's values wait for their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// In registers of the invocation that reads them.
    Registers,
    /// In memory that the workgroup shares.
    Shared,
}

/// What one invocation computes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Values along k in a round: 4 of a tile in registers (1 where neither operand lies along k), else a multiple of 4.
    pub k: usize,
    /// Where they wait.
    pub form: Form,
}

impl Tile {
    /// What is worth a try.
    pub(crate) const CANDIDATES: [Tile; 6] = [
        Tile { m: 4, n: 4, k: 4, form: Form::Registers },
        Tile { m: 8, n: 4, k: 4, form: Form::Registers },
        Tile { m: 4, n: 8, k: 4, form: Form::Registers },
        Tile { m: 8, n: 8, k: 4, form: Form::Registers },
        Tile { m: 4, n: 4, k: 16, form: Form::Shared },
        Tile { m: 8, n: 4, k: 16, form: Form::Shared },
    ];

    /// What to use where nothing was measured: 8x4 in registers took 40 ms of CPU time for 512^3 on llvmpipe (Mesa 25),
    /// 4x4 took 47, 8x8 41 but half as long again to compile, tiles in shared memory 78 and more.
    /// Cards have memory that a workgroup shares, made for this; none was measured.
    pub(crate) fn usual(m: usize, n: usize, software: bool) -> Tile {
        // A single row or column leaves no use for others; then its operand does not lie along rows or columns.
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

/// A kind of product.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    /// The left one.
    pub a: Operand,
    /// The right one.
    pub b: Operand,
    /// Whether four results are stored at once: n is a multiple of 4.
    pub wide: bool,
    /// What an invocation computes.
    pub tile: Tile,
    /// What results pass through.
    pub finish: Hook,
}

/// How many values apart the neighbours of an operand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Strides {
    /// Where it begins.
    pub offset: usize,
    /// From row to row of a, from column to column of b.
    pub side: usize,
    /// Along k.
    pub k: usize,
    /// From product to product; 0 where all use the same.
    pub product: usize,
}

impl Strides {
    /// How values that lie so can be read, where the axis that is not k has this length.
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

/// One start of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sizes {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// What is summed over.
    pub k: usize,
    /// How many products.
    pub products: usize,
    /// Where a lies.
    pub a: Strides,
    /// Where b lies.
    pub b: Strides,
    /// Whether k is cut only where it has to be: sums of i8 are exact as long as they are one.
    pub whole: bool,
}

impl Sizes {
    /// Into how many parts k must be cut. With more than one, results are `[parts, products, m, n]` of f32 that passed
    /// through nothing, and a sum over the first axis is due.
    pub(crate) fn parts(&self) -> usize {
        let for_rounds = self.k.div_ceil(MOST_K).max(1);
        if self.whole {
            return for_rounds;
        }
        let invocations = (self.m * self.n * self.products).div_ceil(16).max(1);
        // A result of a few values with a long k would leave most of the device idle.
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
    /// The kernel. Buffers: a, b, what `finish` reads, the results.
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

    /// Its parameters and grid, on a device with at most `most` workgroups along a dimension.
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

    /// Invocations across and down.
    fn workgroup(&self) -> (usize, usize) {
        match self.tile.form {
            Form::Registers => (16, 4),
            Form::Shared => (16, 8),
        }
    }
}
