//! The common parts of kernel texts: declarations, loads, parameters and grids. Bindings are inputs, then outputs, then
//! parameters.
//!
//! Invariant: parameters are words in the order in which their names are given, padded to whole vectors of four words.
//! The parameters of hooks follow.

use std::fmt::Write;

use smallvec::SmallVec;
use vramp_plan::{Binding, Shader};

use crate::ops::dtype::DType;
use crate::ops::program::one_value;

use super::hook::Hook;

/// WGSL functions that kernel texts may call.
pub(crate) const MATH: &str = include_str!("math.wgsl");

/// The parameters and the grid of a dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    words: SmallVec<[u32; 32]>,
    /// Workgroups along each dimension.
    pub grid: [u32; 3],
}

impl Launch {
    /// A launch with a kernel's own parameters and `groups` workgroups, which are folded into two dimensions if there
    /// are more than `most`.
    pub(crate) fn new(own: &[u32], groups: u64, most: u32) -> Launch {
        let mut words = SmallVec::from_slice(own);
        words.resize(own.len().next_multiple_of(4), 0);
        Launch { words, grid: fold(groups, most) }
    }

    /// Appends the parameters of the kernel's hooks, as whole vectors.
    #[must_use]
    pub(crate) fn with_hook(mut self, words: &[u32]) -> Launch {
        self.words.extend_from_slice(words);
        self.words.resize(self.words.len().next_multiple_of(4), 0);
        self
    }

    /// The parameters, as a recording takes them.
    pub(crate) fn params(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }
}

/// The workgroups along two dimensions. A workgroup's flat index is `x + y * groups.x`; workgroups with an index of
/// `groups` or more do nothing.
fn fold(groups: u64, most: u32) -> [u32; 3] {
    let groups = groups.max(1);
    let rows = groups.div_ceil(u64::from(most.max(1)));
    let across = groups.div_ceil(rows);
    [u32::try_from(across).unwrap_or(u32::MAX), u32::try_from(rows).unwrap_or(u32::MAX), 1]
}

/// The text of a kernel under construction.
pub(crate) struct KernelText {
    wgsl: String,
    bindings: Vec<Binding>,
}

impl KernelText {
    pub(crate) fn new() -> KernelText {
        KernelText { wgsl: String::new(), bindings: Vec::new() }
    }

    /// Declares an input buffer: an array whose elements have the WGSL type `item`.
    pub(crate) fn read(&mut self, name: &str, item: &str) {
        self.declare(Binding::Read, "storage, read", name, &format!("array<{item}>"));
    }

    /// Declares an output buffer: an array whose elements have the WGSL type `item`.
    pub(crate) fn write(&mut self, name: &str, item: &str) {
        self.declare(Binding::Write, "storage, read_write", name, &format!("array<{item}>"));
    }

    /// Declares the inputs of a hook. The name of an input is `name` plus its index.
    pub(crate) fn inputs(&mut self, hook: &Hook, name: &str) {
        for input in 0..hook.inputs {
            self.read(&format!("{name}{input}"), "u32");
        }
    }

    /// Declares all buffers and parameters of a kernel that reads through a hook, and appends the hook.
    pub(crate) fn reading(&mut self, value: &Hook, names: &[&str]) {
        self.inputs(value, "in");
        self.write("out", "u32");
        self.params(names, value.vectors);
        self.push(&value.wgsl);
    }

    /// Declares the parameters: words by name, and the vectors of the hooks.
    pub(crate) fn params(&mut self, names: &[&str], vectors: usize) {
        self.params_with(names, &[], vectors);
    }

    /// Like [`KernelText::params`], with the kernel's own vectors between the words and the vectors of the hooks. Each
    /// of the own vectors is given as its name and type.
    pub(crate) fn params_with(&mut self, names: &[&str], own_vectors: &[&str], vectors: usize) {
        let own = names.len().next_multiple_of(4);
        self.wgsl.push_str("struct Params {\n");
        for name in names {
            let _ = writeln!(self.wgsl, "    {name}: u32,");
        }
        for filler in names.len()..own {
            let _ = writeln!(self.wgsl, "    unused{filler}: u32,");
        }
        for vector in own_vectors {
            let _ = writeln!(self.wgsl, "    {vector},");
        }
        if vectors > 0 {
            let _ = writeln!(self.wgsl, "    hook: array<vec4<u32>, {vectors}>,");
        }
        self.wgsl.push_str("}\n");
        let bytes = ((own / 4 + own_vectors.len() + vectors) * 16) as u32;
        self.declare(Binding::Params { bytes }, "uniform", "p", "Params");
    }

    pub(crate) fn push(&mut self, wgsl: &str) {
        self.wgsl.push_str(wgsl);
        self.wgsl.push('\n');
    }

    pub(crate) fn shader(self, name: String, per_workgroup: u32) -> Shader {
        Shader { name, wgsl: self.wgsl, bindings: self.bindings, per_workgroup }
    }

    fn declare(&mut self, binding: Binding, space: &str, name: &str, what: &str) {
        let at = self.bindings.len();
        let _ = writeln!(self.wgsl, "@group(0) @binding({at}) var<{space}> {name}: {what};");
        self.bindings.push(binding);
    }
}

/// An f32 expression: value number `at` (an expression) of `buffer`, an array of words.
pub(crate) fn load(dtype: DType, buffer: &str, at: &str) -> String {
    match dtype {
        DType::F32 => one_value(dtype, buffer, at),
        _ => format!("f32({})", one_value(dtype, buffer, at)),
    }
}

/// A u32 expression: the bits of a value, zero-extended.
pub(crate) fn load_bits(dtype: DType, buffer: &str, at: &str) -> String {
    match dtype.bytes() {
        4 => format!("{buffer}[{at}]"),
        2 => format!("extractBits({buffer}[({at}) >> 1u], (({at}) & 1u) << 4u, 16u)"),
        _ => format!("extractBits({buffer}[({at}) >> 2u], (({at}) & 3u) << 3u, 8u)"),
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::trial::{MOST, bytes_of, noise, run};
    use super::super::words::{self, OutputRuns};
    use super::*;

    #[test]
    fn a_grid_covers_all_groups_and_no_dimension_is_too_long() {
        for (groups, most) in [(1, 65_535), (65_535, 65_535), (65_536, 65_535), (1 << 24, 65_535), (9, 4)] {
            let [x, y, z] = fold(groups, most);
            assert!(u64::from(x) * u64::from(y) >= groups && x <= most && y <= most && z == 1, "{groups}");
        }
    }

    #[test]
    fn parameters_of_hooks_begin_at_a_whole_vector() {
        let launch = Launch::new(&[1, 2, 3, 4, 5], 1, 8).with_hook(&[6]);
        assert_eq!(bytemuck::cast_slice::<u8, u32>(launch.params()), [1, 2, 3, 4, 5, 0, 0, 0, 6, 0, 0, 0]);
    }

    /// The results of an expression over `v` for each of these values.
    fn evaluate(expression: &str, values: &[f32]) -> Vec<u32> {
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.write("out", "u32");
        text.params(&words::FIELDS, 0);
        text.push(MATH);
        text.push(&format!("fn element(i: u32) -> u32 {{ let v = bitcast<f32>(in0[i]); return {expression}; }}"));
        words::push_main(&mut text, DType::U32);
        let launch = OutputRuns::whole(0, values.len()).launch(DType::U32, &[], MOST);
        let bytes = run(&text.shader(expression.into(), 64), &launch, &[bytes_of(values)], values.len() * 4);
        bytemuck::pod_collect_to_vec(&bytes)
    }

    #[test]
    fn exponentials_and_logarithms_are_within_three_places_in_ten_million() {
        let powers: Vec<f32> = (0..20_000).map(|at| at as f32 * -0.0043).collect();
        for (v, got) in powers.iter().zip(evaluate("bitcast<u32>(exp_of(v))", &powers)) {
            let wanted = f64::from(*v).exp();
            assert!((f64::from(f32::from_bits(got)) / wanted - 1.0).abs() < 3e-7, "{v}");
        }
        let special = [0.0, -1e9, f32::NEG_INFINITY, f32::NAN];
        let got = evaluate("bitcast<u32>(exp_of(v))", &special).into_iter().map(f32::from_bits).collect::<Vec<_>>();
        assert_eq!(got[..3], [1.0, 0.0, 0.0]);
        assert!(got[3].is_nan(), "{got:?}");
        let sums: Vec<f32> =
            (0..20_000).map(|at| 1.003_f32.powi(at / 2) + at as f32 * 1e-4).filter(|v| v.is_finite()).collect();
        for (v, got) in sums.iter().zip(evaluate("bitcast<u32>(log_of(v))", &sums)) {
            let wanted = f64::from(*v).ln();
            assert!((f64::from(f32::from_bits(got)) - wanted).abs() <= 3e-7 * wanted.abs(), "{v}");
        }
    }

    #[test]
    fn quotients_are_exact() {
        let numbers =
            [0, 1, 2, 6, 7, 8, 63, 640, 0xff_ffff, 0x100_0001, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX];
        let noisy = noise(2000, 3).into_iter().map(|v| (v.abs() * u32::MAX as f32) as u32);
        let values: Vec<f32> = numbers.into_iter().chain(noisy).map(f32::from_bits).collect();
        for by in [1_u32, 2, 3, 7, 255, 640, 1023, 65_537, 10_000_019, 0x7fff_ffff] {
            let got = evaluate(&format!("quotient(in0[i], {by}u)"), &values);
            for (n, got) in values.iter().zip(got) {
                assert_eq!(got, n.to_bits() / by, "{} by {by}", n.to_bits());
            }
        }
    }

    #[test]
    fn all_types_are_read_as_the_numbers_they_are() {
        for (dtype, word, wanted) in [
            (DType::F32, 1.5_f32.to_bits(), vec![1.5_f32]),
            (DType::F16, 0xbc00_3c01, vec![f16::from_bits(0x3c01).to_f32(), -1.0]),
            (DType::I32, (-7_i32).cast_unsigned(), vec![-7.0]),
            (DType::U32, 4_000_000_000, vec![4e9]),
            (DType::U8, 0xff80_7f01, vec![1.0, 127.0, 128.0, 255.0]),
            (DType::I8, 0xff80_7f01, vec![1.0, 127.0, -128.0, -1.0]),
        ] {
            let words = vec![f32::from_bits(word); wanted.len()];
            let got = evaluate(&format!("bitcast<u32>({})", load(dtype, "in0", "i")), &words);
            let got: Vec<f32> = got.into_iter().map(f32::from_bits).collect();
            assert_eq!(got, wanted, "{dtype}");
        }
    }
}
