//! Models that can be run: a graph and the networks of the sizes with which it has been run.
//!
//! Invariants: the graph stays in memory, so that other sizes, other contexts and the time after a lost device need no
//! file. A second run with the same sizes compiles nothing and allocates nothing but its results.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use smallvec::SmallVec;
use vramp_tensor::{Context, Tensor};

use crate::error::ModelError;
use crate::facts::{ModelCost, ModelFacts};
use crate::networks::{Networks, dtype_of, lock, network_for};
use crate::onnx::{Dim, OnnxFile, OnnxGraph, OnnxType};

/// A model. Clones share everything.
#[derive(Clone)]
pub struct Model {
    inner: Arc<ModelInner>,
}

struct ModelInner {
    graph: OnnxGraph,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    networks: Mutex<Networks>,
}

/// An input or output as the file declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    pub dtype: OnnxType,
    /// Empty also if the file states no shape.
    pub dims: Vec<Dim>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ModelInner { inputs, outputs, .. } = &*self.inner;
        f.debug_struct("Model").field("inputs", inputs).field("outputs", outputs).finish_non_exhaustive()
    }
}

impl Model {
    /// Reads an ONNX file. Ops are checked when the model first runs; [`Model::facts`] lists those that are not supported.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: impl AsRef<Path>) -> Result<Model, ModelError> {
        Ok(Model::of(OnnxFile::open(path)?.graph()?))
    }

    /// Reads an ONNX file that is in memory and has no external data.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model, ModelError> {
        Ok(Model::of(OnnxFile::read(bytes.into(), None::<&Path>)?.graph()?))
    }

    fn of(graph: OnnxGraph) -> Model {
        let port = |name: &String, dtype, dims: &Option<Vec<Dim>>| {
            let dims = dims.clone().unwrap_or_default();
            Port { name: name.clone(), dtype, dims }
        };
        let inputs = graph.inputs.iter().map(|input| port(&input.name, input.dtype, &input.dims)).collect();
        let outputs = graph.outputs.iter().map(|output| port(&output.name, output.dtype, &output.dims)).collect();
        Model { inner: Arc::new(ModelInner { graph, inputs, outputs, networks: Mutex::default() }) }
    }

    // ---- facts

    pub fn inputs(&self) -> &[Port] {
        &self.inner.inputs
    }

    pub fn outputs(&self) -> &[Port] {
        &self.inner.outputs
    }

    /// What the file contains.
    pub fn facts(&self) -> ModelFacts {
        ModelFacts::of(&self.inner.graph)
    }

    /// The files beside the model from which weights were read.
    pub fn external_files(&self) -> &[PathBuf] {
        &self.inner.graph.external_files
    }

    /// What a run on the host costs with inputs of these shapes.
    pub fn cost(&self, shapes: &[Vec<usize>]) -> Result<ModelCost, ModelError> {
        for (at, shape) in shapes.iter().enumerate().take(self.inputs().len()) {
            self.check_shape(at, shape, &mut NamedLengths::new())?;
        }
        self.check_count(shapes.len())?;
        ModelCost::of(&self.inner.graph, shapes)
    }

    // ---- running

    /// Runs the model on tensors in the order of [`Model::inputs`], in the context of these tensors. A tensor has the type
    /// of its port; i64 is passed as i32, and bool as u8. The results are in the order of [`Model::outputs`]. If the device
    /// was lost, the context moves to the host, and the model goes on there, if the host has the inputs' values.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        match inputs.first() {
            Some(first) => self.run_in(&first.context().clone(), inputs),
            None => self.run_in(&Context::on_host(), inputs),
        }
    }

    /// Like [`Model::run`], with inputs in any order.
    pub fn run_named(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<Tensor>, ModelError> {
        let known = |name: &str| self.inputs().iter().any(|port| port.name == name);
        if let Some((name, _)) = inputs.iter().find(|(name, _)| !known(name)) {
            let names: Vec<&str> = self.inputs().iter().map(|port| port.name.as_str()).collect();
            let expected = format!("one of {}", names.join(", "));
            let got = "an input that the model does not have".to_owned();
            return Err(ModelError::WrongInput { name: (*name).to_owned(), expected, got });
        }
        let find = |port: &Port| match inputs.iter().filter(|(name, _)| *name == port.name).collect::<Vec<_>>()[..] {
            [(_, tensor)] => Ok(tensor.clone()),
            ref found => {
                let (name, expected) = (port.name.clone(), "one tensor".to_owned());
                Err(ModelError::WrongInput { name, expected, got: found.len().to_string() })
            }
        };
        let ordered = self.inputs().iter().map(find).collect::<Result<Vec<_>, _>>()?;
        self.run(&ordered)
    }

    /// Like [`Model::run`], for models without inputs too.
    pub fn run_in(&self, context: &Context, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.check(inputs)?;
        match self.attempt(context, inputs) {
            #[cfg(not(target_arch = "wasm32"))]
            Err(error) if error.is_lost_device() && context.device().is_some() => {
                context.move_to(None)?;
                self.attempt(context, inputs)
            }
            answer => answer,
        }
    }

    fn attempt(&self, context: &Context, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let planned = network_for(&self.inner.networks, &self.inner.graph, context, inputs)?;
        planned.run(&self.inner.graph, inputs)
    }

    /// Prepares the network for these inputs without running it. Returns the dispatches of a run; 0 on the host.
    pub fn prepare(&self, context: &Context, inputs: &[Tensor]) -> Result<usize, ModelError> {
        self.check(inputs)?;
        let planned = network_for(&self.inner.networks, &self.inner.graph, context, inputs)?;
        Ok(planned.dispatches())
    }

    /// The types of the outputs for these inputs. They are known also if the file does not declare them.
    pub fn output_types(&self, context: &Context, inputs: &[Tensor]) -> Result<Vec<OnnxType>, ModelError> {
        self.check(inputs)?;
        Ok(network_for(&self.inner.networks, &self.inner.graph, context, inputs)?.output_types())
    }

    pub(crate) fn graph(&self) -> &OnnxGraph {
        &self.inner.graph
    }

    /// Frees the networks. The next run builds its network again.
    pub fn forget_networks(&self) {
        lock(&self.inner.networks).clear();
    }

    // ---- checks

    fn check(&self, inputs: &[Tensor]) -> Result<(), ModelError> {
        self.check_count(inputs.len())?;
        let mut named = NamedLengths::new();
        for (at, tensor) in inputs.iter().enumerate() {
            let port = &self.inputs()[at];
            let wanted = dtype_of(port.dtype);
            if wanted.is_some_and(|wanted| wanted != tensor.dtype()) {
                let expected = match wanted {
                    Some(wanted) if wanted.name() != port.dtype.name() => format!("{} as {wanted}", port.dtype.name()),
                    _ => port.dtype.name().into_owned(),
                };
                return Err(ModelError::WrongInput {
                    name: port.name.clone(),
                    expected,
                    got: tensor.dtype().to_string(),
                });
            }
            self.check_shape(at, tensor.shape().lengths(), &mut named)?;
        }
        Ok(())
    }

    pub(crate) fn check_count(&self, count: usize) -> Result<(), ModelError> {
        let (has, ports) = (self.inputs().len(), self.inputs());
        if count == has {
            return Ok(());
        }
        let name = ports.get(count.min(has.saturating_sub(1))).map_or_else(String::new, |port| port.name.clone());
        let (expected, got) = (format!("{has} inputs in all"), count.to_string());
        Err(ModelError::WrongInput { name, expected, got })
    }

    /// Compares a shape with the declared one. `named` has the lengths of named axes so far.
    pub(crate) fn check_shape<'a>(
        &'a self,
        at: usize,
        lengths: &[usize],
        named: &mut NamedLengths<'a>,
    ) -> Result<(), ModelError> {
        let Some(dims) = &self.inner.graph.inputs[at].dims else { return Ok(()) };
        let mut fits = dims.len() == lengths.len();
        let mut because = String::new();
        for (dim, length) in dims.iter().zip(lengths) {
            match dim {
                Dim::Fixed(fixed) => fits &= fixed == length,
                Dim::Named(name) => match named.iter().find(|(known, _)| known == name) {
                    Some((_, known)) if known != length => {
                        because = format!(" with {name} = {known} as in other axes");
                        fits = false;
                    }
                    Some(_) => {}
                    None => named.push((name, *length)),
                },
                Dim::Unknown => {}
            }
        }
        if fits {
            return Ok(());
        }
        let shown: Vec<String> = dims.iter().map(shown).collect();
        Err(ModelError::WrongInput {
            name: self.inputs()[at].name.clone(),
            expected: format!("[{}]{because}", shown.join(", ")),
            got: format!("{lengths:?}"),
        })
    }
}

/// The lengths of named axes so far.
pub(crate) type NamedLengths<'a> = SmallVec<[(&'a str, usize); 8]>;

fn shown(dim: &Dim) -> String {
    match dim {
        Dim::Fixed(length) => length.to_string(),
        Dim::Named(name) => name.clone(),
        Dim::Unknown => "?".to_owned(),
    }
}
