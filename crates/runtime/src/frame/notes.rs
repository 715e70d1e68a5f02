//! Notes: named values that a handler attaches to a frame, such as the exposure of a camera or the speed of an object.
//!
//! The notes of a frame are in host memory of the pool, also if the frame is on the device, so that attaching notes
//! allocates nothing in steady state. Frames that are made from a frame have its notes. If a handler has several inputs,
//! its frames have the notes of the lead.
//!
//! Invariants: keys are unique. Notes never change once a frame has them: a handler that adds a note writes a copy. A
//! frame has at most [`MOST_BYTES`] of notes.

use std::fmt;

use super::{HostLease, Meta, Payload};
use crate::frame::pool::{FramePool, Owner};

/// Room for the notes of one frame, keys included.
pub const MOST_BYTES: usize = 1024;
/// The longest key.
const MOST_KEY: usize = 64;
/// The longest text, in bytes.
const MOST_TEXT: usize = 255;
/// The longest list.
const MOST_LIST: usize = 16;

/// The length of all entries, before the first entry.
const HEADER: usize = 2;

const NUMBER: u8 = 0;
const TEXT: u8 = 1;
const LIST: u8 = 2;

/// The notes of a frame. Clones share the same memory.
#[derive(Clone)]
pub struct Notes {
    /// The length of the entries, then each entry: a key, the kind of its value, the value.
    memory: HostLease,
}

/// A value that is attached to a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Note<'a> {
    Number(f64),
    Text(&'a str),
    List(NoteList),
}

/// A short list of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoteList {
    values: [f64; MOST_LIST],
    count: usize,
}

/// A value of a note, apart from its frame.
#[derive(Debug, Clone, PartialEq)]
pub enum NoteValue {
    Number(f64),
    Text(String),
    List(Vec<f64>),
}

impl From<Note<'_>> for NoteValue {
    fn from(note: Note<'_>) -> NoteValue {
        match note {
            Note::Number(number) => NoteValue::Number(number),
            Note::Text(text) => NoteValue::Text(text.to_owned()),
            Note::List(list) => NoteValue::List(list.values().to_vec()),
        }
    }
}

impl NoteValue {
    /// The value as it is attached. Fails if a list is too long.
    pub fn as_note(&self) -> Result<Note<'_>, NoteError> {
        Ok(match self {
            NoteValue::Number(number) => Note::Number(*number),
            NoteValue::Text(text) => Note::Text(text),
            NoteValue::List(list) => Note::List(list.as_slice().try_into()?),
        })
    }
}

/// Why a value was not attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("`{key}` is not a key of a note; expected 1 to 64 letters, digits, `-`, `_` or `.`")]
    Key { key: String },
    #[error("the note `{key}` has {has} bytes of text, but {MOST_TEXT} is the maximum")]
    LongText { key: String, has: usize },
    #[error("a note is a list of {has} numbers, but {MOST_LIST} is the maximum")]
    LongList { has: usize },
    #[error("there is no room for the note `{key}`: a frame has at most {MOST_BYTES} bytes of notes")]
    Full { key: String },
    #[error("there is no memory for notes: {problem}")]
    NoMemory { problem: String },
}

impl From<f64> for Note<'_> {
    fn from(number: f64) -> Self {
        Note::Number(number)
    }
}

impl<'a> From<&'a str> for Note<'a> {
    fn from(text: &'a str) -> Self {
        Note::Text(text)
    }
}

impl From<NoteList> for Note<'_> {
    fn from(list: NoteList) -> Self {
        Note::List(list)
    }
}

impl TryFrom<&[f64]> for NoteList {
    type Error = NoteError;

    fn try_from(list: &[f64]) -> Result<NoteList, NoteError> {
        let mut values = [0.0; MOST_LIST];
        let room = values.get_mut(..list.len()).ok_or(NoteError::LongList { has: list.len() })?;
        room.copy_from_slice(list);
        Ok(NoteList { values, count: list.len() })
    }
}

impl NoteList {
    pub fn values(&self) -> &[f64] {
        &self.values[..self.count]
    }
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Number(number) => write!(f, "{number}"),
            Note::Text(text) => f.write_str(text),
            Note::List(list) => {
                for (at, value) in list.values().iter().enumerate() {
                    write!(f, "{}{value}", if at == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl Notes {
    /// Whether a note can have this key: 1 to 64 bytes of letters, digits, `-`, `_` and `.`.
    pub fn is_key(key: &str) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        !key.is_empty() && key.len() <= MOST_KEY && key.chars().all(is_word)
    }

    /// Calls `visit` with each key and value, in the order in which they were attached.
    pub fn visit(&self, mut visit: impl FnMut(&str, Note<'_>)) {
        let bytes = self.memory.read();
        Entries::of(stored(&bytes)).for_each(|(key, note, _)| visit(key, note));
    }

    /// Calls `read` with the value of a key; `None` if the frame has no such note.
    pub fn with<R>(&self, key: &str, read: impl FnOnce(Note<'_>) -> R) -> Option<R> {
        let bytes = self.memory.read();
        Entries::of(stored(&bytes)).find(|(own, ..)| *own == key).map(|(_, note, _)| read(note))
    }

    /// All keys with copies of their values.
    pub fn to_vec(&self) -> Vec<(String, NoteValue)> {
        let mut all = Vec::new();
        self.visit(|key, note| all.push((key.to_owned(), note.into())));
        all
    }

    /// A number; `None` if the frame has no such note, or the note is not a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.with(key, |note| if let Note::Number(number) = note { Some(number) } else { None }).flatten()
    }

    /// A value in text form; `None` if the frame has no such note.
    pub fn text(&self, key: &str) -> Option<String> {
        self.with(key, |note| note.to_string())
    }

    pub(crate) fn hand_to(&self, owner: Owner) {
        self.memory.hand_to(owner);
    }
}

/// `key=value`, separated by spaces.
impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut result, mut gap) = (Ok(()), "");
        self.visit(|key, note| {
            result = result.and_then(|()| write!(f, "{gap}{key}={note}"));
            gap = " ";
        });
        result
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notes({self})")
    }
}

impl PartialEq for Notes {
    fn eq(&self, other: &Notes) -> bool {
        stored(&self.memory.read()) == stored(&other.memory.read())
    }
}

fn stored(bytes: &[u8]) -> &[u8] {
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    &bytes[HEADER..HEADER + length]
}

/// Notes that a call attaches, before the frames have them. The memory is kept for the next call.
#[derive(Debug, Default)]
pub(crate) struct NewNotes {
    entries: Vec<u8>,
    /// Whether the pool keeps memory for the notes of many frames.
    keeps: bool,
}

/// Memory for the notes of this many frames stays in the pool.
const KEPT: usize = 64;

impl NewNotes {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a note. A later note of the same key replaces an earlier one.
    pub(crate) fn add(&mut self, key: &str, note: Note<'_>) -> Result<(), NoteError> {
        if !Notes::is_key(key) {
            return Err(NoteError::Key { key: key.chars().take(MOST_KEY).collect() });
        }
        if let Note::Text(text) = note
            && text.len() > MOST_TEXT
        {
            return Err(NoteError::LongText { key: key.to_owned(), has: text.len() });
        }
        if self.entries.capacity() == 0 {
            self.entries.reserve(MOST_BYTES);
        }
        let old = Entries::of(&self.entries).find(|(own, ..)| *own == key).map(|(.., range)| range);
        if let Some(range) = old {
            self.entries.drain(range);
        }
        let start = self.entries.len();
        let value = match note {
            Note::Number(_) => 8,
            Note::Text(text) => 1 + text.len(),
            Note::List(list) => 1 + 8 * list.count,
        };
        if HEADER + start + 2 + key.len() + value > MOST_BYTES {
            return Err(NoteError::Full { key: key.to_owned() });
        }
        self.entries.push(key.len() as u8);
        self.entries.extend_from_slice(key.as_bytes());
        match note {
            Note::Number(number) => {
                self.entries.push(NUMBER);
                self.entries.extend_from_slice(&number.to_le_bytes());
            }
            Note::Text(text) => {
                self.entries.extend_from_slice(&[TEXT, text.len() as u8]);
                self.entries.extend_from_slice(text.as_bytes());
            }
            Note::List(list) => {
                self.entries.extend_from_slice(&[LIST, list.count as u8]);
                list.values().iter().for_each(|value| self.entries.extend_from_slice(&value.to_le_bytes()));
            }
        }
        Ok(())
    }

    /// The notes of a frame that had `before` and gets these. Fails if there is no memory, or no room for all.
    pub(crate) fn attach(&mut self, before: Option<&Notes>, pool: &FramePool) -> Result<Notes, NoteError> {
        if !std::mem::replace(&mut self.keeps, true) {
            pool.keep_free(MOST_BYTES, KEPT);
        }
        let frame = pool
            .lend(Meta::data(MOST_BYTES as u32))
            .map_err(|error| NoteError::NoMemory { problem: error.to_string() })?;
        let Payload::Host(memory) = frame.payload.clone() else { unreachable!("the pool lends host memory") };
        drop(frame);
        {
            let mut bytes = memory.store.bytes.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut end = HEADER;
            let mut put = |key: &str, entry: &[u8]| -> Result<(), NoteError> {
                let full = || NoteError::Full { key: key.to_owned() };
                bytes.get_mut(end..end + entry.len()).ok_or_else(full)?.copy_from_slice(entry);
                end += entry.len();
                Ok(())
            };
            let replaced = |key: &str| Entries::of(&self.entries).any(|(own, ..)| own == key);
            if let Some(before) = before {
                let old = before.memory.read();
                let entries = stored(&old);
                for (key, _, range) in Entries::of(entries).filter(|(key, ..)| !replaced(key)) {
                    put(key, &entries[range])?;
                }
            }
            for (key, _, range) in Entries::of(&self.entries) {
                put(key, &self.entries[range])?;
            }
            let length = (end - HEADER) as u16;
            bytes[..HEADER].copy_from_slice(&length.to_le_bytes());
        }
        Ok(Notes { memory })
    }
}

/// The entries of encoded notes: key, value and position.
struct Entries<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Entries<'a> {
    fn of(all: &'a [u8]) -> Entries<'a> {
        Entries { all, at: 0 }
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.all.get(self.at..self.at + count)?;
        self.at += count;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Option<f64> {
        self.bytes(8)?.try_into().ok().map(f64::from_le_bytes)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Note<'a>, std::ops::Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let length = usize::from(self.byte()?);
        let key = std::str::from_utf8(self.bytes(length)?).ok()?;
        let note = match self.byte()? {
            NUMBER => Note::Number(self.number()?),
            TEXT => {
                let length = usize::from(self.byte()?);
                Note::Text(std::str::from_utf8(self.bytes(length)?).ok()?)
            }
            _ => {
                let count = usize::from(self.byte()?);
                let mut list = NoteList { values: [0.0; MOST_LIST], count };
                for value in list.values.get_mut(..count)? {
                    *value = self.number()?;
                }
                Note::List(list)
            }
        };
        Some((key, note, start..self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(given: &[(&str, Note<'_>)], before: Option<&Notes>) -> Notes {
        let mut new = NewNotes::default();
        for (key, note) in given {
            new.add(key, *note).unwrap();
        }
        new.attach(before, &FramePool::new(1 << 20)).unwrap()
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let list = NoteList::try_from(&[1.0, -2.5][..]).unwrap();
        let first = notes(&[("a", 1.5.into()), ("name", "blue car".into()), ("box", list.into())], None);
        assert_eq!(first.to_string(), "a=1.5 name=blue car box=1,-2.5");
        assert_eq!(
            (first.number("a"), first.number("name"), first.text("box")),
            (Some(1.5), None, Some("1,-2.5".into()))
        );
        let second = notes(&[("a", "two".into()), ("a", 3.0.into()), ("b", 2.0.into())], Some(&first));
        assert_eq!(second.to_string(), "name=blue car box=1,-2.5 a=3 b=2", "a later note replaces an earlier one");
        assert_eq!(first.to_string(), "a=1.5 name=blue car box=1,-2.5", "other frames keep their notes");
    }

    #[test]
    fn what_does_not_fit_is_refused_in_words() {
        let mut new = NewNotes::default();
        let key = "k".repeat(65);
        for key in ["", "two words", "a=b", key.as_str()] {
            assert!(matches!(new.add(key, 1.0.into()), Err(NoteError::Key { .. })), "{key}");
        }
        assert!(matches!(new.add("t", "x".repeat(256).as_str().into()), Err(NoteError::LongText { has: 256, .. })));
        assert!(matches!(NoteList::try_from(&[0.0; 17][..]), Err(NoteError::LongList { has: 17 })));
        let long = "x".repeat(255);
        for key in ["a", "b", "c"] {
            new.add(key, long.as_str().into()).unwrap();
        }
        assert_eq!(new.add("d", long.as_str().into()), Err(NoteError::Full { key: "d".into() }));
        let pool = FramePool::new(1 << 20);
        let before = new.attach(None, &pool).unwrap();
        let mut more = NewNotes::default();
        more.add("e", long.as_str().into()).unwrap();
        assert!(matches!(more.attach(Some(&before), &pool), Err(NoteError::Full { .. })));
        drop(before);
        assert_eq!(pool.stats().lent, 0, "a refused note leaves no memory behind");
    }
}
