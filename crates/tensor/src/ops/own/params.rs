//! Parameters of a user's shader: the members of its only uniform, with their types, offsets and bytes. The values of
//! the parameters are given with each run.
//!
//! Invariants: every member is given exactly once, with a value of its type. Padding between members is 0.

use naga::{Module, ScalarKind, Type, TypeInner};
use smallvec::SmallVec;

/// The value of a parameter. `into()` makes a value from an `f32`, an `i32`, a `u32`, or an array of 2, 3 or 4 of
/// these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamValue {
    kind: ParamKind,
    words: SmallVec<[u32; 4]>,
}

/// The type of a parameter: a scalar or a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ParamKind {
    scalar: &'static str,
    lanes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamMember {
    name: String,
    kind: ParamKind,
    offset: usize,
}

/// The layout of a shader's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UniformLayout {
    members: Vec<ParamMember>,
    bytes: usize,
}

impl UniformLayout {
    /// The layout of a uniform. The error says why the uniform cannot hold parameters.
    pub(super) fn of(module: &Module, ty: &Type) -> Result<UniformLayout, String> {
        let TypeInner::Struct { members, span } = &ty.inner else {
            return Err("is not a structure".to_owned());
        };
        let mut layout = UniformLayout { members: Vec::new(), bytes: span.next_multiple_of(16) as usize };
        for member in members {
            let name = member.name.clone().unwrap_or_default();
            let Some(kind) = ParamKind::of(&module.types[member.ty]) else {
                return Err(format!("has the member `{name}`, which is neither f32, i32, u32 nor a vector of these"));
            };
            layout.members.push(ParamMember { name, kind, offset: member.offset as usize });
        }
        Ok(layout)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// The bytes of these values.
    pub(super) fn put(&self, values: &[(&str, ParamValue)]) -> Result<Vec<u8>, String> {
        if let Some((name, _)) = values.iter().find(|(name, _)| self.names().all(|own| own != *name)) {
            return Err(match self.members.as_slice() {
                [] => format!("unknown parameter `{name}`; the text has no parameters"),
                _ => {
                    format!("unknown parameter `{name}`; the text has {}", self.names().collect::<Vec<_>>().join(", "))
                }
            });
        }
        let mut bytes = vec![0; self.bytes];
        for ParamMember { name, kind, offset } in &self.members {
            let mut given = values.iter().filter(|(own, _)| own == name);
            let (value, again) = (given.next(), given.next());
            let Some((_, value)) = value else {
                return Err(format!("the parameter `{name}` ({}) has no value; give it one", kind.written()));
            };
            if again.is_some() {
                return Err(format!("the parameter `{name}` is given twice; give it once"));
            }
            if value.kind != *kind {
                let (wants, has) = (kind.written(), value.kind.written());
                return Err(format!("the parameter `{name}` is {wants} in the text, got {has}"));
            }
            for (word, at) in value.words.iter().zip((*offset..).step_by(4)) {
                bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
        }
        Ok(bytes)
    }
}

impl ParamKind {
    fn of(ty: &Type) -> Option<ParamKind> {
        let (scalar, lanes) = match ty.inner {
            TypeInner::Scalar(scalar) => (scalar, 1),
            TypeInner::Vector { size, scalar } => (scalar, size as usize),
            _ => return None,
        };
        let scalar = match scalar.kind {
            _ if scalar.width != 4 => return None,
            ScalarKind::Float => "f32",
            ScalarKind::Sint => "i32",
            ScalarKind::Uint => "u32",
            _ => return None,
        };
        Some(ParamKind { scalar, lanes })
    }

    fn written(self) -> String {
        match self.lanes {
            1 => self.scalar.to_owned(),
            lanes => format!("vec{lanes}<{}>", self.scalar),
        }
    }
}

macro_rules! values {
    ($($rust:ty, $name:literal, $word:expr);*) => {
        $(
            impl From<$rust> for ParamValue {
                fn from(value: $rust) -> ParamValue {
                    ParamValue { kind: ParamKind { scalar: $name, lanes: 1 }, words: SmallVec::from_elem($word(value), 1) }
                }
            }
            values!(@ $rust, $name, $word, 2);
            values!(@ $rust, $name, $word, 3);
            values!(@ $rust, $name, $word, 4);
        )*
    };
    (@ $rust:ty, $name:literal, $word:expr, $lanes:literal) => {
        impl From<[$rust; $lanes]> for ParamValue {
            fn from(values: [$rust; $lanes]) -> ParamValue {
                let words = values.into_iter().map($word).collect();
                ParamValue { kind: ParamKind { scalar: $name, lanes: $lanes }, words }
            }
        }
    };
}

values!(f32, "f32", f32::to_bits; i32, "i32", i32::cast_unsigned; u32, "u32", std::convert::identity);
