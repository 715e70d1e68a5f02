//! The parts that texts of kernels share: declarations, loads, parameters and grids.
//!
//! Owns the order of bindings (what is read, what is written, parameters last), and how a value of each type is found in
//! words.
//! Does not know any kernel.
//!
//! Always: parameters are words in the order of their names, filled up to whole vectors of four; what belongs to hooks
//! lies behind them.

use std::fmt::Write;

use smallvec::SmallVec;
use vramp_plan::{Binding, Shader};

use crate::dtype::DType;

use super::hook::{Hook, Hooks};

/// Functions that texts may call.
pub(crate) const MATH: &str = include_str!("math.wgsl");

/// How a kernel is started: its parameters and its grid of workgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    words: SmallVec<[u32; 32]>,
    /// Workgroups along each dimension.
    pub grid: [u32; 3],
}

impl Launch {
    /// Of a kernel's own parameters, and so many workgroups, folded where one dimension takes at most `most`.
    pub(super) fn new(own: &[u32], groups: u64, most: u32) -> Launch {
        let mut words = SmallVec::from_slice(own);
        words.resize(own.len().next_multiple_of(4), 0);
        Launch { words, grid: fold(groups, most) }
    }

    /// With the parameters of its hooks, as whole vectors.
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

/// So many workgroups along two dimensions; a kernel's flat number is `x + y * groups.x`, and what lies beyond the last
/// does nothing.
fn fold(groups: u64, most: u32) -> [u32; 3] {
    let groups = groups.max(1);
    let rows = groups.div_ceil(u64::from(most.max(1)));
    let across = groups.div_ceil(rows);
    [u32::try_from(across).unwrap_or(u32::MAX), u32::try_from(rows).unwrap_or(u32::MAX), 1]
}

/// A text that is being put together.
pub(super) struct Text {
    wgsl: String,
    bindings: Vec<Binding>,
}

impl Text {
    pub(super) fn new() -> Text {
        Text { wgsl: String::new(), bindings: Vec::new() }
    }

    /// Declares a buffer that is read, as an array of `item`.
    pub(super) fn read(&mut self, name: &str, item: &str) {
        self.declare(Binding::Read, "storage, read", name, &format!("array<{item}>"));
    }

    /// Declares a buffer that is written.
    pub(super) fn write(&mut self, name: &str, item: &str) {
        self.declare(Binding::Write, "storage, read_write", name, &format!("array<{item}>"));
    }

    /// Declares what a hook reads, as `name` and a number.
    pub(super) fn inputs(&mut self, hook: &Hook, name: &str) {
        for input in 0..hook.inputs {
            self.read(&format!("{name}{input}"), "u32");
        }
    }

    /// Declares all buffers of a kernel that reads and passes on through hooks, its parameters, and the hooks.
    pub(super) fn hooked(&mut self, hooks: &Hooks, names: &[&str]) {
        self.inputs(&hooks.value, "in");
        self.inputs(&hooks.finish, "side");
        self.write("out", "u32");
        self.params(names, hooks.vectors);
        self.push(&hooks.value.wgsl);
        self.push(&hooks.finish.wgsl);
    }

    /// Declares the parameters: words by their names, and the vectors of the hooks.
    pub(super) fn params(&mut self, names: &[&str], vectors: usize) {
        let own = names.len().next_multiple_of(4);
        self.wgsl.push_str("struct Params {\n");
        for name in names {
            let _ = writeln!(self.wgsl, "    {name}: u32,");
        }
        for filler in names.len()..own {
            let _ = writeln!(self.wgsl, "    unused{filler}: u32,");
        }
        if vectors > 0 {
            let _ = writeln!(self.wgsl, "    hook: array<vec4<u32>, {vectors}>,");
        }
        self.wgsl.push_str("}\n");
        let bytes = ((own / 4 + vectors) * 16) as u32;
        self.declare(Binding::Params { bytes }, "uniform", "p", "Params");
    }

    /// Adds text.
    pub(super) fn push(&mut self, wgsl: &str) {
        self.wgsl.push_str(wgsl);
        self.wgsl.push('\n');
    }

    pub(super) fn shader(self, name: String, per_workgroup: u32) -> Shader {
        Shader { name, wgsl: self.wgsl, bindings: self.bindings, per_workgroup }
    }

    fn declare(&mut self, binding: Binding, space: &str, name: &str, what: &str) {
        let at = self.bindings.len();
        let _ = writeln!(self.wgsl, "@group(0) @binding({at}) var<{space}> {name}: {what};");
        self.bindings.push(binding);
    }
}

/// An expression of f32: the value number `at` (an expression) of `buffer`, an array of words.
pub(super) fn load(dtype: DType, buffer: &str, at: &str) -> String {
    match dtype {
        DType::F32 => format!("bitcast<f32>({buffer}[{at}])"),
        _ => format!("f32({})", load_own(dtype, buffer, at)),
    }
}

/// Likewise, in the type that holds it exactly: f32, i32 or u32.
pub(super) fn load_own(dtype: DType, buffer: &str, at: &str) -> String {
    match dtype {
        DType::F32 => format!("bitcast<f32>({buffer}[{at}])"),
        DType::F16 => format!("unpack2x16float({buffer}[({at}) >> 1u] >> ((({at}) & 1u) << 4u)).x"),
        DType::I32 => format!("bitcast<i32>({buffer}[{at}])"),
        DType::U32 => format!("{buffer}[{at}]"),
        DType::U8 => format!("extractBits({buffer}[({at}) >> 2u], (({at}) & 3u) << 3u, 8u)"),
        DType::I8 => format!("extractBits(bitcast<i32>({buffer}[({at}) >> 2u]), (({at}) & 3u) << 3u, 8u)"),
    }
}

#[cfg(test)]
mod tests {
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
}
