//! The settings of a node, with typed access.
//!
//! A missing attribute is not an error here, because ONNX defines defaults. A present attribute of another type is an
//! error that names the node and the attribute.

use std::sync::Arc;

use bytes::Bytes;

use super::error::{OnnxError, quoted};
use super::proto::AttributeProto;
use super::weight::{Weight, WeightReader};

/// The attributes of one node, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Attributes {
    /// The node's place, for errors.
    place: Arc<str>,
    list: Vec<(String, AttributeValue)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Floats(Vec<f32>),
    /// Text is usually UTF-8, but the format does not require it.
    Text(Bytes),
    Tensor(Box<Weight>),
    /// One or more graphs, as in `If` and `Loop`.
    Graph,
    /// A type that no supported op has. Its number is that of `AttributeProto.AttributeType`.
    Other(i32),
}

impl AttributeValue {
    fn type_name(&self) -> &'static str {
        match self {
            AttributeValue::Int(_) => "an integer",
            AttributeValue::Ints(_) => "a list of integers",
            AttributeValue::Float(_) => "a float",
            AttributeValue::Floats(_) => "a list of floats",
            AttributeValue::Text(_) => "text",
            AttributeValue::Tensor(_) => "a tensor",
            AttributeValue::Graph => "a graph",
            AttributeValue::Other(_) => "of an unsupported type",
        }
    }
}

impl Attributes {
    pub fn int(&self, name: &str) -> Result<Option<i64>, OnnxError> {
        self.typed(name, "an integer", |value| if let AttributeValue::Int(int) = value { Some(*int) } else { None })
    }

    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, OnnxError> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    pub fn ints(&self, name: &str) -> Result<Option<&[i64]>, OnnxError> {
        self.typed(name, "a list of integers", |value| {
            if let AttributeValue::Ints(ints) = value { Some(&ints[..]) } else { None }
        })
    }

    pub fn float(&self, name: &str) -> Result<Option<f32>, OnnxError> {
        self.typed(name, "a float", |value| if let AttributeValue::Float(float) = value { Some(*float) } else { None })
    }

    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, OnnxError> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    pub fn floats(&self, name: &str) -> Result<Option<&[f32]>, OnnxError> {
        self.typed(name, "a list of floats", |value| {
            if let AttributeValue::Floats(floats) = value { Some(&floats[..]) } else { None }
        })
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, OnnxError> {
        self.typed(name, "UTF-8 text", |value| {
            if let AttributeValue::Text(text) = value { std::str::from_utf8(text).ok() } else { None }
        })
    }

    pub fn text_or<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str, OnnxError> {
        Ok(self.text(name)?.unwrap_or(default))
    }

    pub fn tensor(&self, name: &str) -> Result<Option<&Weight>, OnnxError> {
        self.typed(
            name,
            "a tensor",
            |value| if let AttributeValue::Tensor(tensor) = value { Some(&**tensor) } else { None },
        )
    }

    /// Whether a graph is nested in the node.
    pub fn has_graph(&self) -> bool {
        self.list.iter().any(|(_, value)| *value == AttributeValue::Graph)
    }

    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.list.iter().find(|(has, _)| has == name).map(|(_, value)| value)
    }

    /// All attributes, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &AttributeValue)> {
        self.list.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How errors name the node.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn typed<'a, T>(
        &'a self,
        name: &str,
        wants: &'static str,
        of: impl Fn(&'a AttributeValue) -> Option<T>,
    ) -> Result<Option<T>, OnnxError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let found = of(value).map(Some);
        found.ok_or_else(|| {
            let at = format!("{}, attribute {}", self.place, quoted(name));
            OnnxError::WrongType { at, has: value.type_name().into(), wants }
        })
    }

    pub(super) fn read(
        list: Vec<AttributeProto>,
        place: Arc<str>,
        weights: &mut WeightReader<'_>,
    ) -> Result<Attributes, OnnxError> {
        if let Some(problem) = wrong_names(&list) {
            return Err(OnnxError::malformed(&place, problem));
        }
        let mut attributes = Attributes { place, list: Vec::with_capacity(list.len()) };
        for attribute in list {
            let name = attribute.name.clone();
            let at = || format!("{}, attribute {}", attributes.place, quoted(&name));
            let value = value_of(attribute, &at, weights)?;
            attributes.list.push((name, value));
        }
        Ok(attributes)
    }

    /// Removes an attribute and returns its value.
    pub(super) fn take(&mut self, name: &str) -> Option<AttributeValue> {
        let at = self.list.iter().position(|(has, _)| has == name)?;
        Some(self.list.remove(at).1)
    }
}

/// Why the names of the attributes are refused. They are sorted, because a hostile node has 100,000 of them.
fn wrong_names(list: &[AttributeProto]) -> Option<String> {
    let mut names: Vec<&str> = list.iter().map(|attribute| attribute.name.as_str()).collect();
    names.sort_unstable();
    if names.first() == Some(&"") {
        return Some("it has an attribute without a name".into());
    }
    let twice = names.windows(2).find(|pair| pair[0] == pair[1])?[0];
    Some(format!("it has the attribute {} twice", quoted(twice)))
}

fn value_of(
    attribute: AttributeProto,
    at: &impl Fn() -> String,
    weights: &mut WeightReader<'_>,
) -> Result<AttributeValue, OnnxError> {
    let kind = if attribute.kind == 0 { kind_of(&attribute) } else { attribute.kind };
    let missing = |what| OnnxError::malformed(at(), format!("its type is {what}, but it has none"));
    // Some writers leave out numbers that are 0 and text that is empty.
    Ok(match kind {
        1 => AttributeValue::Float(attribute.f.unwrap_or_default()),
        2 => AttributeValue::Int(attribute.i.unwrap_or_default()),
        3 => AttributeValue::Text(attribute.s.unwrap_or_default()),
        4 => {
            let tensor = attribute.t.ok_or_else(|| missing("tensor"))?;
            AttributeValue::Tensor(Box::new(weights.read(*tensor, &at())?))
        }
        5 | 10 => AttributeValue::Graph,
        6 => AttributeValue::Floats(attribute.floats),
        7 => AttributeValue::Ints(attribute.ints),
        other => AttributeValue::Other(other),
    })
}

/// The type of an attribute that does not state it, as in files before version 2 of the format.
fn kind_of(attribute: &AttributeProto) -> i32 {
    let present = [
        (attribute.f.is_some(), 1),
        (attribute.i.is_some(), 2),
        (attribute.s.is_some(), 3),
        (attribute.t.is_some(), 4),
        (attribute.g.is_some() || !attribute.graphs.is_empty(), 5),
        (!attribute.floats.is_empty(), 6),
        (!attribute.ints.is_empty(), 7),
    ];
    present.iter().find(|(present, _)| *present).map_or(0, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::super::allowance::Allowance;
    use super::super::external::ExternalFiles;
    use super::*;

    fn read(list: Vec<AttributeProto>) -> Result<Attributes, OnnxError> {
        let (mut external, mut allowance) = (ExternalFiles::of(None), Allowance::for_file(0));
        let mut weights = WeightReader { external: &mut external, allowance: &mut allowance };
        Attributes::read(list, "node `n` (Op)".into(), &mut weights)
    }

    fn named(name: &str) -> AttributeProto {
        AttributeProto { name: name.into(), ..Default::default() }
    }

    #[test]
    fn attributes_have_the_type_that_they_state_or_else_contain() {
        let attributes = read(vec![
            AttributeProto { i: Some(3), kind: 2, ..named("axis") },
            AttributeProto { f: Some(0.5), ..named("alpha") },
            AttributeProto { kind: 7, ..named("pads") },
            AttributeProto { s: Some("SAME".into()), kind: 3, ..named("auto_pad") },
            AttributeProto { g: Some(super::super::proto::Undecoded {}), ..named("body") },
        ])
        .unwrap();
        assert_eq!(attributes.int("axis").unwrap(), Some(3));
        assert_eq!(attributes.int_or("other", 7).unwrap(), 7);
        assert_eq!(attributes.float_or("alpha", 0.0).unwrap().to_bits(), 0.5f32.to_bits());
        assert_eq!(attributes.ints("pads").unwrap(), Some(&[][..]));
        assert_eq!(attributes.text_or("auto_pad", "NOTSET").unwrap(), "SAME");
        assert!(attributes.has_graph());
        assert_eq!(attributes.tensor("value").unwrap(), None);
    }

    #[test]
    fn another_type_is_an_error_that_names_node_and_attribute() {
        let attributes = read(vec![AttributeProto { i: Some(3), ..named("axis") }]).unwrap();
        let error = attributes.ints("axis").unwrap_err().to_string();
        assert_eq!(error, "node `n` (Op), attribute `axis` is an integer, expected a list of integers");
    }

    #[test]
    fn attributes_without_a_name_or_with_the_same_name_are_refused() {
        let text = |list| read(list).unwrap_err().to_string();
        assert!(text(vec![named("")]).ends_with("node `n` (Op): it has an attribute without a name"));
        assert!(text(vec![named("a"), named("a")]).ends_with("node `n` (Op): it has the attribute `a` twice"));
        let tensor = AttributeProto { kind: 4, ..named("value") };
        assert!(text(vec![tensor]).contains("attribute `value`: its type is tensor, but it has none"));
    }
}
