//! The WGSL of a product's tile: the lines that load, accumulate and store, which differ by tile and layout. Sizes are
//! parameters.
//!
//! Invariant: reads past the edge of a matrix are clamped to the last row or column of the matrix.

use std::fmt::Write;

use crate::ops::dtype::DType;
use crate::ops::program::one_value;

use super::{Along, Operand, Product, Tile};

impl Product {
    pub(super) fn sum_type(&self) -> &'static str {
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

    pub(super) fn registers(&self) -> String {
        let Tile { m, n, .. } = self.tile;
        let mut body = String::new();
        let a =
            OperandReader { name: "a", operand: self.a, first: "row", length: "p.m", count: m, sum: self.sum_type() };
        let b =
            OperandReader { name: "b", operand: self.b, first: "col", length: "p.n", count: n, sum: self.sum_type() };
        a.bases(&mut body);
        b.bases(&mut body);
        self.sums(&mut body);
        // If the values of an operand are contiguous along k, k is a multiple of 4. Otherwise a round takes one value
        // along k: rounds of four would need a second loop for the remainder, and drivers took seconds to compile the
        // two loops.
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

    pub(super) fn shared(&self, rows: usize, columns: usize) -> String {
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
            // The number of groups of four values; each invocation loads one group per step.
            let fours = sides * k / 4;
            for first in (0..fours).step_by(invocations) {
                let _ = writeln!(body, "        {{\n            let four = lane + {first}u;");
                if fours - first < invocations {
                    let _ = writeln!(body, "            if four < {fours}u {{");
                } else {
                    body.push_str("            {\n");
                }
                let fill = OperandReader { name, operand, first: "", length, count: 0, sum: self.sum_type() };
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

    pub(super) fn store(&self) -> String {
        let Tile { m, n, .. } = self.tile;
        let mut text = String::new();
        for i in 0..m {
            let _ = writeln!(text, "    if row + {i}u < p.m {{");
            for j in 0..n {
                let finished = format!("finish(f32(c{i}_{j}), row + {i}u, col + {j}u, out_at + {i}u * p.n + {j}u)");
                if self.wide {
                    let _ = writeln!(text, "        let v{j} = {finished};");
                } else {
                    let at = format!("out_at + {i}u * p.n + {j}u");
                    let _ = writeln!(text, "        if col + {j}u < p.n {{ out[{at}] = bitcast<u32>({finished}); }}");
                }
            }
            if self.wide {
                for j in (0..n).step_by(4) {
                    let four = format!("bitcast<vec4<u32>>(vec4<f32>(v{j}, v{}, v{}, v{}))", j + 1, j + 2, j + 3);
                    let at = format!("(out_at + {i}u * p.n + {j}u) / 4u");
                    let _ = writeln!(text, "        if col + {j}u < p.n {{ out[{at}] = {four}; }}");
                }
            }
            text.push_str("    }\n");
        }
        text
    }
}

/// The binding type of an operand: groups of four values, or words.
pub(super) fn item(operand: Operand) -> &'static str {
    match (operand.along, operand.dtype) {
        (Along::Any, _) | (_, DType::I8) => "u32",
        (_, DType::F16) => "vec2<u32>",
        _ => "vec4<u32>",
    }
}

/// Writes the text that reads an operand.
struct OperandReader<'a> {
    name: &'a str,
    operand: Operand,
    /// WGSL expressions for the index of the first row or column, and for the number of rows or columns in the matrix.
    first: &'a str,
    length: &'a str,
    /// The number of rows or columns that an invocation reads.
    count: usize,
    sum: &'a str,
}

impl OperandReader<'_> {
    /// The start of each row or column, clamped to the matrix.
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

    /// Loads four bytes along k of each row or column unchanged.
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

    /// Loads group number `four` of a tile into workgroup memory, with zeros past the end of k.
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
        format!("{}({})", self.sum, one_value(self.operand.dtype, self.name, at))
    }
}
