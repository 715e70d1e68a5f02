//! Users' own compute shaders over tensors: this module parses the text of a shader, checks its bindings, parameters
//! and workgroup, and computes grids.
//!
//! [`CompiledShader`] runs a shader on the device of a context; other code passes [`OwnShader::shader`] to a device. A
//! shader sees exactly the bytes of its tensors, because each tensor is bound as a range of a buffer.
//!
//! Invariants: mistakes are found before anything runs, and reported with their line and a remedy. Bindings are the
//! declared inputs, then the declared outputs, then the parameters. Bindings that the text does not use are bound as
//! well.

mod bound;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod copies;
mod error;
mod params;
#[cfg(not(target_arch = "wasm32"))]
mod run;
#[cfg(test)]
mod tests;

pub use bound::BoundTensor;
pub use error::{ShaderError, ShaderPosition};
pub use params::ParamValue;
#[cfg(not(target_arch = "wasm32"))]
pub use run::CompiledShader;

use naga::{ArraySize, EntryPoint, Module, ShaderStage, TypeInner};
use vramp_gpu::DeviceLimits;
use vramp_kernels::own::{self, OwnError};
use vramp_plan::Binding;

use crate::ops::dtype::DType;
use bound::Bound;
use params::UniformLayout;

/// A user's compute shader, read and checked.
///
/// The text of a shader sees tensors of f32, i32 and u32 as `array<f32>`, `array<i32>` and `array<u32>`, or as arrays
/// of `vec2` or `vec4` of the same type if the number of values is a multiple of 2 or 4. The text sees other types as
/// `array<u32>`: a word holds two values of f16 (`unpack2x16float`) or four of u8 or i8 (`unpack4xU8`, `unpack4xI8`),
/// the first in the lowest bits. Bits of the last word after the last value are zeros. `arrayLength` counts the words
/// of the tensor, not the words of memory after the tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnShader {
    shader: vramp_plan::Shader,
    inputs: Vec<BoundTensor>,
    outputs: Vec<BoundTensor>,
    params: UniformLayout,
    workgroup: [u32; 3],
    workgroup_at: ShaderPosition,
    shared_bytes: u32,
}

impl OwnShader {
    /// Reads a text. Each input and output is given as the name of its variable and its type, in the order of bindings;
    /// an empty name is replaced by the name in the text.
    pub fn read(
        name: &str,
        wgsl: &str,
        inputs: &[(&str, DType)],
        outputs: &[(&str, DType)],
    ) -> Result<OwnShader, ShaderError> {
        check_declared(name, inputs, outputs)?;
        let read = own::judged(wgsl, |module, shared_bytes| {
            let entry = entry(wgsl, module)?;
            check_overrides(wgsl, module, entry)?;
            let bound = bound::read(wgsl, module, inputs, outputs)?;
            Ok((bound, entry.workgroup_size, shared_bytes))
        });
        let (Bound { inputs, outputs, params }, workgroup, shared_bytes) =
            read.map_err(|error| ShaderError::text(name, error))?;
        let mut bindings = vec![Binding::Read; inputs.len()];
        bindings.extend(vec![Binding::Write; outputs.len()]);
        bindings.extend(params.as_ref().map(|params| Binding::Params { bytes: params.bytes() as u32 }));
        let place = OwnError::at_word(wgsl, "workgroup_size", "");
        // Saturates at 2^32 - 1: the compiler allows up to 2^14 along each side, and `fits` compares the product with
        // the device's limit.
        let per_workgroup = workgroup.iter().fold(1_u32, |all, side| all.saturating_mul(*side));
        let shader = vramp_plan::Shader { name: name.to_owned(), wgsl: wgsl.to_owned(), bindings, per_workgroup };
        let workgroup_at = ShaderPosition { line: place.line, column: place.column };
        let params = params.unwrap_or_default();
        Ok(OwnShader { shader, inputs, outputs, params, workgroup, workgroup_at, shared_bytes })
    }

    /// Fails if a device with these limits cannot run the shader.
    pub fn fits(&self, limits: &DeviceLimits) -> Result<(), ShaderError> {
        let wrong = |problem: String, help: &str| ShaderError::Text {
            name: self.name().to_owned(),
            at: self.workgroup_at,
            problem,
            help: Some(help.to_owned()),
        };
        let ([x, y, z], [wide, high, deep]) = (self.workgroup, limits.workgroup_sides);
        let (all, most) = (self.shader.per_workgroup, limits.invocations_per_workgroup);
        if all > most || x > wide || y > high || z > deep {
            let problem = format!(
                "a workgroup of {x} x {y} x {z} is {all} invocations; this device allows at most {most}, and at most \
                 {wide} x {high} x {deep}"
            );
            return Err(wrong(problem, "make the workgroup smaller, and run more workgroups"));
        }
        let (has, most) = (self.shared_bytes, limits.workgroup_bytes);
        if has > most {
            let problem = format!("a workgroup shares {has} bytes; this device allows at most {most}");
            return Err(wrong(problem, "share less in `var<workgroup>`"));
        }
        let (has, most) = (self.inputs.len() + self.outputs.len(), limits.storage_buffers_per_stage as usize);
        if has > most {
            let problem = format!("it binds {has} tensors; this device allows at most {most}");
            return Err(ShaderError::Declared {
                name: self.name().to_owned(),
                problem: format!("{problem}; split it"),
            });
        }
        let (has, most) = (self.params.bytes() as u64, limits.params_bytes);
        if has > most {
            let problem = format!("its parameters are {has} bytes; this device allows at most {most}; use an input");
            return Err(ShaderError::Declared { name: self.name().to_owned(), problem });
        }
        Ok(())
    }

    /// The shader's name in messages.
    pub fn name(&self) -> &str {
        &self.shader.name
    }

    /// The shader to prepare on a device.
    pub fn shader(&self) -> &vramp_plan::Shader {
        &self.shader
    }

    /// The inputs in the order of bindings.
    pub fn inputs(&self) -> &[BoundTensor] {
        &self.inputs
    }

    /// The outputs in the order of bindings. The bindings of outputs follow those of inputs.
    pub fn outputs(&self) -> &[BoundTensor] {
        &self.outputs
    }

    /// The names of the parameters, in the order of the text.
    pub fn param_names(&self) -> impl Iterator<Item = &str> {
        self.params.names()
    }

    /// Invocations of one workgroup along x, y and z.
    pub fn workgroup(&self) -> [u32; 3] {
        self.workgroup
    }

    /// Fails if `count` values of type `dtype` cannot be bound as `tensor`, which is one of the shader's
    /// [`inputs`](Self::inputs) or [`outputs`](Self::outputs).
    pub fn accepts(&self, tensor: &BoundTensor, dtype: DType, count: usize) -> Result<(), ShaderError> {
        let (name, binding) = (self.name().to_owned(), tensor.name.clone());
        if dtype != tensor.dtype {
            return Err(ShaderError::WrongType { name, binding, wants: tensor.dtype, has: dtype });
        }
        let (each, packed) = (tensor.per_element, dtype.per_word());
        let wants = match tensor.length {
            _ if count == 0 => "a tensor without values cannot be bound; give it at least one".to_owned(),
            // The last word is padded with zeros, but the last vector is not padded with words.
            None if count.next_multiple_of(packed).is_multiple_of(each) => return Ok(()),
            None => format!("an element of its array has {each} values; give a multiple of {each} values"),
            Some(length) if count.next_multiple_of(packed) == length * each => return Ok(()),
            Some(length) => format!("its array has a fixed length of {length}, which is {} values", length * each),
        };
        Err(ShaderError::WrongCount { name, binding, has: count, wants })
    }

    /// The bytes of the parameters, each given by name.
    pub fn params(&self, values: &[(&str, ParamValue)]) -> Result<Vec<u8>, ShaderError> {
        self.params.put(values).map_err(|problem| ShaderError::Param { name: self.name().to_owned(), problem })
    }

    /// Checks a grid against the limits of a device.
    pub fn grid(&self, [x, y, z]: [u32; 3], limits: &DeviceLimits) -> Result<[u32; 3], ShaderError> {
        let most = limits.workgroups_per_dimension;
        if [x, y, z].iter().all(|side| (1..=most).contains(side)) {
            Ok([x, y, z])
        } else {
            Err(ShaderError::Grid { name: self.name().to_owned(), x, y, z, most })
        }
    }

    /// A grid with at least one invocation for each of `count` values. The grid is one row of workgroups if the device
    /// allows a row of that length (usually up to 65535); if the workgroup is one row too, `global_invocation_id.x` is
    /// the value's index. A longer grid is folded into several rows, and the value's index is
    /// `id.x + id.y * num_workgroups.x * WORKGROUP`.
    pub fn grid_over(&self, count: usize, limits: &DeviceLimits) -> [u32; 3] {
        let [x, y] = self.shader.grid(count as u64, limits.workgroups_per_dimension);
        [x, y, 1]
    }
}

fn check_declared(name: &str, inputs: &[(&str, DType)], outputs: &[(&str, DType)]) -> Result<(), ShaderError> {
    let wrong = |problem: String| Err(ShaderError::Declared { name: name.to_owned(), problem });
    if outputs.is_empty() {
        return wrong("no output is declared, so that a run would have no effect; declare at least one".to_owned());
    }
    let names: Vec<&str> = inputs.iter().chain(outputs).map(|(name, _)| *name).collect();
    let twice = |(at, name): &(usize, &&str)| !name.is_empty() && names[..*at].contains(*name);
    match names.iter().enumerate().find(twice) {
        Some((_, twice)) => wrong(format!("`{twice}` is declared twice; give each tensor a name of its own")),
        None => Ok(()),
    }
}

fn entry<'a>(text: &str, module: &'a Module) -> Result<&'a EntryPoint, OwnError> {
    match module.entry_points.as_slice() {
        [entry] if entry.stage == ShaderStage::Compute => Ok(entry),
        [entry] => {
            let problem = format!("the entry point `{}` is not `@compute`", entry.name);
            Err(OwnError::at_word(text, &entry.name, problem).help("write `@compute @workgroup_size(64)` before it"))
        }
        all => {
            let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
            let problem = format!("it has {} entry points: {}; expected one", names.len(), names.join(", "));
            let second = names.get(1).copied().unwrap_or_default();
            Err(OwnError::at_word(text, second, problem).help("create one shader for each entry point"))
        }
    }
}

/// Fails if an overridable constant has no default or sets a size: nothing overrides these constants.
fn check_overrides(text: &str, module: &Module, entry: &EntryPoint) -> Result<(), OwnError> {
    let without = module.overrides.iter().find(|(_, constant)| constant.init.is_none());
    if let Some((handle, constant)) = without {
        let at = module.overrides.get_span(handle).to_range().map_or(0, |range| range.start);
        let problem = format!("`{}` has no value, and nothing overrides it", constant.name.as_deref().unwrap_or(""));
        return Err(OwnError::at(text, at, problem).help("give it a default, write `const`, or make it a parameter"));
    }
    if entry.workgroup_size_overrides.is_some() {
        let problem = "the size of the workgroup is an `override`";
        return Err(OwnError::at_word(text, "workgroup_size", problem).help("write a number or a `const`"));
    }
    let pending = |inner: &TypeInner| matches!(inner, TypeInner::Array { size: ArraySize::Pending(_), .. });
    if let Some((handle, _)) = module.types.iter().find(|(_, ty)| pending(&ty.inner)) {
        let at = module.types.get_span(handle).to_range().map_or(0, |range| range.start);
        let problem = "the length of an array is an `override`";
        return Err(OwnError::at(text, at, problem).help("write a number or a `const`"));
    }
    Ok(())
}
