//! Checks the bindings of a user's shader against the declaration. All bindings are in group 0: first the inputs, then
//! the outputs, in the declared order, then at most one uniform. The array of each tensor must have the WGSL type for
//! the tensor's element type. Sizes of tensors are checked at each run.
//!
//! Invariant: every mismatch is reported with its position, the actual binding and the expected binding.

use naga::{AddressSpace, ArraySize, Handle, Module, ScalarKind, StorageAccess, Type, TypeInner};
use vramp_kernels::own::OwnError;

use super::params::UniformLayout;
use crate::ops::dtype::DType;

/// A tensor that a shader reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundTensor {
    /// The name of the tensor's variable.
    pub name: String,
    pub dtype: DType,
    /// Values per element of the array: 1, 2 or 4 values of 32 bits, or the values packed into 1, 2 or 4 words.
    pub(super) per_element: usize,
    /// The number of elements of the array, if the text fixes it.
    pub(super) length: Option<usize>,
}

/// Everything that a text binds.
pub(super) struct Bound {
    pub(super) inputs: Vec<BoundTensor>,
    pub(super) outputs: Vec<BoundTensor>,
    pub(super) params: Option<UniformLayout>,
}

/// A variable of the text with a binding.
struct Variable {
    name: String,
    binding: u32,
    at: usize,
    space: AddressSpace,
    ty: Handle<Type>,
}

/// Checks the text's bindings against the declaration.
pub(super) fn read(
    text: &str,
    module: &Module,
    inputs: &[(&str, DType)],
    outputs: &[(&str, DType)],
) -> Result<Bound, OwnError> {
    let variables = variables(text, module)?;
    let reading = BindingReader { text, module, variables: &variables };
    let inputs_end = inputs.len();
    let declared: Vec<DeclaredTensor<'_>> = (0_u32..)
        .zip(inputs.iter().chain(outputs))
        .map(|(binding, (name, dtype))| DeclaredTensor {
            name,
            dtype: *dtype,
            binding,
            is_output: binding as usize >= inputs_end,
        })
        .collect();
    // Undeclared variables are checked first, so that a misspelt name is reported at its own position, with the
    // expected names.
    reading.check_strangers(&declared)?;
    let mut tensors = declared.iter().map(|declared| reading.tensor(declared)).collect::<Result<Vec<_>, _>>()?;
    let outputs = tensors.split_off(inputs_end);
    let params = variables.iter().find(|variable| variable.space == AddressSpace::Uniform);
    let params = params.map(|variable| reading.params(variable, declared.len())).transpose()?;
    Ok(Bound { inputs: tensors, outputs, params })
}

/// Every variable with a binding, in the order of bindings.
fn variables(text: &str, module: &Module) -> Result<Vec<Variable>, OwnError> {
    let mut found = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let Some(place) = variable.binding else { continue };
        let name = variable.name.clone().unwrap_or_default();
        let at = module.global_variables.get_span(handle).to_range().map_or(0, |range| range.start);
        if place.group != 0 {
            let problem = format!("`{name}` is in group {}; everything is bound in group 0", place.group);
            return Err(OwnError::at(text, at, problem).help(format!("write `@group(0) @binding({})`", place.binding)));
        }
        match variable.space {
            AddressSpace::Storage { .. } | AddressSpace::Uniform => {}
            _ => {
                let problem = format!("`{name}`: textures and samplers cannot be bound; tensors are arrays");
                let help = "`var<storage, read>` for an input, `var<storage, read_write>` for an output";
                return Err(OwnError::at(text, at, problem).help(help));
            }
        }
        found.push(Variable { name, binding: place.binding, at, space: variable.space, ty: variable.ty });
    }
    found.sort_by_key(|variable| variable.binding);
    if let Some([one, two]) = found.windows(2).find(|pair| pair[0].binding == pair[1].binding) {
        let problem = format!("`{}` and `{}` are both binding {}", one.name, two.name, one.binding);
        return Err(OwnError::at(text, two.at, problem).help("number the bindings 0, 1, 2 and so on, without gaps"));
    }
    Ok(found)
}

struct DeclaredTensor<'a> {
    name: &'a str,
    dtype: DType,
    binding: u32,
    is_output: bool,
}

impl DeclaredTensor<'_> {
    fn role(&self) -> &'static str {
        if self.is_output { "output" } else { "input" }
    }

    fn access(&self) -> &'static str {
        if self.is_output { "read_write" } else { "read" }
    }

    /// The declaration as WGSL.
    fn written(&self) -> String {
        let (binding, access, element) = (self.binding, self.access(), element_of(self.dtype));
        let name = if self.name.is_empty() { self.role() } else { self.name };
        format!("`@group(0) @binding({binding}) var<storage, {access}> {name}: array<{element}>;`")
    }
}

struct BindingReader<'a> {
    text: &'a str,
    module: &'a Module,
    variables: &'a [Variable],
}

impl BindingReader<'_> {
    fn tensor(&self, declared: &DeclaredTensor<'_>) -> Result<BoundTensor, OwnError> {
        let role = declared.role();
        let there = self.variables.iter().find(|variable| variable.binding == declared.binding);
        let named = self.variables.iter().find(|variable| variable.name == declared.name);
        let variable = match (there, named) {
            (Some(there), _) if declared.name.is_empty() || there.name == declared.name => there,
            (_, Some(named)) => {
                let problem = format!(
                    "`{}` is binding {}; the declared order makes this {role} binding {}",
                    named.name, named.binding, declared.binding
                );
                let help = "bind the inputs, then the outputs, in the declared order, then the parameters";
                return Err(OwnError::at(self.text, named.at, problem).help(help));
            }
            (_, None) => {
                let names: Vec<&str> = self.variables.iter().map(|variable| variable.name.as_str()).collect();
                let which = if declared.name.is_empty() {
                    format!("binding {}", declared.binding)
                } else {
                    format!("`{}`", declared.name)
                };
                let has = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                let problem = format!("the text has no {role} {which}; it binds {has}");
                return Err(OwnError::whole(problem).help(format!("write {}", declared.written())));
            }
        };
        let wrong = |problem: String| {
            let named = DeclaredTensor { name: &variable.name, ..*declared };
            OwnError::at(self.text, variable.at, problem).help(format!("write {}", named.written()))
        };
        let name = &variable.name;
        let AddressSpace::Storage { access } = variable.space else {
            return Err(wrong(format!("the {role} `{name}` is a uniform; tensors are in `storage`")));
        };
        let has = if access.contains(StorageAccess::STORE) { "read_write" } else { "read" };
        if has != declared.access() {
            let wants = declared.access();
            return Err(wrong(format!("the {role} `{name}` has the access `{has}`; an {role} has `{wants}`")));
        }
        let Some((scalar, lanes, length)) = self.elements(variable.ty) else {
            let problem = format!(
                "the {role} `{name}` is not an array of f32, i32 or u32, or of vectors of 2 or 4 of these, as \
                 {} needs",
                declared.dtype
            );
            return Err(wrong(problem));
        };
        if scalar != element_of(declared.dtype) {
            let packed = match declared.dtype.per_word() {
                1 => String::new(),
                values => format!(", {values} to a word"),
            };
            return Err(wrong(format!(
                "the {role} `{name}` is declared as {}, which needs an array of {}{packed}; the text has an array \
                 of {scalar}",
                declared.dtype,
                element_of(declared.dtype),
            )));
        }
        let per_element = lanes * declared.dtype.per_word();
        Ok(BoundTensor { name: name.clone(), dtype: declared.dtype, per_element, length })
    }

    /// The scalar type of an array, the number of scalars per element, and the number of elements if the text fixes
    /// that number.
    fn elements(&self, ty: Handle<Type>) -> Option<(&'static str, usize, Option<usize>)> {
        let TypeInner::Array { base, size, .. } = self.module.types[ty].inner else { return None };
        let length = match size {
            ArraySize::Constant(length) => Some(length.get() as usize),
            ArraySize::Dynamic => None,
            ArraySize::Pending(_) => return None,
        };
        let (scalar, lanes) = match self.module.types[base].inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => (scalar, 1),
            // Vectors of 3 are refused, because WGSL places them 4 values apart, and a tensor has no such gaps.
            TypeInner::Vector { size, scalar } if size as usize != 3 => (scalar, size as usize),
            _ => return None,
        };
        match scalar.kind {
            _ if scalar.width != 4 => None,
            ScalarKind::Float => Some(("f32", lanes, length)),
            ScalarKind::Sint => Some(("i32", lanes, length)),
            ScalarKind::Uint => Some(("u32", lanes, length)),
            _ => None,
        }
    }

    fn params(&self, variable: &Variable, wants: usize) -> Result<UniformLayout, OwnError> {
        let name = &variable.name;
        if variable.binding as usize != wants {
            let problem =
                format!("the uniform `{name}` is binding {}; it must be last, binding {wants}", variable.binding);
            return Err(OwnError::at(self.text, variable.at, problem)
                .help(format!("write `@group(0) @binding({wants}) var<uniform> {name}`")));
        }
        UniformLayout::of(self.module, &self.module.types[variable.ty]).map_err(|problem| {
            OwnError::at(self.text, variable.at, format!("the uniform `{name}` {problem}"))
                .help("write `struct Params { scale: f32, size: vec2<u32> }` and `var<uniform> params: Params`")
        })
    }

    /// Fails if a bound variable is not declared, except for one uniform.
    fn check_strangers(&self, declared: &[DeclaredTensor<'_>]) -> Result<(), OwnError> {
        let is_known = |variable: &Variable| {
            let same = |declared: &DeclaredTensor<'_>| match declared.name {
                "" => declared.binding == variable.binding,
                name => name == variable.name,
            };
            declared.iter().any(same)
        };
        let mut uniforms = 0;
        for variable in self.variables {
            uniforms += usize::from(variable.space == AddressSpace::Uniform);
            let name = &variable.name;
            if variable.space == AddressSpace::Uniform && uniforms > 1 {
                let problem = format!("`{name}` is a second uniform; a shader has at most one, for all its parameters");
                return Err(OwnError::at(self.text, variable.at, problem).help("move its members to the first uniform"));
            }
            if variable.space != AddressSpace::Uniform && !is_known(variable) {
                let names: Vec<String> = declared.iter().map(|one| format!("{} `{}`", one.role(), one.name)).collect();
                let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                let problem = format!("`{name}` is not declared; declared: {names}");
                return Err(OwnError::at(self.text, variable.at, problem)
                    .help("declare it as an input or output, rename it, or remove it"));
            }
        }
        Ok(())
    }
}

/// The array element in WGSL for tensors of this type.
fn element_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::I32 => "i32",
        DType::U32 | DType::F16 | DType::U8 | DType::I8 => "u32",
    }
}
