//! Models as a part of a larger network: steps before the model's input and after its outputs share the model's plan, its
//! memory and, on a device, its submit.

use std::sync::Arc;

use vramp_tensor::Context;
use vramp_tensor::network::{Network, NetworkBuilder, NetworkLayout, ValueId};

use crate::error::{ModelError, UnsupportedOp};
use crate::lower::{self, GivenInput, Section};
use crate::model::{Model, NamedLengths};
use crate::onnx::OnnxType;
use crate::shelf::{SharedConstant, Shelf};

/// An output of a model inside a network.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOutput<'a> {
    pub name: &'a str,
    pub value: ValueId,
    pub dtype: OnnxType,
}

/// A network with a model in it.
pub struct EmbeddedModel {
    pub network: Network,
    /// Multiplications with an addition, in the model's convolutions and products.
    pub multiply_adds: u64,
    /// The network's known values live as long as this.
    _constants: Vec<Arc<SharedConstant>>,
}

/// What a network with a model in it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedLayout {
    pub network: NetworkLayout,
    /// Multiplications with an addition, in the model's convolutions and products.
    pub multiply_adds: u64,
}

/// A network with a model in it before it is built.
struct EmbeddedSteps {
    builder: NetworkBuilder,
    outputs: Vec<ValueId>,
    multiply_adds: u64,
}

impl Model {
    /// Builds a network around the model. `before` adds the steps that compute the model's inputs and returns them in the
    /// order of [`Model::inputs`]. `after` gets the model's outputs and returns the outputs of the network. The inputs of
    /// the network are those that `before` adds.
    pub fn embedded(
        &self,
        context: &Context,
        before: impl FnOnce(&mut NetworkBuilder) -> Result<Vec<ValueId>, ModelError>,
        after: impl FnOnce(&mut NetworkBuilder, &[EmbeddedOutput<'_>]) -> Result<Vec<ValueId>, ModelError>,
    ) -> Result<EmbeddedModel, ModelError> {
        let EmbeddedSteps { builder, outputs, multiply_adds } = self.embedded_steps(context, before, after)?;
        let shelf = Shelf::default();
        let network = builder.build_with(&outputs, Some(&shelf))?;
        Ok(EmbeddedModel { network, multiply_adds, _constants: shelf.into_taken() })
    }

    /// What the network that [`Model::embedded`] builds would need. Lends no memory and compiles nothing.
    pub fn embedded_layout(
        &self,
        context: &Context,
        before: impl FnOnce(&mut NetworkBuilder) -> Result<Vec<ValueId>, ModelError>,
        after: impl FnOnce(&mut NetworkBuilder, &[EmbeddedOutput<'_>]) -> Result<Vec<ValueId>, ModelError>,
    ) -> Result<EmbeddedLayout, ModelError> {
        let EmbeddedSteps { builder, outputs, multiply_adds } = self.embedded_steps(context, before, after)?;
        Ok(EmbeddedLayout { network: builder.layout(&outputs)?, multiply_adds })
    }

    fn embedded_steps(
        &self,
        context: &Context,
        before: impl FnOnce(&mut NetworkBuilder) -> Result<Vec<ValueId>, ModelError>,
        after: impl FnOnce(&mut NetworkBuilder, &[EmbeddedOutput<'_>]) -> Result<Vec<ValueId>, ModelError>,
    ) -> Result<EmbeddedSteps, ModelError> {
        let mut builder = NetworkBuilder::new(context);
        let made = before(&mut builder)?;
        self.check_count(made.len())?;
        let mut named = NamedLengths::new();
        let mut given = Vec::with_capacity(made.len());
        for (at, value) in made.into_iter().enumerate() {
            let lengths = builder.lengths(value).to_vec();
            self.check_shape(at, &lengths, &mut named)?;
            given.push(GivenInput { lengths, words: None, made: Some(value) });
        }
        let lowered = lower::lower(self.graph(), &Section::whole(self.graph()), &mut builder, &given)?;
        // Rows after the valid ones are -1, and whatever reads the output would take them for results. What depends on
        // their number cannot be part of the same network.
        let whole = |at: usize| {
            let output = lowered.outputs.iter().find(|(output, lowered)| *output == at && lowered.rows.is_none());
            output.map(|(_, output)| output)
        };
        let mut ops = Vec::new();
        let mut outputs: Vec<EmbeddedOutput<'_>> = Vec::with_capacity(self.outputs().len());
        for (at, port) in self.outputs().iter().enumerate() {
            match whole(at) {
                Some(output) => {
                    outputs.push(EmbeddedOutput { name: &port.name, value: output.value, dtype: output.dtype });
                }
                None => {
                    let op = "an output whose number of rows depends on computed values, in a pipeline".to_owned();
                    ops.push(UnsupportedOp { op, node: port.name.clone() });
                }
            }
        }
        if !ops.is_empty() {
            return Err(ModelError::UnsupportedOps { ops });
        }
        let outputs = after(&mut builder, &outputs)?;
        Ok(EmbeddedSteps { builder, outputs, multiply_adds: lowered.multiply_adds })
    }
}
