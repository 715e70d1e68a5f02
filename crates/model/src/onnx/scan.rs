//! A pass over the bytes of a file before anything is decoded.
//!
//! Two bytes of a file can be an empty message that takes hundreds of bytes when decoded. This pass walks the messages,
//! claims the memory that decoding and sorting the graph will take, and so refuses hostile files before they are
//! decoded. It also finds wrong lengths and names the node that contains them, which prost does not.
//!
//! Invariants: the pass allocates nothing but errors. It knows every field of [`proto`](super::proto). Graphs nested in
//! nodes are walked, so that their depth is known, but they are never decoded and claim nothing.

use std::mem::size_of;

use super::allowance::Allowance;
use super::error::{LONGEST_NAME, OnnxError, node_place, quoted};
use super::proto::{
    AttributeProto, DimensionProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};

/// Real models nest two or three graphs.
const MOST_NESTED_GRAPHS: usize = 32;

/// A message of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    Opset,
    Graph,
    Node,
    Attribute,
    Tensor,
    Entry,
    ValueInfo,
    Type,
    TensorType,
    Shape,
    Dimension,
}

/// What a field contains.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// Not declared in `proto`, or without memory of its own.
    Skipped,
    /// Bytes that are shared with the file.
    Shared,
    Number,
    Float,
    Text,
    /// The name of a value, which the graph stores again.
    ValueName,
    /// A list of names of values.
    ValueNames,
    Integers,
    Floats,
    /// Packed numbers that stay as they are.
    Packed,
    /// A message inside its parent.
    One(Kind),
    /// A message with an allocation of its own.
    Boxed(Kind),
    Many(Kind),
    /// Graphs inside a node.
    NestedGraph,
}

impl Field {
    fn of(kind: Kind, tag: u64) -> Field {
        match (kind, tag) {
            (Kind::Model | Kind::TensorType | Kind::Dimension, 1)
            | (Kind::Opset | Kind::Tensor, 2)
            | (Kind::Attribute, 3 | 20)
            | (Kind::Tensor, 14) => Field::Number,
            (Kind::Attribute, 2) => Field::Float,
            (Kind::Attribute, 4) | (Kind::Tensor, 9) => Field::Shared,
            (Kind::Model, 2 | 3)
            | (Kind::Graph | Kind::Dimension, 2)
            | (Kind::Opset | Kind::Attribute, 1)
            | (Kind::Node, 3 | 4 | 7)
            | (Kind::Entry, 1 | 2) => Field::Text,
            (Kind::Tensor, 8) | (Kind::ValueInfo, 1) => Field::ValueName,
            (Kind::Node, 1 | 2) => Field::ValueNames,
            (Kind::Attribute, 7) => Field::Floats,
            (Kind::Attribute, 8) | (Kind::Tensor, 1) => Field::Integers,
            (Kind::Tensor, 4 | 5 | 7 | 10 | 11) => Field::Packed,
            (Kind::Model, 7) => Field::One(Kind::Graph),
            (Kind::Model, 8) => Field::Many(Kind::Opset),
            (Kind::Graph, 1) => Field::Many(Kind::Node),
            (Kind::Graph, 5) => Field::Many(Kind::Tensor),
            (Kind::Graph, 11 | 12) => Field::Many(Kind::ValueInfo),
            (Kind::Node, 5) => Field::Many(Kind::Attribute),
            (Kind::Attribute, 5) => Field::Boxed(Kind::Tensor),
            (Kind::Attribute, 6 | 11) => Field::NestedGraph,
            (Kind::Tensor, 13) => Field::Many(Kind::Entry),
            (Kind::ValueInfo, 2) => Field::One(Kind::Type),
            (Kind::Type, 1) => Field::One(Kind::TensorType),
            (Kind::TensorType, 2) => Field::One(Kind::Shape),
            (Kind::Shape, 1) => Field::Many(Kind::Dimension),
            _ => Field::Skipped,
        }
    }

    /// Whether the field may have this wire type.
    fn accepts(self, wire: u64) -> bool {
        match self {
            Field::Skipped => true,
            Field::Number => wire == NUMBER,
            Field::Float => wire == FOUR_BYTES,
            Field::Integers => wire == NUMBER || wire == LENGTH,
            Field::Floats => wire == FOUR_BYTES || wire == LENGTH,
            _ => wire == LENGTH,
        }
    }

    /// The most memory that one occurrence with these bytes takes in the decoded messages and in the graph.
    fn needs(self, bytes: &[u8], is_first: bool) -> u64 {
        let text = if bytes.is_empty() { 0 } else { bytes.len() as u64 + ALLOCATION };
        match self {
            Field::Skipped | Field::Shared | Field::Number | Field::Float | Field::One(_) | Field::NestedGraph => 0,
            Field::Text => 3 * text,
            Field::ValueName => 3 * text + PER_VALUE,
            Field::ValueNames => 3 * text + PER_VALUE + in_list(size_of::<String>(), is_first),
            Field::Integers => {
                let values = bytes.iter().filter(|byte| **byte < 0x80).count().max(1);
                (values as u64) * 5 * size_of::<i64>() as u64 + ALLOCATION
            }
            Field::Floats => bytes.len().max(4) as u64 * 5 + ALLOCATION,
            Field::Packed => in_list(size_of::<bytes::Bytes>(), is_first),
            Field::Boxed(_) => size_of::<TensorProto>() as u64 + ALLOCATION,
            Field::Many(Kind::Opset) => in_list(size_of::<OperatorSetIdProto>(), is_first),
            Field::Many(Kind::Node) => in_list(size_of::<NodeProto>(), is_first) + PER_NODE,
            Field::Many(Kind::Attribute) => in_list(size_of::<AttributeProto>(), is_first) + PER_ATTRIBUTE,
            Field::Many(Kind::Tensor) => in_list(size_of::<TensorProto>(), is_first) + PER_TENSOR,
            Field::Many(Kind::Entry) => in_list(size_of::<StringStringEntryProto>(), is_first),
            Field::Many(Kind::ValueInfo) => in_list(size_of::<ValueInfoProto>(), is_first) + PER_TENSOR,
            Field::Many(_) => in_list(size_of::<DimensionProto>(), is_first) + PER_DIMENSION,
        }
    }
}

// ---- what the normalised graph takes, rounded up. `tests/hostile.rs` measures that the sums suffice.

/// What the allocator may add to an allocation.
const ALLOCATION: u64 = 32;
/// The entries in the list and in the map of names, the places of a reader and of a producer.
const PER_VALUE: u64 = 200;
const PER_NODE: u64 = 400;
const PER_ATTRIBUTE: u64 = 112;
const PER_TENSOR: u64 = 240;
const PER_DIMENSION: u64 = 48;

/// An element of a list. Lists double when they are full: at that moment, the old and the new list take up to three
/// times the elements. The first element allocates room for four.
fn in_list(size: usize, is_first: bool) -> u64 {
    let size = size as u64;
    if is_first { 4 * size + ALLOCATION } else { 3 * size }
}

// ---- the walk

/// The wire types that ONNX files use.
const NUMBER: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// Walks a message of the given kind and claims what decoding will take.
pub(super) fn scan(kind: Kind, bytes: &[u8], allowance: &mut Allowance) -> Result<(), OnnxError> {
    Walk { allowance, nested: 0 }.message(kind, bytes).map_err(|error| {
        let at = if kind == Kind::Model { "the model" } else { "the tensor" };
        if place_of(&error).is_some_and(str::is_empty) { inside(error, at.into()) } else { error }
    })
}

struct Walk<'a> {
    allowance: &'a mut Allowance,
    /// The number of nested graphs around the message.
    nested: usize,
}

impl Walk<'_> {
    fn message(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), OnnxError> {
        let mut reader = Reader { rest: bytes };
        let mut seen = 0u32;
        let mut nodes = 0;
        while let Some((tag, wire)) = reader.key()? {
            let field = Field::of(kind, tag);
            if !field.accepts(wire) {
                return Err(wrong(unexpected(field, tag, wire)));
            }
            let (content, length) = reader.content(wire)?;

            // A truncated message is walked as well: the innermost problem has the most exact place.
            let walked = match field {
                Field::One(inner) | Field::Boxed(inner) | Field::Many(inner) => self.message(inner, content),
                Field::NestedGraph => self.nested_graph(content),
                Field::Text | Field::ValueName | Field::ValueNames if length == content.len() as u64 => {
                    std::str::from_utf8(content).map(|_| ()).map_err(|_| wrong(format!("field {tag} is not UTF-8")))
                }
                _ => Ok(()),
            };
            walked.map_err(|error| inside_message(error, kind, tag, content, nodes))?;
            if length > content.len() as u64 {
                let has = content.len();
                let problem = format!("field {tag} has a length of {length} bytes, but {has} follow: it is truncated");
                return Err(inside_message(wrong(problem), kind, tag, content, nodes));
            }

            if self.nested == 0 {
                let is_first = tag < 32 && seen & (1 << tag) == 0;
                self.allowance
                    .claim(field.needs(content, is_first), String::new)
                    .map_err(|error| inside_message(error, kind, tag, content, nodes))?;
            }
            seen |= 1u32.checked_shl(tag.min(32) as u32).unwrap_or(0);
            nodes += usize::from(matches!(field, Field::Many(Kind::Node)));
        }
        Ok(())
    }

    fn nested_graph(&mut self, bytes: &[u8]) -> Result<(), OnnxError> {
        if self.nested == MOST_NESTED_GRAPHS {
            return Err(wrong(format!("its graphs are nested more than {MOST_NESTED_GRAPHS} deep")));
        }
        self.nested += 1;
        let walked = self.message(Kind::Graph, bytes);
        self.nested -= 1;
        walked
    }
}

// ---- the wire format

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The number and the wire type of the next field.
    fn key(&mut self) -> Result<Option<(u64, u64)>, OnnxError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        if key > u64::from(u32::MAX) || key >> 3 == 0 {
            return Err(wrong(format!("{key} is not the key of a field")));
        }
        Ok(Some((key >> 3, key & 7)))
    }

    /// The content of a field, and its declared length, which is more than the content if the bytes end early.
    fn content(&mut self, wire: u64) -> Result<(&'a [u8], u64), OnnxError> {
        let length = match wire {
            NUMBER => {
                let before = self.rest;
                self.varint()?;
                let length = before.len() - self.rest.len();
                return Ok((&before[..length], length as u64));
            }
            EIGHT_BYTES => 8,
            FOUR_BYTES => 4,
            LENGTH => self.varint()?,
            other => return Err(wrong(format!("{other} is not a wire type of ONNX files"))),
        };
        let has = usize::try_from(length).unwrap_or(usize::MAX).min(self.rest.len());
        let (content, rest) = self.rest.split_at(has);
        self.rest = rest;
        Ok((content, length))
    }

    fn varint(&mut self) -> Result<u64, OnnxError> {
        let mut value = 0u64;
        for (at, byte) in self.rest.iter().copied().enumerate().take(10) {
            // The tenth byte has one bit of the number.
            if at == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        if self.rest.len() < 10 {
            Err(wrong(format!("a number is truncated after {} bytes", self.rest.len())))
        } else {
            Err(wrong("a number has more than 64 bits"))
        }
    }
}

// ---- errors

fn wrong(problem: impl Into<String>) -> OnnxError {
    OnnxError::Malformed { at: String::new(), problem: problem.into() }
}

fn unexpected(field: Field, tag: u64, wire: u64) -> String {
    match field {
        Field::Packed => format!("the numbers in field {tag} are not packed; save the model again with `raw_data`"),
        _ => format!("field {tag} has the wire type {wire}, which does not match its content"),
    }
}

fn place_of(error: &OnnxError) -> Option<&str> {
    match error {
        OnnxError::Malformed { at, .. } | OnnxError::TooManyParts { at, .. } => Some(at),
        _ => None,
    }
}

/// The error with the place around its own place.
fn inside(mut error: OnnxError, around: String) -> OnnxError {
    const MOST: usize = 200;
    if let OnnxError::Malformed { at, .. } | OnnxError::TooManyParts { at, .. } = &mut error {
        *at = match at.len() {
            0 => around,
            1..MOST => format!("{around}, {at}"),
            _ => format!("{around}, ..."),
        };
    }
    error
}

/// The error of a field, with the name of the node, tensor or value that the field contains.
fn inside_message(error: OnnxError, parent: Kind, tag: u64, content: &[u8], nodes: usize) -> OnnxError {
    let name = |tag| text_of(content, tag);
    let around = match (parent, tag) {
        (Kind::Graph, 1) => node_place(&name(3), &name(4), nodes),
        (Kind::Graph, 5) => format!("weight {}", quoted(&name(8))),
        (Kind::Graph, 11) => format!("input {}", quoted(&name(1))),
        (Kind::Graph, 12) => format!("output {}", quoted(&name(1))),
        (Kind::Node, 5) => format!("attribute {}", quoted(&name(1))),
        (Kind::Model, 7) if place_of(&error).is_some_and(str::is_empty) => "graph".into(),
        _ => return error,
    };
    inside(error, around)
}

/// A text field of a message that may be malformed.
fn text_of(bytes: &[u8], wanted: u64) -> String {
    let mut reader = Reader { rest: bytes };
    while let Ok(Some((tag, wire))) = reader.key() {
        let Ok((content, _)) = reader.content(wire) else { break };
        if tag == wanted && wire == LENGTH {
            return String::from_utf8_lossy(&content[..content.len().min(LONGEST_NAME)]).into_owned();
        }
    }
    String::new()
}
