//! The header of a safetensors file: what lies where behind it.
//!
//! Owns reading, checking and writing it. The format: eight bytes of length, then JSON of that length, an object of
//! `name: {dtype, shape, data_offsets}` and perhaps `__metadata__`, then the values without gaps.
//! Does not know tensors: types are names here, and shapes are lists.
//!
//! Always: in a header that was read, every tensor lies inside the file, none overlap, nothing between them is unclaimed,
//! and where its type is known its shape fills its place.
//!
//! Own code, and not the `safetensors` crate (0.8.0), which tests compare it with: that takes a name twice without a
//! word, calls an unknown type bad JSON, and adds offsets of a hostile header up until they wrap.

use std::collections::BTreeMap;

use super::json::{Reader, Unexpected, push_string};
use super::kinds::bits;

/// Bytes that say how long the header is.
pub(super) const LENGTH_BYTES: usize = 8;
/// The longest header, as everywhere else.
pub(super) const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The name that is not a tensor's.
pub(super) const METADATA: &str = "__metadata__";
/// More axes than any file has: lists in a header stay short.
const MAX_AXES: usize = 64;

/// Why a file is not safetensors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Too short to have a header.
    #[error("it has {has} bytes, and a safetensors file has 8 and a header at least")]
    TooShort {
        /// How many.
        has: u64,
    },
    /// The header would end behind the file.
    #[error(
        "its header is said to have {says} bytes, and {has} are left: it is cut short, or no safetensors file at all"
    )]
    HeaderBeyondEnd {
        /// What the first eight bytes say.
        says: u64,
        /// What there is.
        has: u64,
    },
    /// The header is longer than any should be.
    #[error("its header is said to have {says} bytes, {most} is the most: it is no safetensors file")]
    HeaderTooLong {
        /// What the first eight bytes say.
        says: u64,
        /// What is allowed.
        most: u64,
    },
    /// The header is not text.
    #[error("its header is no text from byte {at} on: it is no safetensors file")]
    NotText {
        /// Where that shows.
        at: usize,
    },
    /// The header is not what it should be.
    #[error("byte {at} of its header: {wanted} is expected")]
    NotJson {
        /// How many bytes into the header.
        at: usize,
        /// What should be there.
        wanted: &'static str,
    },
    /// A field is missing.
    #[error("`{name}` has no `{field}`; it needs dtype, shape and data_offsets")]
    Missing {
        /// Of which tensor.
        name: String,
        /// Which.
        field: &'static str,
    },
    /// A field that does not belong there, or comes twice.
    #[error("`{name}` has a field `{field}` too many; it needs dtype, shape and data_offsets, each once")]
    Superfluous {
        /// Of which tensor.
        name: String,
        /// Which.
        field: String,
    },
    /// Too many axes for anybody.
    #[error("`{name}` has more than {most} axes")]
    TooManyAxes {
        /// Which tensor.
        name: String,
        /// What is allowed.
        most: usize,
    },
    /// One name twice.
    #[error("`{name}` is there twice")]
    Twice {
        /// Which name.
        name: String,
    },
    /// A tensor ends before it starts.
    #[error("`{name}` starts at byte {start} and ends at {end}")]
    Backwards {
        /// Which tensor.
        name: String,
        /// Where it starts.
        start: u64,
        /// Where it ends.
        end: u64,
    },
    /// A tensor ends behind the file.
    #[error("`{name}` ends at byte {end} of the values, of which there are {has}: the file is cut short")]
    BeyondEnd {
        /// Which tensor.
        name: String,
        /// Where it ends.
        end: u64,
        /// What there is.
        has: u64,
    },
    /// Two tensors in one place.
    #[error("`{name}` starts at byte {start}, before `{before}` ends at {end}")]
    Overlap {
        /// Which tensor.
        name: String,
        /// Where it starts.
        start: u64,
        /// The one before it.
        before: String,
        /// Where that ends.
        end: u64,
    },
    /// Bytes that belong to nothing.
    #[error("bytes {start} to {end} of the values belong to no tensor")]
    Unclaimed {
        /// The first.
        start: u64,
        /// Behind the last.
        end: u64,
    },
    /// As many bytes as do not fit the shape.
    #[error("`{name}` is {kind} of {shape:?} and has {has} bytes, which do not fit")]
    WrongSize {
        /// Which tensor.
        name: String,
        /// Its type.
        kind: String,
        /// Its lengths.
        shape: Vec<u64>,
        /// What it has.
        has: u64,
    },
}

impl From<Unexpected> for HeaderError {
    fn from(Unexpected { at, wanted }: Unexpected) -> HeaderError {
        HeaderError::NotJson { at, wanted }
    }
}

/// What lies where.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) spans: BTreeMap<String, Span>,
    pub(super) metadata: BTreeMap<String, String>,
    /// Where the values start in the file.
    pub(super) values_at: u64,
}

/// One tensor in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    /// Its type, as it is written.
    pub(super) kind: String,
    pub(super) shape: Vec<u64>,
    /// From the start of the values.
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Header {
    /// Reads the header of a file of so many bytes and checks it against that. `fetch` reads from a byte on.
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

    /// The header as it stands in a file, its length before it. Filled up so that values start at a multiple of 8.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::from("{");
        for (at, (key, value)) in self.metadata.iter().enumerate() {
            text.push_str(if at == 0 { "\"__metadata__\":{" } else { "," });
            push_string(&mut text, key);
            text.push(':');
            push_string(&mut text, value);
        }
        if !self.metadata.is_empty() {
            text.push('}');
        }
        for (name, Span { kind, shape, start, end }) in &self.spans {
            if text.len() > 1 {
                text.push(',');
            }
            push_string(&mut text, name);
            text.push_str(":{\"dtype\":");
            push_string(&mut text, kind);
            let shape = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let rest = format!(",\"shape\":[{shape}],\"data_offsets\":[{start},{end}]}}");
            text.push_str(&rest);
        }
        text.push('}');
        let length = text.len().next_multiple_of(LENGTH_BYTES);
        let mut bytes = Vec::with_capacity(LENGTH_BYTES + length);
        bytes.extend((length as u64).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.resize(LENGTH_BYTES + length, b' ');
        bytes
    }

    /// Whether everything lies inside, apart, and without gaps, and fills its place.
    fn check(&self, has: u64) -> Result<(), HeaderError> {
        let mut spans: Vec<(&String, &Span)> = self.spans.iter().collect();
        spans.sort_by_key(|(_, span)| (span.start, span.end));
        let (mut at, mut before) = (0, "");
        for (name, span) in spans {
            let Span { start, end, .. } = *span;
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

impl Span {
    /// Whether its shape fills its place. Of a type that nobody knows, nothing can be said.
    fn fits(&self) -> bool {
        let Some(bits) = bits(&self.kind) else { return true };
        let wanted = self.shape.iter().try_fold(bits, |bits, length| bits.checked_mul(*length));
        wanted.is_some_and(|wanted| Some(wanted) == (self.end - self.start).checked_mul(8))
    }
}

fn read_object(text: &str) -> Result<Header, HeaderError> {
    let mut header = Header::default();
    let mut reader = Reader::new(text);
    if !text.starts_with('{') {
        return Err(reader.unexpected("`{`, as in every safetensors file,").into());
    }
    let mut metadata_seen = false;
    members(&mut reader, |reader, name| {
        let twice = if name == METADATA {
            read_metadata(reader, &mut header.metadata)?;
            std::mem::replace(&mut metadata_seen, true)
        } else {
            let span = read_span(reader, &name)?;
            header.spans.insert(name.clone(), span).is_some()
        };
        if twice { Err(HeaderError::Twice { name }) } else { Ok(()) }
    })?;
    if reader.at_end() { Ok(header) } else { Err(reader.unexpected("the end").into()) }
}

fn read_metadata(reader: &mut Reader<'_>, into: &mut BTreeMap<String, String>) -> Result<(), HeaderError> {
    members(reader, |reader, key| {
        let value = reader.string()?;
        if into.insert(key.clone(), value).is_some() { Err(HeaderError::Twice { name: key }) } else { Ok(()) }
    })
}

fn read_span(reader: &mut Reader<'_>, name: &str) -> Result<Span, HeaderError> {
    let (mut kind, mut shape, mut offsets) = (None, None, None);
    members(reader, |reader, field| {
        let twice = match field.as_str() {
            "dtype" => kind.replace(reader.string()?).is_some(),
            "shape" => shape.replace(read_list(reader, name)?).is_some(),
            "data_offsets" => {
                let at = reader.unexpected("a list of two numbers");
                let list = read_list(reader, name)?;
                let pair: [u64; 2] = list.try_into().map_err(|_| at)?;
                offsets.replace(pair).is_some()
            }
            _ => true,
        };
        if twice { Err(HeaderError::Superfluous { name: name.to_owned(), field }) } else { Ok(()) }
    })?;
    let missing = |field| HeaderError::Missing { name: name.to_owned(), field };
    let [start, end] = offsets.ok_or_else(|| missing("data_offsets"))?;
    Ok(Span { kind: kind.ok_or_else(|| missing("dtype"))?, shape: shape.ok_or_else(|| missing("shape"))?, start, end })
}

fn read_list(reader: &mut Reader<'_>, name: &str) -> Result<Vec<u64>, HeaderError> {
    let mut list = Vec::new();
    reader.expect(b'[', "a list")?;
    if reader.eat(b']') {
        return Ok(list);
    }
    loop {
        if list.len() == MAX_AXES {
            return Err(HeaderError::TooManyAxes { name: name.to_owned(), most: MAX_AXES });
        }
        list.push(reader.number()?);
        if !reader.eat(b',') {
            reader.expect(b']', "`,` or `]`")?;
            return Ok(list);
        }
    }
}

/// Goes through an object, which hands each name over with the reader before its value.
fn members<'a>(
    reader: &mut Reader<'a>,
    mut member: impl FnMut(&mut Reader<'a>, String) -> Result<(), HeaderError>,
) -> Result<(), HeaderError> {
    reader.expect(b'{', "an object")?;
    if reader.eat(b'}') {
        return Ok(());
    }
    loop {
        let name = reader.string()?;
        reader.expect(b':', "`:`")?;
        member(reader, name)?;
        if !reader.eat(b',') {
            reader.expect(b'}', "`,` or `}`")?;
            return Ok(());
        }
    }
}
