//! Users' shaders on named tensors. Shaders are registered by name; their inputs and results are named tensors. The
//! module `ops::own` checks and runs the shaders.
//!
//! Invariants: a registered shader compiles. Either all results are registered, in the order of their declaration, or
//! none.

use std::collections::btree_map::Entry;

use super::error::StoreError;
use super::names::Named;
use super::shared::Store;
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::own::{CompiledShader, ParamValue};

/// One run of a registered shader.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShaderRun<'a> {
    /// For each variable that the shader reads: the tensor that provides the values.
    pub inputs: &'a [(&'a str, Named<'a>)],
    /// For each variable that the shader writes: the name under which the result is registered, and the shape of the
    /// result.
    pub outputs: &'a [(&'a str, &'a str, &'a [usize])],
    /// Values of the members of the uniform.
    pub params: &'a [(&'a str, ParamValue)],
    /// The number of workgroups on each axis. Defaults to as many workgroups as cover the longest output.
    pub grid: Option<[u32; 3]>,
}

impl Store {
    /// Checks and compiles a compute shader, then registers it under a name. `inputs` and `outputs` list variables of
    /// the shader's text with their types, in the order of their bindings.
    pub fn register_shader(
        &self,
        name: &str,
        wgsl: &str,
        inputs: &[(&str, DType)],
        outputs: &[(&str, DType)],
    ) -> Result<(), StoreError> {
        let context = self.context()?;
        if self.books()?.shaders.contains_key(name) {
            return Err(StoreError::ShaderExists { name: name.to_owned() });
        }
        // The books are not locked here, because compiling takes long.
        let shader = context.shader(name, wgsl, inputs, outputs)?;
        match self.books()?.shaders.entry(name.to_owned()) {
            Entry::Occupied(_) => return Err(StoreError::ShaderExists { name: name.to_owned() }),
            Entry::Vacant(free) => free.insert(shader),
        };
        self.say(|| format!("shader {name} is compiled"));
        Ok(())
    }

    /// Runs a registered shader. Returns the names of the results, in the order in which the outputs were declared.
    pub fn run_shader(&self, name: &str, model: &str, run: ShaderRun<'_>) -> Result<Vec<String>, StoreError> {
        let shader = self.shader_named(name)?;
        let inputs: Vec<Named<'_>> = run.inputs.iter().map(|(_, named)| *named).collect();
        let variables: Vec<&str> = run.inputs.iter().map(|(variable, _)| *variable).collect();
        let shapes: Vec<(&str, &[usize])> =
            run.outputs.iter().map(|(variable, _, shape)| (*variable, *shape)).collect();
        // The names are in the order in which the outputs were declared, as are the tensors that the shader returns.
        let mut outs: Vec<&str> = Vec::new();
        for declared in shader.own().outputs() {
            let given = run.outputs.iter().find(|(variable, ..)| *variable == declared.name);
            outs.extend(given.map(|(_, name, _)| *name));
        }
        self.perform("run_shader", &inputs, &outs, model, |tensors| {
            let bound: Vec<_> = variables.iter().copied().zip(tensors.iter().copied()).collect();
            let made = shader.run(&bound, &shapes, run.params, run.grid).map_err(TensorError::from)?;
            Ok(made.into_iter().map(|(_, tensor)| tensor).collect())
        })?;
        Ok(outs.into_iter().map(str::to_owned).collect())
    }

    pub fn shaders(&self) -> Vec<String> {
        self.books().map_or_else(|_| Vec::new(), |books| books.shaders.keys().cloned().collect())
    }

    fn shader_named(&self, name: &str) -> Result<CompiledShader, StoreError> {
        let books = self.books()?;
        books.shaders.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = books.shaders.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            StoreError::UnknownShader { name: name.to_owned(), known }
        })
    }
}
