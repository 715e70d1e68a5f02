//! Elementwise steps: programs over values that are read by their strides. Chains of them are fused into one program when
//! the network is built (`fuse`).
//!
//! Invariant: a program computes its output from first word to last, so a program over the words of another step can take
//! that step's place.

use smallvec::SmallVec;

use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::host::strided::{Strided, copy_strided};
use crate::ops::program::{Binary, ElementwiseProgram, Instruction, ProgramInput, ProgramStep, Running, Unary, Walk};
use crate::ops::shape::merged;

use super::builder::{NetworkBuilder, NewValue, Work, bytes};
#[cfg(not(target_arch = "wasm32"))]
use super::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use super::step::{HostCall, Step, WordKind};
use super::value::{Lengths, MemoryId, ValueId, View, in_order, straight};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::Launch;

/// Workgroup size.
#[cfg(not(target_arch = "wasm32"))]
const WORKGROUP: u32 = 64;

/// A program over memories. Input `i` of the program reads memory `i` of the step.
#[derive(Debug, Clone)]
pub(super) struct MapStep {
    pub(super) program: ElementwiseProgram,
    /// The number of results.
    pub(super) count: usize,
}

impl WordKind {
    pub(super) fn dtype(self) -> DType {
        match self {
            WordKind::F32 => DType::F32,
            WordKind::I32 => DType::I32,
        }
    }
}

/// An op over the words of several values.
#[derive(Clone, Copy)]
enum MapOp {
    Copy,
    Unary(Unary),
    Binary(Binary),
    Select,
    Cast(WordKind),
}

impl NetworkBuilder {
    /// An op on each value.
    pub fn unary(&mut self, op: Unary, x: ValueId) -> Result<ValueId, TensorError> {
        let kind = self.kind(x);
        if let Some(wants) = op.refuses(kind.dtype()) {
            return Err(TensorError::WrongType { op: op.name(), has: kind.dtype(), wants });
        }
        self.map(op.name(), MapOp::Unary(op), kind, &[x])
    }

    /// An op on each pair of values, which broadcast. Comparisons give integers, 0 or 1.
    pub fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> Result<ValueId, TensorError> {
        let kind = self.kind(a);
        if kind != self.kind(b) {
            let problem = format!("the operands are {} and {}", kind.dtype(), self.kind(b).dtype());
            return Err(TensorError::Setting { op: op.name(), problem });
        }
        if let Some(wants) = op.refuses(kind.dtype()) {
            return Err(TensorError::WrongType { op: op.name(), has: kind.dtype(), wants });
        }
        let made = self.map(op.name(), MapOp::Binary(op), kind, &[a, b])?;
        match op {
            Binary::Less | Binary::Greater | Binary::Equal => self.cast(made, WordKind::I32),
            _ => Ok(made),
        }
    }

    /// `a` where the condition is not 0, otherwise `b`. All three broadcast.
    pub fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> Result<ValueId, TensorError> {
        let kind = self.kind(a);
        if kind != self.kind(b) {
            let problem = format!("the values are {} and {}", kind.dtype(), self.kind(b).dtype());
            return Err(TensorError::Setting { op: "select", problem });
        }
        self.map("select", MapOp::Select, kind, &[condition, a, b])
    }

    /// The same values as other words. Floats are truncated and limited to the range of i32; NaN becomes 0.
    pub fn cast(&mut self, x: ValueId, kind: WordKind) -> Result<ValueId, TensorError> {
        if self.kind(x) == kind { Ok(x) } else { self.map("cast", MapOp::Cast(kind), kind, &[x]) }
    }

    /// A copy whose words are dense in this order of axes.
    pub(super) fn copied(&mut self, value: ValueId, order: &[usize]) -> Result<ValueId, TensorError> {
        let kind = self.kind(value);
        let lengths = Lengths::from_slice(self.lengths(value));
        self.map_in(MapOp::Copy, kind, &[value], &lengths, Lengths::from_slice(order))
    }

    fn map(
        &mut self,
        name: &'static str,
        op: MapOp,
        kind: WordKind,
        operands: &[ValueId],
    ) -> Result<ValueId, TensorError> {
        let mut lengths = Lengths::new();
        for operand in operands {
            lengths = broadcast(name, &lengths, self.lengths(*operand))?;
        }
        let order = self.order_for(operands, &lengths);
        self.map_in(op, kind, operands, &lengths, order)
    }

    fn map_in(
        &mut self,
        op: MapOp,
        kind: WordKind,
        operands: &[ValueId],
        lengths: &[usize],
        order: Lengths,
    ) -> Result<ValueId, TensorError> {
        if let Some(made) = self.map_uniform(op, kind, operands, lengths)? {
            return Ok(made);
        }
        let mut program =
            ElementwiseProgram { inputs: Vec::new(), steps: Vec::new(), constants: Vec::new(), out: kind.dtype() };
        let mut memories = Vec::new();
        let mut numbers: SmallVec<[u16; 3]> = SmallVec::new();
        for operand in operands {
            numbers.push(self.operand(&mut program, &mut memories, *operand, lengths, &order)?);
        }
        let of = |at: usize| program.steps[usize::from(numbers[at])].dtype;
        let last = match op {
            MapOp::Copy => None,
            MapOp::Unary(op) => Some((Instruction::Unary(op, numbers[0]), kind.dtype())),
            MapOp::Binary(op) => Some((Instruction::Binary(op, numbers[0], numbers[1]), of(0))),
            MapOp::Select => Some((Instruction::Select(numbers[0], numbers[1], numbers[2]), kind.dtype())),
            MapOp::Cast(kind) => Some((Instruction::Cast(numbers[0]), kind.dtype())),
        };
        if let Some((act, dtype)) = last {
            program.steps.push(ProgramStep { act, dtype });
        }
        let step = MapStep { program, count: lengths.iter().product() };
        let made = self.place(Work::Map(step), &memories, vec![NewValue { kind, lengths, order }])?;
        Ok(made[0])
    }

    /// An op over known values that are one word repeated: computed once, and repeated.
    fn map_uniform(
        &mut self,
        op: MapOp,
        kind: WordKind,
        operands: &[ValueId],
        lengths: &[usize],
    ) -> Result<Option<ValueId>, TensorError> {
        let is_uniform = |operand: &ValueId| {
            let view = &self.views[operand.0];
            let mut axes = view.lengths.iter().zip(&view.strides);
            self.is_known(*operand) && view.count() > 0 && axes.all(|(length, stride)| *length == 1 || *stride == 0)
        };
        let is_one = lengths.iter().all(|length| *length == 1);
        if matches!(op, MapOp::Copy) || is_one || lengths.contains(&0) || !operands.iter().all(is_uniform) {
            return Ok(None);
        }
        let mut single: SmallVec<[ValueId; 3]> = SmallVec::new();
        for operand in operands {
            let View { memory, offset, .. } = self.views[operand.0];
            single.push(self.view(View { memory, lengths: Lengths::new(), strides: Lengths::new(), offset }));
        }
        let made = self.map_in(op, kind, &single, &[], Lengths::new())?;
        self.repeated(made, lengths).map(Some)
    }

    /// Adds the step of a program that reads a value, and returns its number.
    fn operand(
        &mut self,
        program: &mut ElementwiseProgram,
        memories: &mut Vec<MemoryId>,
        value: ValueId,
        lengths: &[usize],
        order: &[usize],
    ) -> Result<u16, TensorError> {
        let dtype = self.kind(value).dtype();
        let spread = self.repeated(value, lengths)?;
        let View { memory, lengths, strides, offset } = self.views[spread.0].clone();
        let walk = match merged(&in_order(&lengths, order), &in_order(&strides, order)).as_slice() {
            [] | [(_, 0)] => Walk::Stay,
            [(_, 1)] => Walk::Run,
            axes => Walk::Stride(axes.into()),
        };
        let known = self.known_word(memory, offset).filter(|_| walk == Walk::Stay);
        let act = if let Some(bits) = known {
            program.constants.push(bits);
            Instruction::Constant(program.constants.len() as u16 - 1)
        } else {
            program.inputs.push(ProgramInput { dtype, offset, walk });
            memories.push(memory);
            Instruction::Input(memories.len() as u16 - 1)
        };
        program.steps.push(ProgramStep { act, dtype });
        Ok(program.steps.len() as u16 - 1)
    }

    fn known_word(&self, memory: MemoryId, offset: usize) -> Option<u32> {
        match &self.memories[memory].source {
            super::value::Source::Known(words) => words.get(offset).copied(),
            _ => None,
        }
    }

    /// The order of axes for a result: that of a whole operand, and of one that is not straight if the operands differ,
    /// so that pictures whose channels lie last stay so.
    fn order_for(&self, operands: &[ValueId], lengths: &[usize]) -> Lengths {
        let straight = straight(lengths.len());
        let whole = operands.iter().map(|value| &self.views[value.0]).filter(|view| view.lengths.as_slice() == lengths);
        whole.map(View::order).find(|order| *order != straight).unwrap_or(straight)
    }
}

/// The lengths to which both broadcast.
pub(super) fn broadcast(op: &'static str, one: &[usize], two: &[usize]) -> Result<Lengths, TensorError> {
    let (long, short) = if one.len() >= two.len() { (one, two) } else { (two, one) };
    let mut lengths = Lengths::from_slice(long);
    let skip = long.len() - short.len();
    for (length, with) in lengths[skip..].iter_mut().zip(short) {
        match (*length, *with) {
            (one, two) if one == two => {}
            (1, two) => *length = two,
            (_, 1) => {}
            _ => {
                let problem = format!("{one:?} and {two:?} do not broadcast");
                return Err(TensorError::Mismatch { op, problem });
            }
        }
    }
    Ok(lengths)
}

impl MapStep {
    /// The step that copies `count` words.
    pub(super) fn copy(kind: WordKind, count: usize) -> MapStep {
        let input = ProgramInput { dtype: kind.dtype(), offset: 0, walk: Walk::Run };
        MapStep { program: ElementwiseProgram::plain(input), count }
    }

    /// The input that the program returns unchanged, if it does nothing else.
    fn copies(&self) -> Option<&ProgramInput> {
        match (self.program.inputs.as_slice(), self.program.steps.as_slice()) {
            ([input], [ProgramStep { act: Instruction::Input(0), .. }]) => Some(input),
            _ => None,
        }
    }
}

impl Step for MapStep {
    fn name(&self) -> &'static str {
        let named = self.program.steps.iter().rev().find_map(|step| match step.act {
            Instruction::Unary(op, _) => Some(op.name()),
            Instruction::Binary(op, ..) => Some(op.name()),
            Instruction::Select(..) => Some("select"),
            Instruction::Cast(_) => Some("cast"),
            _ => None,
        });
        named.unwrap_or("copy")
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        if let Some(ProgramInput { offset, walk: Walk::Stride(axes), .. }) = self.copies() {
            let lengths: SmallVec<[usize; 8]> = axes.iter().map(|axis| axis.0).collect();
            let strides: SmallVec<[usize; 8]> = axes.iter().map(|axis| axis.1).collect();
            let from = Strided { shape: &lengths, strides: &strides, offset: *offset };
            let out = bytemuck::cast_slice_mut(call.outputs[0]);
            return copy_strided(bytes(call.inputs[0]), 4, from, out);
        }
        let (program, inputs, threads) = (&self.program, call.inputs, call.threads);
        spread(call.floats_out(0), 16, self.count, threads, |line, out| {
            let inputs = inputs.iter().map(|words| bytes(words));
            Running::new(program, inputs).fill(line * 16, bytemuck::cast_slice_mut(out));
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        DeviceWork::one(dispatch(&self.program, self.count, facts.most_groups))
    }
}

/// The dispatch that computes `count` results of a program.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn dispatch(program: &ElementwiseProgram, count: usize, most_groups: u32) -> Dispatch {
    let mut words = vec![count as u32];
    words.extend(program.words());
    let groups = count.div_ceil(4).div_ceil(WORKGROUP as usize) as u64;
    Dispatch {
        key: format!("map {}", program.signature()),
        shader: program.shader(WORKGROUP),
        buffers: (0..program.inputs.len()).map(Bound::Input).chain([Bound::Output(0)]).collect(),
        launch: Launch::new(&words, groups, most_groups),
    }
}
