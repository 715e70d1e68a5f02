//! The networks of one model: one for each context, shapes of inputs and values on which shapes depend.
//!
//! Invariants: at most [`MOST`] networks are kept; the least recently used one leaves. The list is not locked while a
//! network runs or a tensor is read. Finding a network for inputs whose values do not matter allocates nothing.
//!
//! Steps that depend on the number of rows that a step before them computes are networks of their own, one for each number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use vramp_tensor::network::{Network, NetworkBuilder, NetworkLayout, ValueId};
use vramp_tensor::{Context, DType, Tensor, TensorError};

use crate::error::ModelError;
use crate::lower::{self, GivenInput, LowerError, Lowered, LoweredOutput, Rest, RestInput, Section};
use crate::onnx::{OnnxGraph, OnnxType};
use crate::shelf::{SharedConstant, Shelf};

/// Maximum number of networks that a model keeps.
const MOST: usize = 8;

/// The networks of a model, the least recently used first.
#[derive(Default)]
pub(crate) struct Networks {
    kept: Vec<Arc<Planned>>,
    /// Inputs on whose values shapes have been found to depend.
    needed: BTreeSet<usize>,
}

/// A network with the inputs for which it was lowered.
pub(crate) struct Planned {
    context: Context,
    given: Vec<GivenInput>,
    network: Mutex<Network>,
    /// The inputs that the network is given, in its order.
    asked: Vec<usize>,
    /// Indices of the graph's outputs that the section computes, in order, also if a later section computes them.
    wanted: Vec<usize>,
    outputs: Vec<PlannedOutput>,
    later: Option<Later>,
    _constants: Vec<Arc<SharedConstant>>,
}

/// The steps of a section before the network is built.
struct LoweredSteps {
    builder: NetworkBuilder,
    /// What the network returns.
    values: Vec<ValueId>,
    asked: Vec<usize>,
    outputs: Vec<PlannedOutput>,
    later: Option<Later>,
    multiply_adds: u64,
}

/// An output of the graph.
struct PlannedOutput {
    /// Its index in the graph.
    output: usize,
    dtype: OnnxType,
    rows: Rows,
}

/// An output of a network.
#[derive(Clone, Copy)]
struct Rows {
    at: usize,
    /// The network's output with the number of valid rows.
    number: Option<usize>,
}

/// What is lowered when the numbers of rows are known: the networks for each, the least recently used first.
struct Later {
    section: Section,
    inputs: Vec<LaterInput>,
    kept: Mutex<Vec<Arc<Planned>>>,
}

enum LaterInput {
    Known(GivenInput),
    Computed(Rows),
}

/// The words of inputs on whose values shapes depend.
type KnownWords = SmallVec<[Option<Vec<u32>>; 4]>;

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network for these inputs, lowered if there is none yet.
pub(crate) fn network_for(
    networks: &Mutex<Networks>,
    graph: &OnnxGraph,
    context: &Context,
    inputs: &[Tensor],
) -> Result<Arc<Planned>, ModelError> {
    let mut needed = lock(networks).needed.clone();
    loop {
        let words = known_words(graph, inputs, &needed)?;
        loop {
            // Not in a pattern, whose temporary values would keep the list locked below.
            let found = lock(networks).find(context, inputs, &words);
            let Some(found) = found else { break };
            // Waits for a run of this network, and so does the caller; other networks go on.
            if lock(&found.network).is_for(context) {
                return Ok(found);
            }
            // The context has moved since. It never is as it was.
            lock(networks).kept.retain(|kept| !Arc::ptr_eq(kept, &found));
        }
        let given = inputs.iter().zip(words).map(|(tensor, words)| {
            let lengths = tensor.shape().lengths().to_vec();
            GivenInput { lengths, words, made: None }
        });
        match Planned::of(graph, &Section::whole(graph), context, given.collect()) {
            Ok(planned) => return Ok(lock(networks).keep(planned, needed)),
            // Each round knows more inputs, so the loop ends.
            Err(Unplanned::NeedsValue(more)) => needed.extend(more),
            Err(Unplanned::Failed(error)) => return Err(error),
        }
    }
}

fn known_words(graph: &OnnxGraph, inputs: &[Tensor], needed: &BTreeSet<usize>) -> Result<KnownWords, TensorError> {
    let each = inputs.iter().enumerate();
    each.map(|(at, tensor)| needed.contains(&at).then(|| words_of(tensor, graph.inputs[at].dtype)).transpose())
        .collect()
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
    fn find(&mut self, context: &Context, inputs: &[Tensor], words: &KnownWords) -> Option<Arc<Planned>> {
        let at = self.kept.iter().position(|planned| planned.context.is(context) && planned.is_for(inputs, words))?;
        let found = self.kept.remove(at);
        self.kept.push(Arc::clone(&found));
        Some(found)
    }

    fn keep(&mut self, planned: Planned, needed: BTreeSet<usize>) -> Arc<Planned> {
        self.needed.extend(needed);
        if self.kept.len() >= MOST {
            self.kept.remove(0);
        }
        let kept = Arc::new(planned);
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
    fn of(
        graph: &OnnxGraph,
        section: &Section,
        context: &Context,
        given: &[GivenInput],
    ) -> Result<LoweredSteps, Unplanned> {
        let mut builder = NetworkBuilder::new(context);
        let Lowered { inputs: asked, outputs, rest, multiply_adds } = lower::lower(graph, section, &mut builder, given)
            .map_err(|error| match error {
                LowerError::NeedsValue { inputs } => Unplanned::NeedsValue(inputs),
                error => Unplanned::Failed(error.into()),
            })?;
        let mut values = Vec::new();
        let mut add = |of: &LoweredOutput| {
            values.push(of.value);
            let at = values.len() - 1;
            let number = of.rows.map(|rows| {
                values.push(rows);
                values.len() - 1
            });
            Rows { at, number }
        };
        let outputs = outputs
            .iter()
            .map(|(output, of)| PlannedOutput { output: *output, dtype: of.dtype, rows: add(of) })
            .collect();
        let later = rest.map(|Rest { section, inputs }| {
            let inputs = inputs.into_iter().map(|input| match input {
                RestInput::Known { words, lengths } => {
                    LaterInput::Known(GivenInput { lengths, words: Some(words), made: None })
                }
                RestInput::Computed(of) => LaterInput::Computed(add(&of)),
            });
            Later { section, inputs: inputs.collect(), kept: Mutex::default() }
        });
        Ok(LoweredSteps { builder, values, asked, outputs, later, multiply_adds })
    }
}

/// What the network for these inputs needs, and its multiplications with an addition. Lends no memory.
pub(crate) fn layout_for(graph: &OnnxGraph, given: &[GivenInput]) -> Result<(NetworkLayout, u64), Unplanned> {
    let steps = LoweredSteps::of(graph, &Section::whole(graph), &Context::on_host(), given)?;
    Ok((steps.builder.layout(&steps.values)?, steps.multiply_adds))
}

impl Planned {
    fn of(
        graph: &OnnxGraph,
        section: &Section,
        context: &Context,
        given: Vec<GivenInput>,
    ) -> Result<Planned, Unplanned> {
        let LoweredSteps { builder, values, asked, outputs, later, .. } =
            LoweredSteps::of(graph, section, context, &given)?;
        let shelf = Shelf::default();
        let network = builder.build_with(&values, Some(&shelf))?;
        Ok(Planned {
            context: context.clone(),
            given,
            network: Mutex::new(network),
            asked,
            wanted: section.outputs.clone(),
            outputs,
            later,
            _constants: shelf.into_taken(),
        })
    }

    fn is_for(&self, inputs: &[Tensor], words: &KnownWords) -> bool {
        let each = self.given.iter().zip(inputs).zip(words);
        self.given.len() == inputs.len()
            && each
                .into_iter()
                .all(|((given, tensor), words)| given.lengths == tensor.shape().lengths() && given.words == *words)
    }

    /// Runs the network on all inputs of the model, and returns all outputs in their types of the file.
    pub(crate) fn run(&self, graph: &OnnxGraph, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let words: SmallVec<[Tensor; 4]> =
            self.asked.iter().map(|at| as_words(&inputs[*at])).collect::<Result<_, _>>()?;
        self.compute(graph, &words)
    }

    /// Runs the network, and those of later sections.
    fn compute(&self, graph: &OnnxGraph, words: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let mut made = lock(&self.network).run(words)?;
        // The usual case takes no list but the one that the network made.
        if self.later.is_none() && self.outputs.iter().all(|output| output.rows.number.is_none()) {
            for (at, output) in self.outputs.iter().enumerate() {
                if let Some(finished) = output.finished(&made)? {
                    made[at] = finished;
                }
            }
            return Ok(made);
        }
        let mut found = BTreeMap::new();
        for output in &self.outputs {
            let finished = output.finished(&made)?.unwrap_or_else(|| made[output.rows.at].clone());
            found.insert(output.output, finished);
        }
        if let Some(later) = &self.later {
            let late = later.compute(graph, &self.context, &made)?;
            found.extend(later.section.outputs.iter().copied().zip(late));
        }
        Ok(self.wanted.iter().filter_map(|output| found.remove(output)).collect())
    }

    /// The types of the outputs in the file's terms. Those of later sections are known after a run.
    pub(crate) fn output_types(&self) -> Vec<OnnxType> {
        let late = self.later.as_ref().and_then(|later| {
            let last = lock(&later.kept).last().cloned()?;
            Some((&later.section.outputs, last.output_types()))
        });
        let of = |output: &usize| {
            let own = self.outputs.iter().find(|own| own.output == *output).map(|own| own.dtype);
            own.or_else(|| {
                let (outputs, types) = late.as_ref()?;
                outputs.iter().position(|late| late == output).map(|at| types[at])
            })
        };
        self.wanted.iter().map(|output| of(output).unwrap_or(OnnxType::Other(0))).collect()
    }

    pub(crate) fn dispatches(&self) -> usize {
        lock(&self.network).dispatches()
    }
}

impl Later {
    /// Runs the network for the numbers of rows that `made` has, lowered if there is none yet.
    fn compute(&self, graph: &OnnxGraph, context: &Context, made: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let (mut given, mut tensors) = (Vec::with_capacity(self.inputs.len()), Vec::with_capacity(self.inputs.len()));
        for input in &self.inputs {
            match input {
                LaterInput::Known(known) => {
                    given.push(known.clone());
                    tensors.push(None);
                }
                LaterInput::Computed(rows) => {
                    let tensor = rows.valid(&made[rows.at], made)?.unwrap_or_else(|| made[rows.at].clone());
                    let lengths = tensor.shape().lengths().to_vec();
                    given.push(GivenInput { lengths, words: None, made: None });
                    tensors.push(Some(tensor));
                }
            }
        }
        let planned = self.network_for(graph, context, given)?;
        let words: Option<SmallVec<[Tensor; 4]>> = planned.asked.iter().map(|at| tensors[*at].clone()).collect();
        planned.compute(graph, &words.expect("what is not known is computed"))
    }

    fn network_for(
        &self,
        graph: &OnnxGraph,
        context: &Context,
        given: Vec<GivenInput>,
    ) -> Result<Arc<Planned>, ModelError> {
        let found = {
            let mut kept = lock(&self.kept);
            let at = kept.iter().position(|planned| planned.given == given);
            at.map(|at| {
                let found = kept.remove(at);
                kept.push(Arc::clone(&found));
                found
            })
        };
        if let Some(found) = found.filter(|found| lock(&found.network).is_for(context)) {
            return Ok(found);
        }
        let planned = Planned::of(graph, &self.section, context, given).map_err(|unplanned| match unplanned {
            Unplanned::Failed(error) => error,
            Unplanned::NeedsValue(inputs) => LowerError::NeedsValue { inputs }.into(),
        })?;
        let planned = Arc::new(planned);
        let mut kept = lock(&self.kept);
        kept.retain(|other| other.given != planned.given);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push(Arc::clone(&planned));
        Ok(planned)
    }
}

impl Rows {
    /// The tensor without invalid rows; `None` if all are valid.
    fn valid(self, tensor: &Tensor, all: &[Tensor]) -> Result<Option<Tensor>, TensorError> {
        let Some(number) = self.number else { return Ok(None) };
        let count = all[number].read::<i32>()?.first().copied().unwrap_or(0).max(0) as usize;
        let mut lengths = tensor.shape().lengths().to_vec();
        let each: usize = lengths[1..].iter().product();
        lengths[0] = count;
        tensor.view(0, count * each)?.reshape(&lengths).map(Some)
    }
}

impl PlannedOutput {
    /// The output in its own type and without invalid rows; `None` if it already is that.
    fn finished(&self, all: &[Tensor]) -> Result<Option<Tensor>, TensorError> {
        let tensor = &all[self.rows.at];
        let valid = self.rows.valid(tensor, all)?;
        let tensor = valid.as_ref().unwrap_or(tensor);
        match dtype_of(self.dtype) {
            Some(dtype) if dtype != tensor.dtype() => tensor.cast(dtype).map(Some),
            _ => Ok(valid),
        }
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

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::onnx::OnnxFile;
    use crate::onnx::proto::{
        DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TensorTypeProto,
        TypeProto, ValueInfoProto,
    };

    /// y = -x, for x of any length.
    fn negation() -> OnnxGraph {
        let value = |name: &str| {
            let dim = vec![DimensionProto { dim_value: None, dim_param: Some("n".into()) }];
            let tensor_type = Some(TensorTypeProto { elem_type: 1, shape: Some(TensorShapeProto { dim }) });
            ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
        };
        let (input, output) = (vec!["x".to_owned()], vec!["y".to_owned()]);
        let node = NodeProto { op_type: "Neg".into(), input, output, ..Default::default() };
        let graph =
            GraphProto { node: vec![node], input: vec![value("x")], output: vec![value("y")], ..Default::default() };
        let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
        let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..Default::default() };
        OnnxFile::read(model.encode_to_vec().into(), None).unwrap().graph().unwrap()
    }

    #[test]
    fn a_network_is_found_while_another_one_runs() {
        let (graph, networks, context) = (negation(), Mutex::default(), Context::on_host());
        let of = |length: usize| [context.zeros(&[length], DType::F32).unwrap()];
        let one = network_for(&networks, &graph, &context, &of(1)).unwrap();
        // As long as a run has it.
        let running = lock(&one.network);
        let two = network_for(&networks, &graph, &context, &of(2)).unwrap();
        assert!(Arc::ptr_eq(&two, &network_for(&networks, &graph, &context, &of(2)).unwrap()));
        drop(running);
        assert!(Arc::ptr_eq(&one, &network_for(&networks, &graph, &context, &of(1)).unwrap()));
    }
}
