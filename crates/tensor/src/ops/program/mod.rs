//! Elementwise work as data: the steps that compute one value of the output from one value of each input.
//!
//! `host` interprets a program in blocks. `wgsl` writes a program as text: as a kernel of its own, or as the function
//! through which another kernel reads its input or finishes its results. Host and device take the steps in the same
//! order. Lengths, strides, offsets and constants are parameters of the text, so that each kind of program is compiled
//! once.
//!
//! Invariant: every step rounds to the type of its result, so that fusing steps changes no bit (if the driver does not
//! fuse multiply and add).

mod act;
mod host;
mod wgsl;

pub(crate) use act::named_unary;
pub use act::{Binary, Unary};

pub(crate) use host::{INLINE_STEPS, Running};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use wgsl::one_value;
pub(crate) use wgsl::{AT_ONCE, VectorWidth};

use smallvec::SmallVec;

use crate::ops::dtype::DType;
use crate::ops::shape::{Shape, merged};

#[derive(Debug, Clone)]
pub(crate) struct ElementwiseProgram {
    pub(crate) inputs: Vec<ProgramInput>,
    /// In the order of computation; a step uses only the results of earlier steps.
    pub(crate) steps: Vec<ProgramStep>,
    /// Bits of the constants, which are the same for every element.
    pub(crate) constants: Vec<u32>,
    /// The type of the last step.
    pub(crate) out: DType,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramInput {
    pub(crate) dtype: DType,
    /// The index of the first value in the input's memory.
    pub(crate) offset: usize,
    pub(crate) walk: Walk,
}

/// The order in which an input is read while the output is computed from first to last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Value by value.
    Run,
    /// Always the same value.
    Stay,
    /// By lengths and strides, slowest axis first; mergeable axes are merged.
    Stride(SmallVec<[(usize, usize); 4]>),
}

/// One step: an instruction and the type of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ProgramStep {
    pub(crate) act: Instruction,
    pub(crate) dtype: DType,
}

/// The instruction of a step. Numbers refer to earlier steps unless documented otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Instruction {
    /// The value of an input.
    Input(u16),
    /// A constant, by its index.
    Constant(u16),
    /// The result of a kernel that this program finishes.
    Given,
    Unary(Unary, u16),
    Binary(Binary, u16, u16),
    /// The value of the second step if the value of the first step is not 0, otherwise the value of the third step.
    Select(u16, u16, u16),
    /// The same value in another type.
    Cast(u16),
}

impl Instruction {
    /// The steps whose values the instruction uses.
    pub(crate) fn uses(self) -> SmallVec<[u16; 3]> {
        match self {
            Instruction::Input(_) | Instruction::Constant(_) | Instruction::Given => SmallVec::new(),
            Instruction::Unary(_, a) | Instruction::Cast(a) => SmallVec::from_slice(&[a]),
            Instruction::Binary(_, a, b) => SmallVec::from_slice(&[a, b]),
            Instruction::Select(c, a, b) => SmallVec::from_slice(&[c, a, b]),
        }
    }
}

impl Walk {
    /// The walk for reading an input with these strides while the output has this shape. Strides are 0 along repeated
    /// axes.
    pub(crate) fn of(shape: &Shape, strides: &[usize]) -> Walk {
        let axes = merged(shape.lengths(), strides);
        match axes.as_slice() {
            [] | [(_, 0)] => Walk::Stay,
            [(_, 1)] => Walk::Run,
            _ => Walk::Stride(axes),
        }
    }

    /// The position in the input, relative to the input's offset, of the value for output value `at`.
    pub(crate) fn place(&self, at: usize) -> usize {
        match self {
            Walk::Run => at,
            Walk::Stay => 0,
            Walk::Stride(axes) => {
                let (mut rest, mut place) = (at, 0);
                for (length, stride) in axes.iter().rev() {
                    place += rest % length * stride;
                    rest /= length;
                }
                place
            }
        }
    }
}

impl ElementwiseProgram {
    /// A program that reads one input and returns its values unchanged, for kernels that only move or read values.
    pub(crate) fn plain(input: ProgramInput) -> ElementwiseProgram {
        let (dtype, steps) = (input.dtype, vec![ProgramStep { act: Instruction::Input(0), dtype: input.dtype }]);
        ElementwiseProgram { inputs: vec![input], steps, constants: Vec::new(), out: dtype }
    }

    /// Everything that the program's text depends on.
    pub(crate) fn signature(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{}<", self.out);
        for input in &self.inputs {
            let _ = match &input.walk {
                Walk::Run => write!(text, "{}{} ", input.dtype, if input.is_aligned() { "" } else { "~" }),
                Walk::Stay => write!(text, "{}. ", input.dtype),
                Walk::Stride(axes) => write!(text, "{}/{} ", input.dtype, axes.len()),
            };
        }
        for ProgramStep { act, dtype } in &self.steps {
            let _ = match act {
                Instruction::Input(n) => write!(text, " i{n}"),
                Instruction::Constant(n) => write!(text, " c{n}"),
                Instruction::Given => write!(text, " g"),
                Instruction::Unary(op, a) => write!(text, " {op}({a})"),
                Instruction::Binary(op, a, b) => write!(text, " {op}({a},{b})"),
                Instruction::Select(c, a, b) => write!(text, " select({c},{a},{b})"),
                Instruction::Cast(a) => write!(text, " cast({a})"),
            };
            let _ = write!(text, ":{dtype}");
        }
        text
    }
}

impl ProgramInput {
    /// True if the input begins at a multiple of four values, so that groups of four can be read whole.
    pub(crate) fn is_aligned(&self) -> bool {
        self.offset.is_multiple_of(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(lengths: &[usize], strides: &[usize]) -> Walk {
        Walk::of(&Shape::new(lengths).unwrap(), strides)
    }

    #[test]
    fn axes_that_can_be_walked_through_as_one_are() {
        assert_eq!(walk(&[2, 3, 4], &[12, 4, 1]), Walk::Run);
        assert_eq!(walk(&[2, 3, 4], &[0, 0, 0]), Walk::Stay);
        assert_eq!(walk(&[1, 1], &[5, 7]), Walk::Stay);
        assert_eq!(walk(&[], &[]), Walk::Stay);
        assert_eq!(walk(&[2, 3, 4], &[0, 4, 1]), Walk::Stride(SmallVec::from_slice(&[(2, 0), (12, 1)])));
        assert_eq!(walk(&[2, 3], &[1, 2]), Walk::Stride(SmallVec::from_slice(&[(2, 1), (3, 2)])));
    }

    #[test]
    fn a_place_is_found_by_lengths_and_strides() {
        let turned = walk(&[3, 2], &[1, 3]);
        let places: Vec<usize> = (0..6).map(|at| turned.place(at)).collect();
        assert_eq!(places, [0, 3, 1, 4, 2, 5]);
    }
}
