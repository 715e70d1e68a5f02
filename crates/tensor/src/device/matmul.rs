//! Products of matrices.
//!
//! Owns the kernel in two forms, with tiles in registers or in memory that a workgroup shares, and the list of tiles that
//! are worth a try.
//! Does not choose a tile: whoever measures does. Does not add up the parts of a long k: a reduction does.
//!
//! Always: products of i8 are exact; others are sums of f32 in the order of k with a step per value, so that tiles
//! differ by at most `k * 2^-24` of the sum of magnitudes (a step may or may not be rounded before it is added).

use std::fmt::Write;

use vramp_plan::Shader;

use crate::dtype::DType;

use super::hook::Hook;
use super::text::{Launch, MATH, Text, load_own};

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

/// Whether values of i8 stand for multiples of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scale {
    /// They do not.
    None,
    /// All of the same, which is a parameter.
    Whole,
    /// Those of a column of the same: a buffer of f32, times the parameter.
    Columns,
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
    pub(crate) fn usual(m: usize, n: usize) -> Tile {
        // A single row or column leaves no use for others; then its operand does not lie along rows or columns.
        let (m, n) = match (m, n) {
            (_, 1) => (4, 1),
            (1, _) => (1, 4),
            (2..=4, _) => (4, 4),
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
    /// What the values of i8 stand for.
    pub scale: Scale,
    /// f32, or f16 where `wide`.
    pub out: DType,
    /// Whether four results are stored at once: n and the offset of the results are multiples of 4.
    pub wide: bool,
    /// What an invocation computes.
    pub tile: Tile,
    /// What results pass through.
    pub finish: Hook,
    /// `vec4<u32>` of parameters of `finish`.
    pub vectors: usize,
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
    /// Where the results begin.
    pub out_offset: usize,
    /// What 1 of i8 times 1 of i8 stands for.
    pub scale: f32,
    /// Where the scales of columns begin.
    pub scales_offset: usize,
}

impl Sizes {
    /// Into how many parts k must be cut. With more than one, results are `[parts, products, m, n]` of f32 that passed
    /// through nothing, and a sum over the first axis is due.
    pub(crate) fn parts(&self) -> usize {
        let invocations = (self.m * self.n * self.products).div_ceil(16).max(1);
        // A result of a few values with a long k would leave most of the device idle.
        let for_width = (self.k / 4096).min(256 / invocations.min(256));
        for_width.max(self.k.div_ceil(MOST_K)).max(1)
    }
}

const FIELDS: [&str; 18] = [
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
    "out_offset",
    "parts",
    "part_k",
    "scale",
    "scales_offset",
    "unused",
];

impl Product {
    /// The kernel. Buffers: a, b, the scales of columns where there are such, what `finish` reads, the results.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = Text::new();
        text.read("a", item(self.a));
        text.read("b", item(self.b));
        if self.scale == Scale::Columns {
            text.read("scales", "u32");
        }
        text.inputs(&self.finish, "side");
        let item = match (self.wide, self.out) {
            (true, DType::F16) => "vec2<u32>",
            (true, _) => "vec4<u32>",
            (false, _) => "u32",
        };
        text.write("out", item);
        text.params(&FIELDS, self.vectors);
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
        let words = words.chain(strides).chain([sizes.out_offset, parts, part_k]).map(|number| number as u32);
        let words: Vec<u32> = words.chain([sizes.scale.to_bits(), sizes.scales_offset as u32, 0]).collect();
        Launch::new(&words, tiles * (parts * products) as u64, most)
    }

    /// Invocations across and down.
    fn workgroup(&self) -> (usize, usize) {
        match self.tile.form {
            Form::Registers => (16, 4),
            Form::Shared => (16, 8),
        }
    }

    fn sum_type(&self) -> &'static str {
        if self.a.dtype == DType::I8 && self.b.dtype == DType::I8 { "i32" } else { "f32" }
    }

    fn sums(&self, body: &mut String) {
        for (i, j) in self.cells() {
            let own = self.sum_type();
            let _ = writeln!(body, "    var c{i}_{j} = {own}(0);");
        }
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let Tile { m, n, .. } = self.tile;
        (0..m).flat_map(move |i| (0..n).map(move |j| (i, j)))
    }

    fn registers(&self) -> String {
        let Tile { m, n, .. } = self.tile;
        let mut body = String::new();
        let a = Reader { name: "a", operand: self.a, first: "row", length: "p.m", count: m, sum: self.sum_type() };
        let b = Reader { name: "b", operand: self.b, first: "col", length: "p.n", count: n, sum: self.sum_type() };
        a.bases(&mut body);
        b.bases(&mut body);
        self.sums(&mut body);
        // Where values lie along k, k is a multiple of 4. Elsewhere a round takes one: four would need a second loop for
        // the rest, and took drivers seconds to compile.
        let round = if self.a.along == Along::K || self.b.along == Along::K { self.tile.k } else { 1 };
        let _ = writeln!(body, "    for (var k = k_start; k < k_end; k += {round}u) {{");
        if self.sum_type() == "i32" && self.a.along == Along::K && self.b.along == Along::K {
            for reader in [&a, &b] {
                reader.words(&mut body);
            }
            for (i, j) in self.cells() {
                let _ = writeln!(body, "        c{i}_{j} += dot4I8Packed(a{i}, b{j});");
            }
        } else {
            a.loads(&mut body, round);
            b.loads(&mut body, round);
            for kk in 0..round {
                for (i, j) in self.cells() {
                    let _ = writeln!(body, "        {}", self.step(i, j, &a.value(i, kk), &b.value(j, kk)));
                }
            }
        }
        body.push_str("    }\n");
        body
    }

    fn step(&self, i: usize, j: usize, one: &str, two: &str) -> String {
        match self.sum_type() {
            "i32" => format!("c{i}_{j} += {one} * {two};"),
            _ => format!("c{i}_{j} = fma({one}, {two}, c{i}_{j});"),
        }
    }

    fn shared(&self, rows: usize, columns: usize) -> String {
        let Tile { m, n, k, .. } = self.tile;
        let (across, down) = self.workgroup();
        let invocations = across * down;
        let mut body = String::new();
        let _ = writeln!(body, "    let lane = local.y * {across}u + local.x;");
        let _ = writeln!(body, "    let row_base = row - local.y * {m}u;\n    let col_base = col - local.x * {n}u;");
        let _ = writeln!(body, "    let a_base = p.a_offset + product * p.a_product;");
        let _ = writeln!(body, "    let b_base = p.b_offset + product * p.b_product;");
        self.sums(&mut body);
        let _ = writeln!(body, "    for (var k = k_start; k < k_end; k += {k}u) {{");
        for (name, operand, base, length, sides) in
            [("a", self.a, "row_base", "p.m", rows), ("b", self.b, "col_base", "p.n", columns)]
        {
            // Fours of values, one per invocation and round.
            let fours = sides * k / 4;
            for first in (0..fours).step_by(invocations) {
                let _ = writeln!(body, "        {{\n            let four = lane + {first}u;");
                if fours - first < invocations {
                    let _ = writeln!(body, "            if four < {fours}u {{");
                } else {
                    body.push_str("            {\n");
                }
                let fill = Reader { name, operand, first: "", length, count: 0, sum: self.sum_type() };
                fill.share(&mut body, base, sides, k);
                body.push_str("            }\n        }\n");
            }
        }
        body.push_str("        workgroupBarrier();\n");
        let _ = writeln!(body, "        for (var kk = 0u; kk < {k}u; kk += 1u) {{");
        for i in 0..m {
            let _ = writeln!(body, "            let a{i} = shared_a[kk * {rows}u + local.y * {m}u + {i}u];");
        }
        for j in 0..n {
            let _ = writeln!(body, "            let b{j} = shared_b[kk * {columns}u + local.x * {n}u + {j}u];");
        }
        for (i, j) in self.cells() {
            let _ = writeln!(body, "            {}", self.step(i, j, &format!("a{i}"), &format!("b{j}")));
        }
        body.push_str("        }\n");
        body.push_str("        workgroupBarrier();\n    }\n");
        body
    }

    fn store(&self) -> String {
        let Tile { m, n, .. } = self.tile;
        let mut text = String::new();
        for i in 0..m {
            let _ = writeln!(text, "    if row + {i}u < p.m {{");
            for j in 0..n {
                let scaled = match self.scale {
                    Scale::None => format!("f32(c{i}_{j})"),
                    Scale::Whole => format!("f32(c{i}_{j}) * bitcast<f32>(p.scale)"),
                    Scale::Columns => format!(
                        "f32(c{i}_{j}) * (bitcast<f32>(p.scale) * bitcast<f32>(scales[p.scales_offset + min(col + {j}u, p.n - 1u)]))"
                    ),
                };
                let finished = format!("finish({scaled}, row + {i}u, col + {j}u, out_at + {i}u * p.n + {j}u)");
                if self.wide {
                    let _ = writeln!(text, "        let v{j} = {finished};");
                } else {
                    let at = format!("p.out_offset + out_at + {i}u * p.n + {j}u");
                    let _ = writeln!(text, "        if col + {j}u < p.n {{ out[{at}] = bitcast<u32>({finished}); }}");
                }
            }
            if self.wide {
                for j in (0..n).step_by(4) {
                    let four = match self.out {
                        DType::F16 => {
                            let pair = |at: usize| format!("half_bits(v{at}) | (half_bits(v{}) << 16u)", at + 1);
                            format!("vec2<u32>({}, {})", pair(j), pair(j + 2))
                        }
                        _ => format!("bitcast<vec4<u32>>(vec4<f32>(v{j}, v{}, v{}, v{}))", j + 1, j + 2, j + 3),
                    };
                    let at = format!("(p.out_offset + out_at + {i}u * p.n + {j}u) / 4u");
                    let _ = writeln!(text, "        if col + {j}u < p.n {{ out[{at}] = {four}; }}");
                }
            }
            text.push_str("    }\n");
        }
        text
    }
}

/// How an operand is bound: four of its values, or words.
fn item(operand: Operand) -> &'static str {
    match (operand.along, operand.dtype) {
        (Along::Any, _) | (_, DType::I8) => "u32",
        (_, DType::F16) => "vec2<u32>",
        _ => "vec4<u32>",
    }
}

/// Writes the text that reads an operand.
struct Reader<'a> {
    name: &'a str,
    operand: Operand,
    /// The first row or column, and how many there are at all.
    first: &'a str,
    length: &'a str,
    /// How many an invocation reads.
    count: usize,
    sum: &'a str,
}

impl Reader<'_> {
    /// Where each row or column begins, held inside of the matrix.
    fn bases(&self, body: &mut String) {
        let Self { name, first, length, .. } = self;
        let _ = writeln!(body, "    let {name}_base = p.{name}_offset + product * p.{name}_product;");
        let (step, last) = if self.operand.along == Along::Side { (4, 4) } else { (1, 1) };
        for side in (0..self.count).step_by(step) {
            let at = format!("min({first} + {side}u, {length} - {last}u)");
            let _ = writeln!(body, "    let {name}_at{side} = {name}_base + {at} * p.{name}_side;");
        }
    }

    /// Loads `ks` values along k from `k` on, of each row or column.
    fn loads(&self, body: &mut String, ks: usize) {
        let Self { name, .. } = self;
        match self.operand.along {
            Along::K => {
                for side in 0..self.count {
                    let four = self.four(&format!("({name}_at{side} + k) / 4u"));
                    let _ = writeln!(body, "        let {name}{side} = {four};");
                }
            }
            Along::Side => {
                for (kk, side) in (0..ks).flat_map(|kk| (0..self.count).step_by(4).map(move |side| (kk, side))) {
                    let four = self.four(&format!("({name}_at{side} + (k + {kk}u) * p.{name}_k) / 4u"));
                    let _ = writeln!(body, "        let {name}{side}_{kk} = {four};");
                }
            }
            Along::Any => {
                for (kk, side) in (0..ks).flat_map(|kk| (0..self.count).map(move |side| (kk, side))) {
                    let one = self.one(&format!("({name}_at{side} + (k + {kk}u) * p.{name}_k)"));
                    let _ = writeln!(body, "        let {name}{side}_{kk} = {one};");
                }
            }
        }
    }

    /// Loads four bytes along k of each row or column as they lie.
    fn words(&self, body: &mut String) {
        let Self { name, .. } = self;
        for side in 0..self.count {
            let _ = writeln!(body, "        let {name}{side} = {name}[({name}_at{side} + k) / 4u];");
        }
    }

    /// The loaded value of a row or column at `k + kk`.
    fn value(&self, side: usize, kk: usize) -> String {
        let part = |at: usize| ["x", "y", "z", "w"][at % 4];
        let name = self.name;
        match self.operand.along {
            Along::K => format!("{name}{side}.{}", part(kk)),
            Along::Side => format!("{name}{}_{kk}.{}", side / 4 * 4, part(side)),
            Along::Any => format!("{name}{side}_{kk}"),
        }
    }

    /// Loads the four number `four` of a tile into shared memory, zeros beyond the end of k.
    fn share(&self, body: &mut String, base: &str, sides: usize, tile_k: usize) {
        let Self { name, length, sum, .. } = self;
        let mut line = |text: String| {
            let _ = writeln!(body, "                {text}");
        };
        let along_k = self.operand.along != Along::Side;
        let (fours_side, fours_k) = if along_k { (sides, tile_k / 4) } else { (sides / 4, tile_k) };
        if self.operand.along == Along::K {
            line(format!("let side = four / {fours_k}u;\n                let kk = (four % {fours_k}u) * 4u;"));
        } else {
            let (by_side, by_k) = if along_k { (1, 4) } else { (4, 1) };
            line(format!(
                "let side = (four % {fours_side}u) * {by_side}u;\n                let kk = four / {fours_side}u * {by_k}u;"
            ));
        }
        let last = if along_k { 1 } else { 4 };
        line(format!(
            "let at = {name}_base + min({base} + side, {length} - {last}u) * p.{name}_side + min(k + kk, k_end - 1u) * p.{name}_k;"
        ));
        match self.operand.along {
            Along::Any => {
                for part in 0..4 {
                    let one = self.one(&format!(
                        "(at + (min(k + kk + {part}u, k_end - 1u) - min(k + kk, k_end - 1u)) * p.{name}_k)"
                    ));
                    line(format!(
                        "shared_{name}[(kk + {part}u) * {sides}u + side] = select({sum}(0), {one}, k + kk + {part}u < k_end);"
                    ));
                }
            }
            _ => {
                let four = self.four("at / 4u");
                line(format!("let loaded = select(vec4<{sum}>(), {four}, k + kk < k_end);"));
                for part in 0..4 {
                    let to = if along_k {
                        format!("(kk + {part}u) * {sides}u + side")
                    } else {
                        format!("kk * {sides}u + side + {part}u")
                    };
                    line(format!("shared_{name}[{to}] = loaded[{part}];"));
                }
            }
        }
    }

    fn four(&self, index: &str) -> String {
        let name = self.name;
        match self.operand.dtype {
            DType::F16 => {
                format!("vec4<f32>(unpack2x16float({name}[{index}].x), unpack2x16float({name}[{index}].y))")
            }
            DType::I8 => format!("vec4<{}>(unpack4xI8({name}[{index}]))", self.sum),
            _ => format!("bitcast<vec4<f32>>({name}[{index}])"),
        }
    }

    fn one(&self, at: &str) -> String {
        format!("{}({})", self.sum, load_own(self.operand.dtype, self.name, at))
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::trial::{MOST, bytes_of, noise, run, run_f32};
    use super::*;

    fn bits_of(values: &[f32], dtype: DType) -> Vec<u8> {
        match dtype {
            DType::F16 => bytemuck::pod_collect_to_vec(&values.iter().map(|v| f16::from_f32(*v)).collect::<Vec<_>>()),
            DType::I8 => bytemuck::pod_collect_to_vec(&values.iter().map(|v| (v * 127.0) as i8).collect::<Vec<_>>()),
            _ => bytes_of(values).to_vec(),
        }
    }

    /// What a value is once it was stored.
    fn stored(v: f32, dtype: DType) -> f64 {
        match dtype {
            DType::F16 => f16::from_f32(v).to_f64(),
            DType::I8 => f64::from((v * 127.0) as i8),
            _ => f64::from(v),
        }
    }

    /// A matrix as it stands or transposed, with rows of whole length and a gap before the first.
    fn strides(rows: usize, columns: usize, transposed: bool, is_b: bool, offset: usize, product: usize) -> Strides {
        let (row, column) = if transposed { (1, rows) } else { (columns, 1) };
        if is_b {
            Strides { offset, side: column, k: row, product }
        } else {
            Strides { offset, side: row, k: column, product }
        }
    }

    struct Case {
        m: usize,
        n: usize,
        k: usize,
        transposed: [bool; 2],
        dtypes: [DType; 2],
        offset: usize,
    }

    /// Whatever the tile, results are those of f64 within the stated tolerance.
    fn check(case: &Case, tile: Tile) {
        let Case { m, n, k, transposed, dtypes, offset } = *case;
        let (products, gap) = (2, offset);
        let a_values = noise(gap + products * m * k, 5);
        // All products use the same b.
        let b_values = noise(gap + k * n, 6);
        let a = strides(m, k, transposed[0], false, gap, m * k);
        let b = strides(k, n, transposed[1], true, gap, 0);
        let (along_a, along_b) = (a.along(m, k), b.along(n, k));
        let sizes = Sizes { m, n, k, products, a, b, out_offset: 0, scale: 0.5, scales_offset: 0 };
        let exact = dtypes == [DType::I8; 2];
        let product = Product {
            a: Operand { dtype: dtypes[0], along: along_a },
            b: Operand { dtype: dtypes[1], along: along_b },
            scale: if exact { Scale::Whole } else { Scale::None },
            out: DType::F32,
            wide: n.is_multiple_of(4) && tile.n.is_multiple_of(4),
            tile,
            finish: Hook::pass_product(),
            vectors: 0,
        };
        assert_eq!(sizes.parts(), 1);
        let inputs = [bits_of(&a_values, dtypes[0]), bits_of(&b_values, dtypes[1])];
        let (shader, launch) = (product.shader(), product.launch(&sizes, MOST));
        let got = run_f32(&shader, &launch, &[&inputs[0], &inputs[1]], products * m * n);
        for (at, got) in got.into_iter().enumerate() {
            let (which, i, j) = (at / (m * n), at / n % m, at % n);
            let (mut sum, mut magnitudes) = (0.0_f64, 0.0_f64);
            for kk in 0..k {
                let one = stored(a_values[a.offset + which * a.product + i * a.side + kk * a.k], dtypes[0]);
                let two = stored(b_values[b.offset + j * b.side + kk * b.k], dtypes[1]);
                sum += one * two;
                magnitudes += (one * two).abs();
            }
            let wanted = if exact { sum * 0.5 } else { sum };
            let tolerance = if exact { 0.0 } else { magnitudes * (k + 1) as f64 / 16_777_216.0 };
            let off = (f64::from(got) - wanted).abs();
            assert!(
                off <= tolerance,
                "{tile:?} {m}x{n}x{k} {along_a:?} {along_b:?} {dtypes:?} at {at}: {got} {wanted}"
            );
        }
    }

    #[test]
    fn every_tile_gives_the_product_whatever_the_sizes_and_transposes() {
        for tile in Tile::CANDIDATES {
            for transposed in [[false, false], [true, false], [false, true], [true, true]] {
                for (m, n, k, offset) in [(20, 36, 24, 4), (7, 70, 18, 3), (1, 1, 1, 0)] {
                    check(&Case { m, n, k, transposed, dtypes: [DType::F32; 2], offset }, tile);
                }
            }
        }
        // Side by side along n and m, but not along k, which leaves a rest.
        for tile in [Tile::CANDIDATES[1], Tile::CANDIDATES[5]] {
            check(&Case { m: 20, n: 36, k: 23, transposed: [true, false], dtypes: [DType::F32; 2], offset: 0 }, tile);
        }
    }

    #[test]
    fn products_of_half_floats_and_of_bytes_are_summed_exactly_enough() {
        for tile in [Tile::CANDIDATES[0], Tile::CANDIDATES[4]] {
            for dtypes in [[DType::F16; 2], [DType::I8; 2], [DType::F32, DType::F16], [DType::F32, DType::I8]] {
                for transposed in [[false, false], [true, false], [false, true], [true, true]] {
                    for (m, n, k, offset) in [(12, 20, 28, 4), (5, 9, 13, 1)] {
                        check(&Case { m, n, k, transposed, dtypes, offset }, tile);
                    }
                }
            }
        }
    }

    #[test]
    fn single_rows_and_columns_have_tiles_of_their_own() {
        for (m, n, k, offset) in
            [(1, 36, 24, 0), (36, 1, 24, 0), (1, 9, 7, 1), (9, 1, 7, 1), (1, 1, 8, 0), (3, 3, 3, 0)]
        {
            for transposed in [[false, false], [true, true]] {
                check(&Case { m, n, k, transposed, dtypes: [DType::F32; 2], offset }, Tile::usual(m, n));
            }
        }
    }

    fn sizes(m: usize, n: usize, k: usize) -> Sizes {
        let left = Strides { offset: 0, side: k, k: 1, product: 0 };
        let right = Strides { offset: 0, side: 1, k: n, product: 0 };
        Sizes { m, n, k, products: 1, a: left, b: right, out_offset: 0, scale: 1.0, scales_offset: 0 }
    }

    fn plain(dtype: DType, along: [Along; 2], tile: Tile) -> Product {
        Product {
            a: Operand { dtype, along: along[0] },
            b: Operand { dtype, along: along[1] },
            scale: Scale::None,
            out: DType::F32,
            wide: true,
            tile,
            finish: Hook::pass_product(),
            vectors: 0,
        }
    }

    #[test]
    fn scales_of_columns_and_a_hook_are_applied_to_each_result_and_halves_are_rounded() {
        let (m, n, k) = (5, 8, 4);
        let finish = Hook {
            wgsl: "fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {
    return v + bitcast<f32>(p.hook[0].y) * f32(100u * row + 10u * col + at) + bitcast<f32>(side0[0]);
}"
            .into(),
            inputs: 1,
        };
        let mut product = plain(DType::I8, [Along::K, Along::Side], Tile::CANDIDATES[0]);
        product = Product { scale: Scale::Columns, out: DType::F16, finish, vectors: 1, ..product };
        let sizes = Sizes { out_offset: 8, scale: 0.25, scales_offset: 1, ..sizes(m, n, k) };
        let scales: Vec<f32> = (0..=n).map(|at| at as f32).collect();
        let launch = product.launch(&sizes, MOST).with_hook(&[0, 2.0_f32.to_bits()]);
        let (ones, twos) = (vec![1_u8; m * k], vec![2_u8; k * n]);
        let inputs = [&ones[..], &twos, bytes_of(&scales), bytes_of(&[1000.3_f32])];
        let got = run(&product.shader(), &launch, &inputs, (8 + m * n) * 2);
        let got: Vec<f16> = bytemuck::pod_collect_to_vec(&got);
        for (at, got) in got[8..].iter().enumerate() {
            let (row, col) = (at / n, at % n);
            let wanted = 8.0 * 0.25 * (col + 1) as f32 + 2.0 * (100 * row + 10 * col + at) as f32 + 1000.3;
            assert_eq!(*got, f16::from_f32(wanted), "at {at}");
        }
        assert!(got[..8].iter().all(|before| before.to_bits() == 0xffff), "what lies before the results stays");
    }

    #[test]
    fn a_long_k_is_cut_into_parts_of_which_none_goes_through_too_many_rounds() {
        let k = 300_001;
        let sizes = sizes(1, 1, k);
        let parts = sizes.parts();
        assert!(parts >= 3, "{parts}");
        let product = Product { wide: false, ..plain(DType::F32, [Along::Any, Along::Any], Tile::CANDIDATES[0]) };
        let ones = vec![1.0_f32; k];
        let inputs = [bytes_of(&ones), bytes_of(&ones)];
        let got = run_f32(&product.shader(), &product.launch(&sizes, MOST), &inputs, parts);
        assert_eq!(got.iter().map(|v| *v as usize).sum::<usize>(), k);
    }

    #[test]
    fn more_tiles_than_one_dimension_takes_are_folded() {
        let (m, n, k) = (70, 64, 4);
        let sizes = sizes(m, n, k);
        let product = plain(DType::F32, [Along::K, Along::Side], Tile::CANDIDATES[0]);
        let launch = product.launch(&sizes, 3);
        assert_eq!(launch.grid, [3, 2, 1], "five rows of tiles");
        let ones = vec![1.0_f32; m * n];
        let got = run_f32(&product.shader(), &launch, &[bytes_of(&ones), bytes_of(&ones)], m * n);
        assert_eq!(got, vec![4.0; m * n]);
    }
}
