//! A user's whole kernel: `@compute @workgroup_size(8, 8) fn main`, with its bindings.
//!
//! This module checks the bindings, lays out the words of the uniform, and computes the grid of workgroups. The text is
//! not changed, and the text's uniform replaces the composer's parameters. The output is cleared before each frame,
//! because a kernel may not write every pixel.
//!
//! Invariants: a kernel has one input image, one output image and at most one uniform. `global_invocation_id.xy` is the
//! position of the pixel, for any workgroup size.

use naga::{
    AddressSpace, ArraySize, Handle, Module, ScalarKind, ShaderStage, StorageAccess, Type, TypeInner, VectorSize,
};
use vramp_plan::{Binding, Shader, Size};

use super::members::{ShaderMember, is_scalar, is_vector};
use super::tokens::WgslToken;
use super::{MAX_OPERATIONS, OwnError, growth, members, parsed, pixel, validated};

/// Maximum bytes of private memory per invocation, for all variables together. Also the maximum size of a type.
const MAX_PRIVATE_BYTES: u32 = 64 << 10;

/// Invocations per workgroup that every device supports.
const MAX_INVOCATIONS: u32 = 256;

/// Workgroup memory that every device supports.
pub(super) const MAX_WORKGROUP_BYTES: u32 = 16 << 10;

/// A user's kernel.
#[derive(Debug)]
pub struct OwnKernel {
    text: String,
    bindings: Vec<Binding>,
    workgroup: [u32; 3],
    members: Vec<ShaderMember>,
    words: usize,
    /// Index of the first word of the frame's size. `size`, `number` and `time` are `None` if the uniform has no such
    /// member.
    size: Option<usize>,
    number: Option<usize>,
    time: Option<usize>,
}

impl OwnKernel {
    /// Whether both kernels have the same code, bindings and parameter words.
    pub fn is_same(&self, other: &OwnKernel) -> bool {
        let key = |kernel: &OwnKernel| (kernel.workgroup, kernel.words, kernel.size, kernel.number, kernel.time);
        self.text == other.text && self.bindings == other.bindings && key(self) == key(other)
    }

    /// Number of words of the uniform, a multiple of four.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The declared settings.
    pub fn members(&self) -> &[ShaderMember] {
        &self.members
    }

    pub fn shader(&self, name: &str) -> Shader {
        let [x, y, z] = self.workgroup;
        Shader {
            name: name.to_owned(),
            wgsl: self.text.clone(),
            bindings: self.bindings.clone(),
            per_workgroup: x * y * z,
        }
    }

    /// Number of workgroups along each axis that cover a frame.
    pub fn grid(&self, size: Size) -> [u32; 3] {
        [size.width.div_ceil(self.workgroup[0]), size.height.div_ceil(self.workgroup[1]), 1]
    }

    /// Whether the output is bound before the input.
    pub fn writes_first(&self) -> bool {
        self.bindings.iter().find(|binding| !matches!(binding, Binding::Params { .. })) == Some(&Binding::Write)
    }

    /// Writes the frame's size, number and time to the words that the uniform has for them.
    pub fn put_frame(&self, size: Size, number: u64, seconds: f32, words: &mut [u32]) {
        if let Some(at) = self.size {
            words[at..at + 2].copy_from_slice(&[size.width, size.height]);
        }
        if let Some(at) = self.number {
            words[at] = number as u32;
        }
        if let Some(at) = self.time {
            words[at] = seconds.to_bits();
        }
    }
}

pub(super) fn read(text: &str, tokens: &[WgslToken<'_>]) -> Result<OwnKernel, OwnError> {
    let module = parsed(text, text.len())?;
    let info = validated(text, text.len(), &module)?;
    let place = |word: &str| tokens.iter().find(|token| token.text == word).map_or(0, |token| token.at);
    let [entry] = module.entry_points.as_slice() else {
        let names: Vec<&str> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
        let second = names.get(1).map_or(0, |name| place(name));
        let problem = format!("the text has {} entry points: {}; expected one", names.len(), names.join(", "));
        return Err(OwnError::at(text, second, problem));
    };
    if entry.stage != ShaderStage::Compute || entry.name != "main" {
        let problem = format!("the entry point is `{}`; expected a `@compute` entry point named `main`", entry.name);
        return Err(OwnError::at(text, place(&entry.name), problem));
    }
    check_memory(text, &module, MAX_WORKGROUP_BYTES)?;
    growth::check_calls(text, &module, &info, MAX_OPERATIONS)?;
    let workgroup = entry.workgroup_size;
    let invocations = workgroup.iter().try_fold(1_u32, |all, side| all.checked_mul(*side)).unwrap_or(u32::MAX);
    if invocations > MAX_INVOCATIONS || workgroup[2] > 1 {
        let [x, y, z] = workgroup;
        let problem = format!(
            "a workgroup of {x}x{y}x{z} is {invocations} invocations; expected at most {MAX_INVOCATIONS} in two dimensions"
        );
        return Err(OwnError::at(text, place("workgroup_size"), problem));
    }
    let mut kernel = OwnKernel {
        text: text.to_owned(),
        bindings: Vec::new(),
        workgroup,
        members: Vec::new(),
        words: 0,
        size: None,
        number: None,
        time: None,
    };
    let mut bound = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let name = variable.name.clone().unwrap_or_default();
        let at = module.global_variables.get_span(handle).to_range().map_or(0, |range| range.start);
        let wrong = |problem: String| {
            OwnError::at(text, at, problem).help(
                "a kernel binds `var<storage, read>` and `var<storage, read_write>` of `array<u32>`, and at most one \
                 `var<uniform>`, as bindings 0, 1 and 2 of group 0",
            )
        };
        let Some(place) = variable.binding else { continue };
        if place.group != 0 || place.binding > 2 {
            let problem =
                format!("`{name}` is binding {} of group {}, which is not available", place.binding, place.group);
            return Err(wrong(problem));
        }
        let ty = &module.types[variable.ty];
        let binding = match variable.space {
            AddressSpace::Storage { access } if is_words(&module, ty) => {
                if access.contains(StorageAccess::STORE) {
                    Binding::Write
                } else {
                    Binding::Read
                }
            }
            AddressSpace::Storage { .. } => {
                return Err(wrong(format!(
                    "`{name}` is not an `array<u32>` with one word per pixel: r, g, b, a from the lowest byte"
                )));
            }
            AddressSpace::Uniform => {
                Binding::Params { bytes: uniform((text, tokens), &module, variable.ty, &mut kernel)? }
            }
            _ => return Err(wrong(format!("`{name}`: a binding of this kind is not supported"))),
        };
        bound.push((place.binding, binding, name));
    }
    bound.sort_by_key(|(at, ..)| *at);
    let reads = bound.iter().filter(|(_, binding, _)| *binding == Binding::Read).count();
    let writes = bound.iter().filter(|(_, binding, _)| *binding == Binding::Write).count();
    let gap = (0..).zip(&bound).find(|(at, (is, ..))| at != is);
    let problem = match (reads, writes, gap) {
        (1, 1, None) if bound.len() <= 3 => None,
        (1, 1, Some((at, (is, _, name)))) => {
            Some(format!("`{name}` is binding {is}, but binding {at} is missing or used twice"))
        }
        (1, 1, None) => Some("it has more than one uniform".to_owned()),
        _ => Some(format!("bindings for images: {reads} to read, {writes} to write; expected one of each")),
    };
    if let Some(problem) = problem {
        return Err(OwnError::whole(problem).help(
            "`@group(0) @binding(0) var<storage, read> input: array<u32>;` and `@group(0) @binding(1) \
             var<storage, read_write> output: array<u32>;`",
        ));
    }
    kernel.bindings = bound.into_iter().map(|(_, binding, _)| binding).collect();
    Ok(kernel)
}

/// Reads the members of a uniform: `size`, `number` and `time` of the frame by name, all others as settings. Returns
/// the size of the uniform in bytes.
fn uniform(
    (text, tokens): (&str, &[WgslToken<'_>]),
    module: &Module,
    ty: Handle<Type>,
    kernel: &mut OwnKernel,
) -> Result<u32, OwnError> {
    let ty = &module.types[ty];
    let (TypeInner::Struct { members, span }, Some(name)) = (&ty.inner, &ty.name) else {
        return Err(
            OwnError::whole("its uniform is not a struct").help("`struct Settings { size: vec2u, strength: f32 }`")
        );
    };
    let word = |offset: u32| offset as usize / 4;
    let mut own = Vec::new();
    for member in members {
        let ty = &module.types[member.ty];
        match member.name.as_deref() {
            Some("size") if is_vector(ty, VectorSize::Bi, ScalarKind::Uint) => kernel.size = Some(word(member.offset)),
            Some("number") if is_scalar(ty, ScalarKind::Uint) => kernel.number = Some(word(member.offset)),
            Some("time") if is_scalar(ty, ScalarKind::Float) => kernel.time = Some(word(member.offset)),
            _ => own.push(member.clone()),
        }
    }
    kernel.members = members::of((text, tokens), module, name, &own, |_, member| word(member.offset))?;
    let bytes = span.next_multiple_of(16);
    kernel.words = word(bytes);
    Ok(bytes)
}

fn is_words(module: &Module, ty: &Type) -> bool {
    let TypeInner::Array { base, size: ArraySize::Dynamic, .. } = ty.inner else { return false };
    is_scalar(&module.types[base], ScalarKind::Uint)
}

/// Refuses variables and types that exceed the memory limits. Returns the number of bytes that a workgroup shares.
pub(super) fn check_memory(text: &str, module: &Module, most_shared: u32) -> Result<u32, OwnError> {
    let is_pixel = module.entry_points.is_empty();
    let bytes = |ty: Handle<Type>| module.types[ty].inner.size(module.to_ctx());
    let refuse = |at: Option<std::ops::Range<usize>>, name: &str, has: u32, most: u32| {
        let problem = format!("`{name}` brings the memory to {has} bytes; the limit is {most}");
        Err(OwnError::at(text, at.map_or(0, |at| at.start), problem))
    };
    let (mut private, mut shared) = (0_u32, 0_u32);
    for (handle, variable) in module.global_variables.iter() {
        let at = module.global_variables.get_span(handle).to_range();
        let name = variable.name.as_deref().unwrap_or("");
        if is_pixel && !pixel::is_allowed(variable.space) {
            let problem = format!("a pixel function cannot bind or share `{name}`");
            return Err(OwnError::at(text, at.map_or(0, |at| at.start), problem)
                .help("take settings as a parameter: `settings: Settings`"));
        }
        let (sum, most) = match variable.space {
            AddressSpace::Private => (&mut private, MAX_PRIVATE_BYTES),
            AddressSpace::WorkGroup => (&mut shared, most_shared),
            _ => continue,
        };
        *sum = sum.saturating_add(bytes(variable.ty));
        if *sum > most {
            return refuse(at, name, *sum, most);
        }
    }
    let functions = module.functions.iter().map(|(_, function)| function);
    for function in functions.chain(module.entry_points.iter().map(|entry| &entry.function)) {
        for (handle, variable) in function.local_variables.iter() {
            private = private.saturating_add(bytes(variable.ty));
            if private > MAX_PRIVATE_BYTES {
                let at = function.local_variables.get_span(handle).to_range();
                return refuse(at, variable.name.as_deref().unwrap_or(""), private, MAX_PRIVATE_BYTES);
            }
        }
    }
    for (handle, ty) in module.types.iter() {
        let has = bytes(handle);
        if has > MAX_PRIVATE_BYTES {
            return refuse(
                module.types.get_span(handle).to_range(),
                ty.name.as_deref().unwrap_or("this type"),
                has,
                MAX_PRIVATE_BYTES,
            );
        }
    }
    Ok(shared)
}
