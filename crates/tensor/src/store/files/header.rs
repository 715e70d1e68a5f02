//! The header of a safetensors file: reading, checking and writing.
//!
//! The format: eight bytes with the length of the JSON, then the JSON, then the values without gaps. The JSON is an
//! object of `name: {dtype, shape, data_offsets}`, with an optional `__metadata__`. In this module, types are names and
//! shapes are lists; the module `file` converts them to the types and shapes of tensors.
//!
//! Invariants: in a header that was read, every tensor is inside the file, no two tensors overlap, and every byte after
//! the header belongs to a tensor. If the type of a tensor is known, the type and the shape match the length in bytes.
//!
//! The text is read with `serde_json` and not with the `safetensors` crate (0.8.0), which the tests use for comparison.
//! That crate accepts duplicate names, reports an unknown type as bad JSON, and lets sums of the offsets in a hostile
//! header overflow.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::kinds::bits;

/// Size of the field that holds the header's length.
pub(super) const LENGTH_BYTES: usize = 8;
/// The maximum length of a header, the same as in other implementations.
pub(super) const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The key in the header that is not a tensor.
pub(super) const METADATA: &str = "__metadata__";
/// The maximum number of axes, more than any real file has. This bounds the length of the lists in a header.
const MAX_AXES: usize = 64;

/// The reason why a file is not valid safetensors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("it has {has} bytes, too few for the header of a safetensors file and its length field (8 bytes)")]
    TooShort { has: u64 },
    #[error(
        "header length {says} exceeds the {has} bytes that follow: the file is truncated, or not a safetensors file"
    )]
    HeaderBeyondEnd { says: u64, has: u64 },
    #[error("header length {says} exceeds the limit of {most} bytes: this is not a safetensors file")]
    HeaderTooLong { says: u64, most: u64 },
    /// The header is not UTF-8.
    #[error("its header is not UTF-8 at byte {at}: this is not a safetensors file")]
    NotText { at: usize },
    /// The header is not JSON, or not of the right structure.
    #[error("byte {at} of its header: {problem}")]
    NotJson { at: usize, problem: String },
    #[error("`{name}` has no `{field}`; it needs dtype, shape and data_offsets")]
    Missing { name: String, field: &'static str },
    /// An unknown or duplicate field.
    #[error("`{name}` has an unknown or duplicate field `{field}`; it needs dtype, shape and data_offsets, each once")]
    Superfluous { name: String, field: String },
    #[error("`{name}` has more than {most} axes")]
    TooManyAxes { name: String, most: usize },
    #[error("`{name}` occurs twice")]
    Twice { name: String },
    #[error("`{name}` starts at byte {start}, after its end at {end}")]
    Backwards { name: String, start: u64, end: u64 },
    #[error("`{name}` ends at byte {end}, but the file has {has} bytes of values: the file is truncated")]
    BeyondEnd { name: String, end: u64, has: u64 },
    #[error("`{name}` starts at byte {start}, before `{before}` ends at {end}")]
    Overlap { name: String, start: u64, before: String, end: u64 },
    #[error("bytes {start} to {end} of the values belong to no tensor")]
    Unclaimed { start: u64, end: u64 },
    /// The length in bytes does not match the type and shape.
    #[error("`{name}` is {kind} of {shape:?}, which does not match its {has} bytes")]
    WrongSize { name: String, kind: String, shape: Vec<u64>, has: u64 },
}

/// The checked header of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) spans: BTreeMap<String, TensorSpan>,
    pub(super) metadata: BTreeMap<String, String>,
    /// Offset of the values in the file.
    pub(super) values_at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TensorSpan {
    /// The type as written in the file.
    pub(super) kind: String,
    pub(super) shape: Vec<u64>,
    /// Relative to the start of the values, like `end`.
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Header {
    /// Reads the header of a file of `file_bytes` bytes and checks it against that size. `fetch` fills a slice with
    /// bytes of the file, from an offset on.
    pub(super) fn read<E: From<HeaderError>>(
        file_bytes: u64,
        fetch: impl Fn(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Header, E> {
        let mut length = [0; LENGTH_BYTES];
        let has = file_bytes.checked_sub(LENGTH_BYTES as u64).ok_or(HeaderError::TooShort { has: file_bytes })?;
        fetch(0, &mut length)?;
        let says = u64::from_le_bytes(length);
        if says > has {
            return Err(HeaderError::HeaderBeyondEnd { says, has }.into());
        }
        if says > MAX_HEADER_BYTES {
            return Err(HeaderError::HeaderTooLong { says, most: MAX_HEADER_BYTES }.into());
        }
        let mut text = vec![0; says as usize];
        fetch(LENGTH_BYTES as u64, &mut text)?;
        let text = std::str::from_utf8(&text).map_err(|error| HeaderError::NotText { at: error.valid_up_to() })?;
        let mut header = read_object(text)?;
        header.values_at = LENGTH_BYTES as u64 + says;
        header.check(has - says)?;
        Ok(header)
    }

    /// The encoded header, preceded by its length and padded so that the values start at a multiple of 8.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("maps of strings and numbers are JSON");
        let length = text.len().next_multiple_of(LENGTH_BYTES);
        let mut bytes = Vec::with_capacity(LENGTH_BYTES + length);
        bytes.extend((length as u64).to_le_bytes());
        bytes.extend(text);
        bytes.resize(LENGTH_BYTES + length, b' ');
        bytes
    }

    /// Checks that all spans are inside the file, adjacent without overlap, and match their shapes.
    fn check(&self, has: u64) -> Result<(), HeaderError> {
        let mut spans: Vec<(&String, &TensorSpan)> = self.spans.iter().collect();
        spans.sort_by_key(|(_, span)| (span.start, span.end));
        let (mut at, mut before) = (0, "");
        for (name, span) in spans {
            let TensorSpan { start, end, .. } = *span;
            if start > end {
                return Err(HeaderError::Backwards { name: name.clone(), start, end });
            }
            if end > has {
                return Err(HeaderError::BeyondEnd { name: name.clone(), end, has });
            }
            if start < at {
                return Err(HeaderError::Overlap { name: name.clone(), start, before: before.to_owned(), end: at });
            }
            if start > at {
                return Err(HeaderError::Unclaimed { start: at, end: start });
            }
            if !span.fits() {
                let (kind, shape) = (span.kind.clone(), span.shape.clone());
                return Err(HeaderError::WrongSize { name: name.clone(), kind, shape, has: end - start });
            }
            (at, before) = (end, name);
        }
        if at < has { Err(HeaderError::Unclaimed { start: at, end: has }) } else { Ok(()) }
    }
}

impl TensorSpan {
    /// True if the shape matches the length in bytes, or if the type is unknown.
    fn fits(&self) -> bool {
        let Some(bits) = bits(&self.kind) else { return true };
        let wanted = self.shape.iter().try_fold(bits, |bits, length| bits.checked_mul(*length));
        wanted.is_some_and(|wanted| Some(wanted) == (self.end - self.start).checked_mul(8))
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if !self.metadata.is_empty() {
            map.serialize_entry(METADATA, &self.metadata)?;
        }
        for (name, span) in &self.spans {
            map.serialize_entry(name, span)?;
        }
        map.end()
    }
}

impl Serialize for TensorSpan {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        map.serialize_entry("dtype", &self.kind)?;
        map.serialize_entry("shape", &self.shape)?;
        map.serialize_entry("data_offsets", &[self.start, self.end])?;
        map.end()
    }
}

fn read_object(text: &str) -> Result<Header, HeaderError> {
    if !text.starts_with('{') {
        let problem = "expected `{`, as in every safetensors file".to_owned();
        return Err(HeaderError::NotJson { at: 0, problem });
    }
    let mut refused = None;
    let mut json = serde_json::Deserializer::from_str(text);
    let header = HeaderSeed { refused: &mut refused }.deserialize(&mut json);
    let header = header.and_then(|header| json.end().map(|()| header));
    header.map_err(|error| refused.unwrap_or_else(|| not_json(text, &error)))
}

/// Converts an error of `serde_json`. The line and column of the error become an offset into the header. The byte at
/// that offset is the unexpected byte, or the end of a value of the wrong type.
fn not_json(text: &str, error: &serde_json::Error) -> HeaderError {
    let unread = usize::from(error.is_syntax() && error.column() > 0);
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = lines.map(str::len).sum::<usize>() + error.column() - unread;
    let problem = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    HeaderError::NotJson { at, problem: problem.strip_suffix(&place).unwrap_or(&problem).to_owned() }
}

// The seeds below read the three kinds of objects in a header, and the list of axes. Errors of serde are text, so typed
// errors are passed through `refused`.

struct HeaderSeed<'a> {
    refused: &'a mut Option<HeaderError>,
}

struct MetadataSeed<'a> {
    refused: &'a mut Option<HeaderError>,
}

struct SpanSeed<'a> {
    name: &'a str,
    refused: &'a mut Option<HeaderError>,
}

struct AxesSeed<'a> {
    name: &'a str,
    refused: &'a mut Option<HeaderError>,
}

macro_rules! seed {
    ($seed:ident, $value:ty, $deserialize:ident) => {
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<$value, D::Error> {
                from.$deserialize(self)
            }
        }
    };
}

seed!(HeaderSeed, Header, deserialize_map);
seed!(MetadataSeed, BTreeMap<String, String>, deserialize_map);
seed!(SpanSeed, TensorSpan, deserialize_map);
seed!(AxesSeed, Vec<u64>, deserialize_seq);

/// Stores the typed error. The text that serde propagates is not shown.
fn refuse<T, E: serde::de::Error>(refused: &mut Option<HeaderError>, problem: HeaderError) -> Result<T, E> {
    let error = E::custom(&problem);
    *refused = Some(problem);
    Err(error)
}

impl<'de> Visitor<'de> for HeaderSeed<'_> {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut header = Header::default();
        let mut metadata_seen = false;
        while let Some(name) = map.next_key::<String>()? {
            let refused = &mut *self.refused;
            let twice = if name == METADATA {
                header.metadata = map.next_value_seed(MetadataSeed { refused })?;
                std::mem::replace(&mut metadata_seen, true)
            } else {
                let span = map.next_value_seed(SpanSeed { name: &name, refused })?;
                header.spans.insert(name.clone(), span).is_some()
            };
            if twice {
                return refuse(self.refused, HeaderError::Twice { name });
            }
        }
        Ok(header)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if metadata.insert(name.clone(), value).is_some() {
                return refuse(self.refused, HeaderError::Twice { name });
            }
        }
        Ok(metadata)
    }
}

impl<'de> Visitor<'de> for SpanSeed<'_> {
    type Value = TensorSpan;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TensorSpan, A::Error> {
        let SpanSeed { name, refused } = self;
        let (mut kind, mut shape, mut offsets) = (None, None, None);
        while let Some(field) = map.next_key::<String>()? {
            let twice = match field.as_str() {
                "dtype" => kind.replace(map.next_value::<String>()?).is_some(),
                "shape" => shape.replace(map.next_value_seed(AxesSeed { name, refused: &mut *refused })?).is_some(),
                "data_offsets" => offsets.replace(map.next_value::<[u64; 2]>()?).is_some(),
                _ => true,
            };
            if twice {
                return refuse(refused, HeaderError::Superfluous { name: name.to_owned(), field });
            }
        }
        let field = match (kind, shape, offsets) {
            (Some(kind), Some(shape), Some([start, end])) => return Ok(TensorSpan { kind, shape, start, end }),
            (_, _, None) => "data_offsets",
            (None, _, _) => "dtype",
            (_, None, _) => "shape",
        };
        refuse(refused, HeaderError::Missing { name: name.to_owned(), field })
    }
}

impl<'de> Visitor<'de> for AxesSeed<'_> {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of lengths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u64>, A::Error> {
        let mut axes = Vec::new();
        while let Some(length) = list.next_element()? {
            if axes.len() == MAX_AXES {
                return refuse(self.refused, HeaderError::TooManyAxes { name: self.name.to_owned(), most: MAX_AXES });
            }
            axes.push(length);
        }
        Ok(axes)
    }
}
