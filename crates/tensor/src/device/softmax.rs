//! Softmax and its logarithm along an axis, in one dispatch.
//!
//! Owns the kernel and what NaN and infinity become.
//! Does not take rows of more than [`MOST_LENGTH`] values.
//!
//! Always: results differ from exact ones by at most 1e-6 of them (softmax), or by 1e-6 times the greatest magnitude
//! (its logarithm), for rows of up to 65,536 values.

use vramp_plan::Shader;

use crate::shape::Around;

use super::hook::Hooks;
use super::rows::Lanes;
use super::text::{Launch, MATH, Text};

/// The longest row: rounds of a workgroup.
pub(crate) const MOST_LENGTH: usize = super::MOST_ROUNDS * super::rows::GROUP;

/// A kind of softmax.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Softmax {
    /// Its logarithm instead.
    pub log: bool,
    /// Who works on a row.
    pub lanes: Lanes,
    /// How it reads and passes on.
    pub hooks: Hooks,
}

const FIELDS: [&str; 5] = ["offset", "rows", "length", "inner", "out_offset"];

/// A result of softmax is written twice: to read it again costs less than a second exponential.
const PLAIN: &str = "
fn note(at: u32, v: f32) -> f32 {
    let e = exp_of(v);
    out[p.out_offset + at] = bitcast<u32>(e);
    return e;
}
fn again(at: u32, greatest: f32, share: f32, log_sum: f32) -> f32 {
    return bitcast<f32>(out[p.out_offset + at]) * share;
}
";

const LOG: &str = "
fn note(at: u32, v: f32) -> f32 { return exp_of(v); }
fn again(at: u32, greatest: f32, share: f32, log_sum: f32) -> f32 {
    return value(at) - greatest - log_sum;
}
";

impl Softmax {
    /// The kernel. Buffers: what `value` reads, what `finish` reads, the results in f32.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = Text::new();
        text.hooked(&self.hooks, &FIELDS);
        text.push(MATH);
        text.push(&self.lanes.wgsl(&[("greater", "f32"), ("add", "f32")]));
        text.push(if self.log { LOG } else { PLAIN });
        text.push(include_str!("softmax.wgsl"));
        let name = if self.log { "log softmax" } else { "softmax" };
        text.shader(format!("{name}, {}", self.lanes.name()), 64)
    }

    /// Its parameters and grid.
    pub(crate) fn launch(&self, around: Around, offset: usize, out_offset: usize, most: u32) -> Launch {
        let Around { outer, length, inner } = around;
        let rows = outer * inner;
        let words = [offset, rows, length, inner, out_offset].map(|number| number as u32);
        Launch::new(&words, self.lanes.groups(rows), most)
    }
}
