//! The networks of one model: one for each context, shapes of inputs and values on which shapes depend.
//!
//! Invariant: at most [`MOST`] networks are kept; the least recently used one leaves.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp_tensor::network::{Network, NetworkBuilder, NetworkLayout, ValueId};
use vramp_tensor::{Context, DType, Tensor, TensorError};

use crate::error::ModelError;
use crate::lower::{self, GivenInput, LowerError, Lowered};
use crate::onnx::{OnnxGraph, OnnxType};
use crate::shelf::{SharedConstant, Shelf};

/// Maximum number of networks that a model keeps.
const MOST: usize = 8;

/// The networks of a model, the least recently used first.
#[derive(Default)]
pub(crate) struct Networks {
    kept: Vec<Arc<Mutex<Planned>>>,
    /// Inputs on whose values shapes have been found to depend.
    needed: BTreeSet<usize>,
}

/// A network with the inputs for which it was lowered.
pub(crate) struct Planned {
    given: Vec<GivenInput>,
    network: Network,
    /// The inputs that the network is given, in its order.
    asked: Vec<usize>,
    outputs: Vec<PlannedOutput>,
    _constants: Vec<Arc<SharedConstant>>,
}

/// The steps of a graph before the network is built.
struct LoweredSteps {
    builder: NetworkBuilder,
    /// What the network returns.
    values: Vec<ValueId>,
    asked: Vec<usize>,
    outputs: Vec<PlannedOutput>,
    multiply_adds: u64,
}

struct PlannedOutput {
    dtype: OnnxType,
    /// The network's output with the number of valid rows.
    rows: Option<usize>,
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network for these inputs, lowered if there is none yet.
pub(crate) fn network_for(
    networks: &Mutex<Networks>,
    graph: &OnnxGraph,
    context: &Context,
    inputs: &[Tensor],
) -> Result<Arc<Mutex<Planned>>, ModelError> {
    let mut needed = lock(networks).needed.clone();
    loop {
        let given = given(graph, inputs, &needed)?;
        if let Some(found) = lock(networks).find(context, &given) {
            return Ok(found);
        }
        match Planned::of(graph, context, given) {
            Ok(planned) => return Ok(lock(networks).keep(planned, needed)),
            // Each round knows more inputs, so the loop ends.
            Err(Unplanned::NeedsValue(more)) => needed.extend(more),
            Err(Unplanned::Failed(error)) => return Err(error),
        }
    }
}

fn given(graph: &OnnxGraph, inputs: &[Tensor], needed: &BTreeSet<usize>) -> Result<Vec<GivenInput>, ModelError> {
    let each = inputs.iter().enumerate().map(|(at, tensor)| {
        let words = if needed.contains(&at) { Some(words_of(tensor, graph.inputs[at].dtype)?) } else { None };
        Ok(GivenInput { lengths: tensor.shape().lengths().to_vec(), words, made: None })
    });
    each.collect()
}

/// The values of an input as a network has them.
fn words_of(tensor: &Tensor, dtype: OnnxType) -> Result<Vec<u32>, TensorError> {
    let tensor = as_words(tensor)?;
    if tensor.dtype() == DType::F32 {
        return Ok(bytemuck::cast_vec(tensor.read::<f32>()?));
    }
    let mut words = tensor.read::<i32>()?;
    if dtype == OnnxType::Bool {
        for word in &mut words {
            *word = i32::from(*word != 0);
        }
    }
    Ok(bytemuck::cast_vec(words))
}

/// The tensor with values of 32 bits.
fn as_words(tensor: &Tensor) -> Result<Tensor, TensorError> {
    match tensor.dtype() {
        DType::F32 | DType::I32 => Ok(tensor.clone()),
        DType::F16 => tensor.cast(DType::F32),
        _ => tensor.cast(DType::I32),
    }
}

impl Networks {
    fn find(&mut self, context: &Context, given: &[GivenInput]) -> Option<Arc<Mutex<Planned>>> {
        // Networks of a context that has moved since are never used again.
        let at = self.kept.iter().position(|planned| {
            let planned = lock(planned);
            planned.given == given && planned.network.is_for(context)
        })?;
        let found = self.kept.remove(at);
        self.kept.push(Arc::clone(&found));
        Some(found)
    }

    fn keep(&mut self, planned: Planned, needed: BTreeSet<usize>) -> Arc<Mutex<Planned>> {
        self.needed.extend(needed);
        if self.kept.len() >= MOST {
            self.kept.remove(0);
        }
        let kept = Arc::new(Mutex::new(planned));
        self.kept.push(Arc::clone(&kept));
        kept
    }

    /// Drops all networks.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }
}

/// Why there is no network.
pub(crate) enum Unplanned {
    NeedsValue(Vec<usize>),
    Failed(ModelError),
}

impl From<TensorError> for Unplanned {
    fn from(error: TensorError) -> Unplanned {
        Unplanned::Failed(error.into())
    }
}

impl LoweredSteps {
    fn of(graph: &OnnxGraph, context: &Context, given: &[GivenInput]) -> Result<LoweredSteps, Unplanned> {
        let mut builder = NetworkBuilder::new(context);
        let Lowered { inputs: asked, outputs, multiply_adds } =
            lower::lower(graph, &mut builder, given).map_err(|error| match error {
                LowerError::NeedsValue { inputs } => Unplanned::NeedsValue(inputs),
                error => Unplanned::Failed(error.into()),
            })?;
        let mut values: Vec<_> = outputs.iter().map(|output| output.value).collect();
        let mut planned = Vec::with_capacity(outputs.len());
        for output in &outputs {
            let rows = output.rows.map(|rows| {
                values.push(rows);
                values.len() - 1
            });
            planned.push(PlannedOutput { dtype: output.dtype, rows });
        }
        Ok(LoweredSteps { builder, values, asked, outputs: planned, multiply_adds })
    }
}

/// What the network for these inputs needs, and its multiplications with an addition. Lends no memory.
pub(crate) fn layout_for(graph: &OnnxGraph, given: &[GivenInput]) -> Result<(NetworkLayout, u64), Unplanned> {
    let LoweredSteps { builder, values, multiply_adds, .. } = LoweredSteps::of(graph, &Context::on_host(), given)?;
    Ok((builder.layout(&values)?, multiply_adds))
}

impl Planned {
    fn of(graph: &OnnxGraph, context: &Context, given: Vec<GivenInput>) -> Result<Planned, Unplanned> {
        let LoweredSteps { builder, values, asked, outputs, .. } = LoweredSteps::of(graph, context, &given)?;
        let shelf = Shelf::default();
        let network = builder.build_with(&values, Some(&shelf))?;
        Ok(Planned { given, network, asked, outputs, _constants: shelf.into_taken() })
    }

    /// Runs the network on all inputs of the model, and returns all outputs in their declared types.
    pub(crate) fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, TensorError> {
        let words = self.asked.iter().map(|at| as_words(&inputs[*at])).collect::<Result<Vec<_>, _>>()?;
        let made = self.network.run(&words)?;
        let outputs = self.outputs.iter().zip(&made);
        outputs.map(|(output, tensor)| output.finished(tensor, &made)).collect()
    }

    pub(crate) fn dispatches(&self) -> usize {
        self.network.dispatches()
    }
}

impl PlannedOutput {
    fn finished(&self, tensor: &Tensor, all: &[Tensor]) -> Result<Tensor, TensorError> {
        let mut tensor = match dtype_of(self.dtype) {
            Some(dtype) if dtype != tensor.dtype() => tensor.cast(dtype)?,
            _ => tensor.clone(),
        };
        if let Some(rows) = self.rows {
            let count = all[rows].read::<i32>()?.first().copied().unwrap_or(0).max(0) as usize;
            let mut lengths = tensor.shape().lengths().to_vec();
            let each: usize = lengths[1..].iter().product();
            lengths[0] = count;
            tensor = tensor.view(0, count * each)?.reshape(&lengths)?;
        }
        Ok(tensor)
    }
}

/// The type of tensors for a type of ONNX; `None` if no tensor has it.
pub(crate) fn dtype_of(dtype: OnnxType) -> Option<DType> {
    match dtype {
        OnnxType::F32 => Some(DType::F32),
        OnnxType::F16 => Some(DType::F16),
        OnnxType::I8 => Some(DType::I8),
        OnnxType::U8 | OnnxType::Bool => Some(DType::U8),
        OnnxType::I32 | OnnxType::I64 => Some(DType::I32),
        _ => None,
    }
}
