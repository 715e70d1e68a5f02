//! The header of a `.npy` file: a magic number, a version, a length, and a Python dictionary with the keys `descr`,
//! `fortran_order` and `shape`.
//!
//! `NumPy` evaluates the dictionary as Python. This reader accepts only what `NumPy` writes, in any order and spacing.

use std::fmt::Write as _;
use std::io::Read;

use vramp::model::onnx::OnnxType;

use super::{MAGIC, MOST_HEADER_BYTES, NpyError};

/// The types of arrays, with `NumPy`'s names after the byte order.
const TYPES: [(&str, OnnxType); 12] = [
    ("b1", OnnxType::Bool),
    ("i1", OnnxType::I8),
    ("u1", OnnxType::U8),
    ("i2", OnnxType::I16),
    ("u2", OnnxType::U16),
    ("i4", OnnxType::I32),
    ("u4", OnnxType::U32),
    ("i8", OnnxType::I64),
    ("u8", OnnxType::U64),
    ("f2", OnnxType::F16),
    ("f4", OnnxType::F32),
    ("f8", OnnxType::F64),
];

/// The values begin at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: OnnxType,
    pub(super) is_fortran: bool,
    pub(super) lengths: Vec<usize>,
}

impl Header {
    /// Reads the header of a file of this many bytes. Returns the header and its bytes.
    pub(super) fn read(file: &mut impl Read, file_bytes: u64) -> Result<(Header, u64), NpyError> {
        let mut start = Vec::new();
        file.take(8).read_to_end(&mut start)?;
        if start.starts_with(b"PK\x03\x04") {
            return Err(NpyError::Archive);
        }
        let Some([major, minor]) = start.strip_prefix(MAGIC) else { return Err(NpyError::NotNpy) };
        let length_bytes = match (*major, *minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            (major, minor) => return Err(NpyError::Version { major, minor }),
        };
        let mut length = [0; 4];
        let truncated = |_| NpyError::Truncated { has: file_bytes };
        file.read_exact(&mut length[..length_bytes]).map_err(truncated)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_HEADER_BYTES {
            return Err(NpyError::LongHeader { has: length });
        }
        let mut text = vec![0; length];
        file.read_exact(&mut text).map_err(truncated)?;
        Ok((Header::parse(&text)?, (8 + length_bytes + length) as u64))
    }

    fn parse(text: &[u8]) -> Result<Header, NpyError> {
        let mut scanner = Scanner { text, at: 0 };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        scanner.expect(b'{', "`{`")?;
        while !scanner.take(b'}') {
            let start = scanner.at;
            let key = scanner.text("a key in quotes, or `}`")?;
            scanner.expect(b':', "`:`")?;
            let is_new = match key {
                b"descr" => descr.replace(scanner.text("a type in quotes, such as '<f4'")?).is_none(),
                b"fortran_order" => fortran.replace(scanner.boolean()?).is_none(),
                b"shape" => shape.replace(scanner.lengths()?).is_none(),
                _ => false,
            };
            if !is_new {
                let expected = "each of the keys descr, fortran_order and shape once";
                return Err(NpyError::Header { at: start, expected });
            }
            if !scanner.take(b',') {
                scanner.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        let at = scanner.at;
        let (Some(descr), Some(is_fortran), Some(lengths)) = (descr, fortran, shape) else {
            return Err(NpyError::Header { at, expected: "the keys descr, fortran_order and shape before the end" });
        };
        scanner.space();
        if scanner.at < text.len() {
            return Err(NpyError::Header { at: scanner.at, expected: "nothing after `}`" });
        }
        Ok(Header { dtype: type_of(descr)?, is_fortran, lengths })
    }
}

/// The type with this name, such as `<f4`. Single bytes have no order.
fn type_of(descr: &[u8]) -> Result<OnnxType, NpyError> {
    let shown = || String::from_utf8_lossy(descr).chars().filter(|c| !c.is_control()).take(40).collect::<String>();
    let (order, name) = descr.split_first().ok_or_else(|| NpyError::Type { descr: String::new() })?;
    let found = TYPES.iter().find(|(known, _)| known.as_bytes() == name);
    match (order, found) {
        (b'<', Some((_, dtype))) => Ok(*dtype),
        (b'|' | b'>', Some((_, dtype))) if dtype.bytes() == Some(1) => Ok(*dtype),
        (b'>', Some(_)) => Err(NpyError::BigEndian { descr: shown() }),
        _ => Err(NpyError::Type { descr: shown() }),
    }
}

/// The complete header of a file, padded so that the values are aligned.
pub(super) fn written(dtype: OnnxType, lengths: &[usize]) -> Vec<u8> {
    let name = TYPES.iter().find(|(_, known)| *known == dtype).map_or("f4", |(name, _)| *name);
    let order = if dtype.bytes() == Some(1) { '|' } else { '<' };
    let mut shape = String::new();
    for length in lengths {
        let _ = write!(shape, "{length}, ");
    }
    // A tuple of one needs its comma, longer ones have none at the end.
    let shape = if lengths.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({shape}), }}");
    let before = MAGIC.len() + 4;
    let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
    text.extend(std::iter::repeat_n(' ', padding % ALIGNMENT));
    text.push('\n');
    let length = u16::try_from(text.len()).expect("a shape has few axes");
    [MAGIC.as_slice(), &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat()
}

/// Reads a dictionary from left to right.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Skips spaces, and this byte if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let is_next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.take(byte) { Ok(()) } else { Err(NpyError::Header { at: self.at, expected }) }
    }

    /// A string in single or double quotes, without escapes.
    fn text(&mut self, expected: &'static str) -> Result<&'a [u8], NpyError> {
        self.space();
        let rest = &self.text[self.at..];
        let problem = NpyError::Header { at: self.at, expected };
        let Some((quote @ (b'\'' | b'"'), inside)) = rest.split_first() else { return Err(problem) };
        let end = inside.iter().position(|byte| byte == quote).ok_or(problem)?;
        self.at += end + 2;
        Ok(&inside[..end])
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.space();
        for (word, value) in [(b"True".as_slice(), true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(NpyError::Header { at: self.at, expected: "True or False" })
    }

    /// A tuple of lengths. A tuple of one length ends in a comma.
    fn lengths(&mut self) -> Result<Vec<usize>, NpyError> {
        const EXPECTED: &str = "a tuple of lengths, such as (1, 3, 224, 224) or (10,)";
        self.expect(b'(', EXPECTED)?;
        let mut lengths = Vec::new();
        while !self.take(b')') {
            lengths.push(self.length()?);
            if self.take(b',') {
                continue;
            }
            let at = self.at;
            self.expect(b')', EXPECTED)?;
            if lengths.len() == 1 {
                return Err(NpyError::Header { at, expected: EXPECTED });
            }
            break;
        }
        Ok(lengths)
    }

    fn length(&mut self) -> Result<usize, NpyError> {
        self.space();
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
        let number = number.ok_or(NpyError::Header { at: self.at, expected: "a length below 2^64" })?;
        self.at += digits;
        // Python 2 marks long integers.
        self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
        Ok(number)
    }
}
