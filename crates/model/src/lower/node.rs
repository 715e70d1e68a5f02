//! What the functions of all ops share: reading a node's inputs and settings, small constants, and writing its outputs.

use vramp_tensor::network::{NetworkBuilder, ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::error::{Fault, problem};
use super::{Lowering, Typed, wide, word_kind};
use crate::onnx::{Node, OnnxGraph, OnnxType, Weight};

/// Maximum number of values of an input of floats on which shapes may depend: enough for scales, regions and thresholds,
/// and too few for data whose every value would need a network of its own.
const MOST_FLOATS: usize = 16;

/// The same for inputs of integers.
const MOST_INTEGERS: usize = 1024;

/// A node that is being lowered.
pub(super) struct NodeLowering<'a, 'g> {
    pub(super) b: &'a mut NetworkBuilder,
    pub(super) lowering: &'a mut Lowering<'g>,
    pub(super) node: &'g Node,
}

/// The value with an index in the graph. Weights become values when they are first used.
pub(super) fn value(lowering: &mut Lowering<'_>, b: &mut NetworkBuilder, at: usize) -> Result<Typed, Fault> {
    if let Some(typed) = lowering.values[at] {
        return Ok(typed);
    }
    let graph = lowering.graph;
    let Some(weight) = graph.weight(at) else {
        return problem(format!("`{}` is not computed before it is used", graph.values[at]));
    };
    let typed = of_weight(lowering, b, weight)?;
    lowering.values[at] = Some(typed);
    Ok(typed)
}

fn of_weight(lowering: &mut Lowering<'_>, b: &mut NetworkBuilder, weight: &Weight) -> Result<Typed, Fault> {
    match word_kind(weight.dtype) {
        Some(WordKind::F32) => {
            let id = b.floats(weight.floats()?.into_owned(), &weight.dims)?;
            Ok(Typed::of(id, weight.dtype))
        }
        Some(WordKind::I32) => {
            let longs = weight.longs()?;
            wide::known(lowering, b, longs, &weight.dims, weight.dtype)
        }
        None => Err(Fault::Unsupported(format!("weight `{}` of type {}", weight.name, weight.dtype.name()))),
    }
}

/// A length as a signed number.
pub(super) fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

pub(super) fn limited(long: i64) -> i32 {
    long.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

impl<'g> NodeLowering<'_, 'g> {
    pub(super) fn opset(&self) -> i64 {
        self.lowering.graph.opset
    }

    pub(super) fn graph(&self) -> &'g OnnxGraph {
        self.lowering.graph
    }

    // ---- inputs

    /// An input whose values are used only as they are or moved, and whose first axis stays first. The caller refuses
    /// other cases with [`NodeLowering::keeps_rows`].
    pub(super) fn rowed(&mut self, at: usize) -> Result<Typed, Fault> {
        match self.node.input(at) {
            Some(input) => value(self.lowering, self.b, input),
            None => problem(format!("input {at} is missing; the op needs it")),
        }
    }

    /// Leaves the node to a later section if the number of valid rows is computed, unless the op `keeps` axis 0 as it is.
    pub(super) fn keeps_rows(typed: Typed, keeps: bool) -> Result<(), Fault> {
        if keeps || typed.rows.is_none() { Ok(()) } else { Err(Fault::ComputedRows) }
    }

    /// An input whose values are used only as they are or moved.
    pub(super) fn moved(&mut self, at: usize) -> Result<Typed, Fault> {
        let typed = self.rowed(at)?;
        Self::keeps_rows(typed, false)?;
        Ok(typed)
    }

    /// An input that is computed with.
    pub(super) fn x(&mut self, at: usize) -> Result<Typed, Fault> {
        let typed = self.moved(at)?;
        if typed.is_limited {
            let name = self.node.input(at).map_or("", |value| &self.graph().values[value]);
            return problem(format!("`{name}` has integers beyond 32 bits"));
        }
        Ok(typed)
    }

    /// An input of floats.
    pub(super) fn float_input(&mut self, at: usize) -> Result<Typed, Fault> {
        let typed = self.x(at)?;
        match self.b.kind(typed.id) {
            WordKind::F32 => Ok(typed),
            WordKind::I32 => Err(Fault::Unsupported(format!("input {at} of type {}", typed.dtype.name()))),
        }
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.node.input(at).is_some()
    }

    pub(super) fn optional(&mut self, at: usize) -> Result<Option<Typed>, Fault> {
        if self.has(at) { self.x(at).map(Some) } else { Ok(None) }
    }

    /// The integers of an input on which shapes depend; `None` if the input is absent. Weights keep all 64 bits.
    pub(super) fn longs(&mut self, at: usize) -> Result<Option<Vec<i64>>, Fault> {
        let Some(input) = self.node.input(at) else { return Ok(None) };
        if let Some(weight) = self.graph().weight(input) {
            return Ok(Some(weight.longs()?));
        }
        let typed = self.moved(at)?;
        if self.b.kind(typed.id) != WordKind::I32 {
            return problem(format!("input {at} is {}, expected integers", typed.dtype.name()));
        }
        if let Some(longs) = self.wide(typed) {
            return Ok(Some(longs));
        }
        match self.b.known_integers(typed.id) {
            Some(integers) => Ok(Some(integers.into_iter().map(i64::from).collect())),
            None => Err(self.needs(input)),
        }
    }

    /// The floats of an input on which shapes or tables depend; `None` if the input is absent.
    pub(super) fn known_floats(&mut self, at: usize) -> Result<Option<Vec<f32>>, Fault> {
        let Some(input) = self.node.input(at) else { return Ok(None) };
        let typed = self.float_input(at)?;
        match self.b.known_floats(typed.id) {
            Some(floats) => Ok(Some(floats)),
            None => Err(self.needs(input)),
        }
    }

    /// A value must be known, but is not.
    fn needs(&self, value: usize) -> Fault {
        if !self.lowering.section.is_first {
            let name = &self.graph().values[value];
            return Fault::Unsupported(format!("sizes that depend on computed values: `{name}`"));
        }
        let behind = self.lowering.inputs_behind(self.b, value);
        let graph = self.graph();
        let is_small = |at: &usize| {
            let count = self.lowering.given[*at].lengths.iter().product::<usize>();
            let most = match word_kind(graph.inputs[*at].dtype) {
                Some(WordKind::I32) => MOST_INTEGERS,
                _ => MOST_FLOATS,
            };
            count <= most
        };
        if behind.is_empty() || !behind.iter().all(is_small) {
            let name = &graph.values[value];
            return Fault::Unsupported(format!("sizes that depend on computed values: `{name}`"));
        }
        Fault::NeedsValue(behind.into_iter().collect())
    }

    /// Integers that older opsets have as an attribute and newer ones as an input.
    pub(super) fn attribute_or_input(&mut self, name: &str, at: usize) -> Result<Option<Vec<i64>>, Fault> {
        match self.node.attributes.ints(name)? {
            Some(ints) => Ok(Some(ints.to_vec())),
            None => self.longs(at),
        }
    }

    pub(super) fn lengths(&self, of: ValueId) -> Vec<usize> {
        self.b.lengths(of).to_vec()
    }

    // ---- settings

    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64, Fault> {
        Ok(self.node.attributes.int_or(name, default)?)
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.node.attributes.int_or(name, i64::from(default))? != 0)
    }

    pub(super) fn float(&self, name: &str, default: f32) -> Result<f32, Fault> {
        Ok(self.node.attributes.float_or(name, default)?)
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<&'g str, Fault> {
        Ok(self.node.attributes.text_or(name, default)?)
    }

    // ---- constants and short forms

    pub(super) fn f(&mut self, value: f32) -> Result<ValueId, Fault> {
        Ok(self.b.floats(vec![value], &[])?)
    }

    pub(super) fn i(&mut self, value: i32) -> Result<ValueId, Fault> {
        Ok(self.b.integers(vec![value], &[])?)
    }

    pub(super) fn un(&mut self, op: Unary, x: ValueId) -> Result<ValueId, Fault> {
        Ok(self.b.unary(op, x)?)
    }

    pub(super) fn bin(&mut self, op: Binary, a: ValueId, b: ValueId) -> Result<ValueId, Fault> {
        Ok(self.b.binary(op, a, b)?)
    }

    /// An op with a constant float as the second operand.
    pub(super) fn with(&mut self, op: Binary, a: ValueId, b: f32) -> Result<ValueId, Fault> {
        let b = self.f(b)?;
        self.bin(op, a, b)
    }

    /// An op with a constant integer as the second operand.
    pub(super) fn with_int(&mut self, op: Binary, a: ValueId, b: i32) -> Result<ValueId, Fault> {
        let b = self.i(b)?;
        self.bin(op, a, b)
    }

    pub(super) fn floats(&mut self, x: ValueId) -> Result<ValueId, Fault> {
        Ok(self.b.cast(x, WordKind::F32)?)
    }

    pub(super) fn integers(&mut self, x: ValueId) -> Result<ValueId, Fault> {
        Ok(self.b.cast(x, WordKind::I32)?)
    }

    /// Integers as a type of 8 bits stores them, if the type has 8 bits.
    pub(super) fn wrapped(&mut self, x: ValueId, dtype: OnnxType) -> Result<ValueId, Fault> {
        let low = match dtype {
            OnnxType::U8 => 0,
            OnnxType::I8 => -128,
            _ => return Ok(x),
        };
        // The rest of a division has the sign of x; adding 256 to negative rests gives 0 to 255.
        let shifted = self.with_int(Binary::Sub, x, low)?;
        let times = self.with_int(Binary::Div, shifted, 256)?;
        let whole = self.with_int(Binary::Mul, times, 256)?;
        let rest = self.bin(Binary::Sub, shifted, whole)?;
        let is_negative = self.with_int(Binary::Less, rest, 0)?;
        let lift = self.with_int(Binary::Mul, is_negative, 256)?;
        let rest = self.bin(Binary::Add, rest, lift)?;
        if low == 0 { Ok(rest) } else { self.with_int(Binary::Add, rest, low) }
    }

    /// An axis, counted from the end if it is negative.
    pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, Fault> {
        let from_start = if axis < 0 { axis + signed(rank) } else { axis };
        match usize::try_from(from_start).ok().filter(|axis| *axis < rank) {
            Some(axis) => Ok(axis),
            None => problem(format!("axis {axis} is out of range for {rank} axes")),
        }
    }

    pub(super) fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, Fault> {
        let found = axes.iter().map(|axis| Self::axis(*axis, rank)).collect::<Result<Vec<_>, _>>()?;
        let mut sorted = found.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != found.len() {
            return problem(format!("axes {axes:?} name an axis twice"));
        }
        Ok(found)
    }

    // ---- outputs

    pub(super) fn put(&mut self, at: usize, id: ValueId, dtype: OnnxType) -> Result<(), Fault> {
        self.put_typed(at, Typed::of(id, dtype))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the functions of ops end with this call")]
    pub(super) fn put_typed(&mut self, at: usize, typed: Typed) -> Result<(), Fault> {
        if let Some(output) = self.node.output(at) {
            self.lowering.values[output] = Some(typed);
        }
        Ok(())
    }

    /// Writes an output with the type of an input that was moved. The place of values in 64 bits is not moved with them.
    pub(super) fn put_moved(&mut self, at: usize, id: ValueId, from: Typed) -> Result<(), Fault> {
        self.put_typed(at, Typed { id, wide: None, ..from })
    }

    /// Whether a later node or the caller reads an output.
    pub(super) fn is_used(&self, at: usize) -> bool {
        self.node.output(at).is_some_and(|output| !self.lowering.readers[output].is_empty())
    }
}

/// The lengths as `usize`, each at least 0.
pub(super) fn lengths_of(longs: &[i64], what: &str) -> Result<Vec<usize>, Fault> {
    let each = longs.iter().map(|long| match usize::try_from(*long).ok().filter(|long| u32::try_from(*long).is_ok()) {
        Some(long) => Ok(long),
        None => problem(format!("{what} {longs:?} has {long}, outside of 0 to {}", u32::MAX)),
    });
    each.collect()
}
