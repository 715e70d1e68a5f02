//! Reads whole frames from a byte stream, for sources of uncompressed video. The sources read the file headers.
//!
//! The result is a complete frame, or an error that names the frame number and the byte offset. After an error the
//! stream counts as ended. A run can end even while a stream is silent. Reading allocates nothing.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::sync::PoisonError;

use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, Frame, HandlerError, Yuv};

use crate::patient::{Patient, SharedStandardInput, is_pause, standard_input};
use crate::visible::visible_ranges;

/// The longest line before a frame.
const LONGEST_LINE: usize = 4096;

pub(super) enum ByteSource {
    File(BufReader<Patient<File>>),
    /// Standard input, whose beginning may already have been read by other readers.
    Standard(&'static SharedStandardInput),
    #[cfg(test)]
    Memory(Box<dyn BufRead + Send>),
}

impl ByteSource {
    pub(super) fn open(path: &str) -> Result<ByteSource, FrameReadError> {
        if path == "-" {
            return Ok(ByteSource::Standard(standard_input().map_err(FrameReadError::Standard)?));
        }
        let unreadable = |error| FrameReadError::Open { path: path.to_owned(), error };
        if fs::metadata(path).map_err(unreadable)?.is_dir() {
            return Err(FrameReadError::Directory { path: path.to_owned() });
        }
        Ok(ByteSource::File(Patient::open(path).map_err(unreadable)?))
    }

    pub(super) fn with<R>(&mut self, read: impl FnOnce(&mut dyn BufRead) -> R) -> R {
        match self {
            ByteSource::File(file) => read(file),
            ByteSource::Standard(input) => read(&mut *input.lock().unwrap_or_else(PoisonError::into_inner)),
            #[cfg(test)]
            ByteSource::Memory(memory) => read(memory),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FrameReadError {
    #[error("`{path}` cannot be read: {error}; check the path and the permissions of the file")]
    Open { path: String, error: io::Error },
    #[error("`{path}` is a directory, expected a file; give a file in that directory")]
    Directory { path: String },
    #[error("standard input cannot be read: {0}; pipe frames in, or give a file")]
    Standard(io::Error),
    #[error("{name}, frame {frame}, byte {at}: {error}; check that the disk is available")]
    Broken { name: String, frame: u64, at: u64, error: io::Error },
    #[error(
        "{name} ends at byte {at} in the middle of frame {frame}: {missing} of its {whole} bytes are missing; \
         earlier frames are complete; make the file again, or truncate the file after the last complete frame"
    )]
    Short { name: String, frame: u64, at: u64, missing: u64, whole: u64 },
    #[error("{name} is empty, expected frames of {whole} bytes each; check the program that should write the frames")]
    Empty { name: String, whole: u64 },
    #[error(
        "{name}, frame {frame}, byte {at}: found `{found}`, expected a line `FRAME`; check that the header has \
         the size and format of the frames, or make the file again"
    )]
    NoFrame { name: String, frame: u64, at: u64, found: String },
    #[error(
        "{name}, frame {frame}, byte {at}: the line `FRAME` has no end in {LONGEST_LINE} bytes; make the file again"
    )]
    LongLine { name: String, frame: u64, at: u64 },
    /// The run ended before the frame was complete. Never reported.
    #[error("the run has ended")]
    Over,
}

/// The bytes before every frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    /// Nothing. A stream without frames is then an error.
    Nothing,
    /// A line that begins with `FRAME`.
    Line,
}

/// A stream of frames with one format and size.
pub(super) struct FrameReader {
    name: String,
    origin: ByteSource,
    lead: Lead,
    format: Format,
    size: Size,
    yuv: Yuv,
    at: u64,
    frames: u64,
    /// The rest of the line after `FRAME`.
    line: Vec<u8>,
    /// The frame number and the message of a failure, beyond which the stream cannot be read.
    failed: Option<(u64, String)>,
}

impl FrameReader {
    /// Creates a reader for a stream of which `at` bytes have already been read.
    pub(super) fn new(
        path: &str,
        origin: ByteSource,
        lead: Lead,
        at: u64,
        (format, size, yuv): (Format, Size, Yuv),
    ) -> Self {
        let name = if path == "-" { "standard input".to_owned() } else { format!("`{path}`") };
        let line = Vec::with_capacity(if lead == Lead::Line { LONGEST_LINE } else { 0 });
        FrameReader { name, origin, lead, format, size, yuv, at, frames: 0, line, failed: None }
    }

    /// Bytes of one frame in the stream, without padding.
    fn whole(&self) -> u64 {
        self.format.planes(self.size).map(|plane| plane.row_bytes * plane.rows).sum()
    }

    /// The next frame, for the call with this `number`; `None` at the end, or if the run is `over` before the frame is
    /// complete. After a failure, a repeated call with the same number fails again, and any other call returns `None`.
    fn next(
        &mut self,
        number: u64,
        lend: impl FnOnce(Format, Size) -> Result<Frame, HandlerError>,
        over: &dyn Fn() -> bool,
    ) -> Result<Option<Frame>, HandlerError> {
        if let Some((failed, problem)) = &self.failed {
            return if *failed == number { Err(HandlerError::failed(problem.as_str())) } else { Ok(None) };
        }
        // Memory for the frame is lent before anything is read. If there is no memory, the stream thus stays at the
        // start of a frame.
        let mut frame = lend(self.format, self.size)?;
        match self.begin(over) {
            Ok(true) => {}
            Ok(false) | Err(FrameReadError::Over) => return Ok(None),
            Err(error) => return Err(self.fail(number, &error)),
        }
        let mut meta = *frame.meta();
        meta.picture_mut().yuv = self.yuv;
        meta.picture_mut().fields = fields(&self.line);
        frame.set_meta(meta);
        let mut bytes = frame.fill().expect("a frame that was just lent has one holder");
        let read = self.planes(&mut bytes, over);
        drop(bytes);
        match read {
            Ok(()) => {}
            Err(FrameReadError::Over) => return Ok(None),
            Err(error) => return Err(self.fail(number, &error)),
        }
        self.frames += 1;
        Ok(Some(frame))
    }

    pub(super) fn send_next(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let lend = |format, size| Ok(call.lend(format, size)?);
        let frame = self.next(call.now().number, lend, &|| call.is_ending())?;
        let Some(frame) = frame else { return Ok(Flow::Ended) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn fail(&mut self, number: u64, error: &FrameReadError) -> HandlerError {
        let problem = error.to_string();
        self.failed = Some((number, problem.clone()));
        HandlerError::failed(problem)
    }

    /// Reads the line before a frame, if frames have such lines. Returns whether a frame follows.
    fn begin(&mut self, over: &dyn Fn() -> bool) -> Result<bool, FrameReadError> {
        let (mut found, mut first) = ([0; 5], 0);
        let read = match self.lead {
            Lead::Nothing => self.origin.with(|from| has_more(from, over)).map(|more| {
                first = usize::from(more);
                true
            }),
            Lead::Line => self.origin.with(|from| {
                first = fill(from, &mut found, over).map_err(|(_, error)| error)?;
                Ok(&found == b"FRAME")
            }),
        };
        let is_frame = read.map_err(|error| self.broken(error))?;
        match self.lead {
            _ if first == 0 && self.lead == Lead::Nothing && self.frames == 0 => {
                Err(FrameReadError::Empty { name: self.name.clone(), whole: self.whole() })
            }
            _ if first == 0 => Ok(false),
            Lead::Nothing => Ok(true),
            Lead::Line if !is_frame => Err(FrameReadError::NoFrame {
                name: self.name.clone(),
                frame: self.frames,
                at: self.at,
                found: found[..first].escape_ascii().to_string(),
            }),
            Lead::Line => {
                let line = &mut self.line;
                let read = self.origin.with(|from| take_line(from, line, over));
                let (taken, ended) = read.map_err(|error| self.broken(error))?;
                if !ended && taken < LONGEST_LINE {
                    let at = self.at + (found.len() + taken) as u64;
                    return Err(self.short(at, self.whole()));
                }
                if !ended {
                    return Err(FrameReadError::LongLine { name: self.name.clone(), frame: self.frames, at: self.at });
                }
                self.at += (found.len() + taken) as u64;
                Ok(true)
            }
        }
    }

    /// Reads the planes of a frame into their places in `into`.
    fn planes(&mut self, into: &mut [u8], over: &dyn Fn() -> bool) -> Result<(), FrameReadError> {
        let (mut missing, begun) = (self.whole(), self.at);
        for range in visible_ranges(self.format, self.size) {
            let (length, row) = (range.len() as u64, &mut into[range]);
            let got = match self.origin.with(|from| fill(from, row, over)) {
                Ok(got) => got as u64,
                Err((got, error)) => {
                    self.at += got as u64;
                    return Err(self.broken(error));
                }
            };
            self.at += got;
            missing -= got;
            if got < length {
                debug_assert_eq!(self.at - begun + missing, self.whole());
                return Err(self.short(self.at, missing));
            }
        }
        Ok(())
    }

    fn short(&self, at: u64, missing: u64) -> FrameReadError {
        FrameReadError::Short { name: self.name.clone(), frame: self.frames, at, missing, whole: self.whole() }
    }

    fn broken(&self, error: io::Error) -> FrameReadError {
        if is_pause(&error) {
            return FrameReadError::Over;
        }
        FrameReadError::Broken { name: self.name.clone(), frame: self.frames, at: self.at, error }
    }
}

/// Whether there is at least one more byte.
fn has_more(from: &mut dyn BufRead, over: &dyn Fn() -> bool) -> io::Result<bool> {
    loop {
        match from.fill_buf() {
            Ok(bytes) => return Ok(!bytes.is_empty()),
            Err(error) if is_pause(&error) && !over() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads until `into` is full or the stream ends; returns the number of bytes read.
fn fill(from: &mut dyn BufRead, mut into: &mut [u8], over: &dyn Fn() -> bool) -> Result<usize, (usize, io::Error)> {
    let mut got = 0;
    while !into.is_empty() {
        match from.read(into) {
            Ok(0) => break,
            Ok(read) => {
                got += read;
                into = &mut into[read..];
            }
            Err(error) if is_pause(&error) && !over() => {}
            Err(error) => return Err((got, error)),
        }
    }
    Ok(got)
}

/// The three letters of the field order in the line before a frame; `None` if the line has no word that consists of
/// `I` and three letters.
fn fields(line: &[u8]) -> Option<[u8; 3]> {
    line.trim_ascii_end().split(|byte| *byte == b' ').find_map(|tag| match tag {
        [b'I', fields @ ..] => {
            <[u8; 3]>::try_from(fields).ok().filter(|fields| fields.iter().all(u8::is_ascii_graphic))
        }
        _ => None,
    })
}

/// Reads up to the next line end; returns the number of bytes read, and whether a line end was found.
fn take_line(from: &mut dyn BufRead, line: &mut Vec<u8>, over: &dyn Fn() -> bool) -> io::Result<(usize, bool)> {
    let mut taken = 0;
    line.clear();
    while taken < LONGEST_LINE {
        if !has_more(from, over)? {
            return Ok((taken, false));
        }
        let bytes = from.fill_buf()?;
        let bytes = &bytes[..bytes.len().min(LONGEST_LINE - taken)];
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |at| at + 1);
        line.extend_from_slice(&bytes[..used]);
        from.consume(used);
        taken += used;
        if end.is_some() {
            return Ok((taken, true));
        }
    }
    Ok((taken, false))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use proptest::prelude::*;
    use vramp_runtime::{FramePool, Meta};

    use super::*;

    fn reader(bytes: impl BufRead + Send + 'static, lead: Lead, format: Format, size: (u32, u32)) -> FrameReader {
        let size = Size::new(size.0, size.1).unwrap();
        let origin = ByteSource::Memory(Box::new(bytes));
        FrameReader::new("t", origin, lead, 0, (format, size, Yuv::default()))
    }

    fn take(reader: &mut FrameReader, number: u64, pool: &FramePool) -> Result<Option<Frame>, String> {
        let lend = |format, size| pool.lend(Meta::new(format, size)).map_err(HandlerError::from);
        reader.next(number, lend, &|| false).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_land_at_their_padded_places() {
        let pool = FramePool::new(1 << 20);
        // A frame of 3x3 in 4:2:0 has three luma rows of 3 bytes, and two rows of 2 bytes in each chroma plane.
        let mut reader = reader(Cursor::new((1..=17).collect::<Vec<u8>>()), Lead::Nothing, Format::I420, (3, 3));
        let frame = take(&mut reader, 0, &pool).unwrap().unwrap();
        let bytes = frame.bytes();
        assert_eq!([&bytes[0..3], &bytes[4..7], &bytes[8..11]].concat(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!([&bytes[256..258], &bytes[260..262]].concat(), [10, 11, 12, 13]);
        assert_eq!([&bytes[512..514], &bytes[516..518]].concat(), [14, 15, 16, 17]);
        assert!(take(&mut reader, 1, &pool).unwrap().is_none());
    }

    #[test]
    fn a_stream_that_ends_early_says_where_and_how_much_is_missing() {
        let pool = FramePool::new(1 << 20);
        let mut bytes = b"FRAME\nabcd".to_vec();
        bytes.extend(b"FRAME Ip Xhello\nab");
        let mut reader = reader(Cursor::new(bytes), Lead::Line, Format::Gray8, (2, 2));
        assert!(take(&mut reader, 0, &pool).unwrap().is_some());
        let error = take(&mut reader, 1, &pool).unwrap_err();
        assert!(
            error.starts_with("`t` ends at byte 28 in the middle of frame 1: 2 of its 4 bytes are missing"),
            "{error}"
        );
        assert_eq!(take(&mut reader, 1, &pool).unwrap_err(), error, "tried again, it is still broken");
        assert!(take(&mut reader, 2, &pool).unwrap().is_none(), "skipped, it is over");
    }

    #[test]
    fn every_cut_is_an_error_or_a_clean_end() {
        let pool = FramePool::new(1 << 20);
        let whole = b"FRAME\nabcdFRAME I\nefgh";
        for length in 0..=whole.len() {
            let mut reader = reader(Cursor::new(whole[..length].to_vec()), Lead::Line, Format::Gray8, (2, 2));
            let mut frames = 0;
            let end = loop {
                match take(&mut reader, frames, &pool) {
                    Ok(Some(_)) => frames += 1,
                    end => break end.map(|_| ()),
                }
            };
            assert_eq!(
                frames,
                match length {
                    0..=9 => 0,
                    10..=21 => 1,
                    _ => 2,
                },
                "{length}"
            );
            assert_eq!(end.is_ok(), [0, 10, 22].contains(&length), "{length}: {end:?}");
        }
    }

    #[test]
    fn garbage_between_frames_is_shown() {
        let pool = FramePool::new(1 << 20);
        let mut reader = reader(Cursor::new(b"FRAME\nabcd\x00\x01AME\n".to_vec()), Lead::Line, Format::Gray8, (2, 2));
        take(&mut reader, 0, &pool).unwrap();
        let error = take(&mut reader, 1, &pool).unwrap_err();
        assert!(error.starts_with("`t`, frame 1, byte 10: found `\\x00\\x01AME`, expected a line `FRAME`"), "{error}");
    }

    #[test]
    fn a_frame_line_without_end_is_given_up() {
        let pool = FramePool::new(1 << 20);
        let endless = Cursor::new([b"FRAME X".as_slice(), &[b'x'; 9000]].concat());
        let error = take(&mut reader(endless, Lead::Line, Format::Gray8, (2, 2)), 0, &pool).unwrap_err();
        assert!(error.contains("no end in 4096 bytes"), "{error}");
    }

    #[test]
    fn an_empty_stream_is_an_error_only_without_a_header() {
        let pool = FramePool::new(1 << 20);
        let error = take(&mut reader(io::empty(), Lead::Nothing, Format::Rgb8, (3, 2)), 0, &pool).unwrap_err();
        assert!(error.starts_with("`t` is empty, expected frames of 18 bytes"), "{error}");
        assert!(take(&mut reader(io::empty(), Lead::Line, Format::Gray8, (2, 2)), 0, &pool).unwrap().is_none());
    }

    /// Returns its bytes in pieces, and then fails.
    struct Failing(Cursor<Vec<u8>>, usize);

    impl Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(self.1);
            match self.0.read(&mut into[..most])? {
                0 => Err(io::Error::other("the cable is out")),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_read_that_fails_is_named_with_frame_and_byte() {
        let pool = FramePool::new(1 << 20);
        let from = BufReader::with_capacity(3, Failing(Cursor::new(vec![7; 6]), 2));
        let mut reader = reader(from, Lead::Nothing, Format::Gray8, (2, 2));
        assert!(take(&mut reader, 0, &pool).unwrap().is_some());
        let error = take(&mut reader, 1, &pool).unwrap_err();
        assert!(error.starts_with("`t`, frame 1, byte 6: the cable is out"), "{error}");
    }

    /// Returns its bytes, and then blocks.
    struct Silent(Cursor<Vec<u8>>);

    impl Read for Silent {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_silent_stream_is_polled_until_the_run_is_over_and_then_ends_without_an_error() {
        let pool = FramePool::new(1 << 20);
        let lend = |format, size| pool.lend(Meta::new(format, size)).map_err(HandlerError::from);
        for silent_after in ["", "FRA", "FRAME", "FRAME X", "FRAME\n", "FRAME\nabc"] {
            let bytes = [b"FRAME\nabcd", silent_after.as_bytes()].concat();
            let from = BufReader::new(Silent(Cursor::new(bytes)));
            let mut reader = reader(from, Lead::Line, Format::Gray8, (2, 2));
            let checks = std::cell::Cell::new(0);
            let over = || checks.replace(checks.get() + 1) == 5;
            assert!(reader.next(0, lend, &over).unwrap().is_some());
            assert_eq!(checks.get(), 0, "available bytes are read without waiting");
            assert!(reader.next(1, lend, &over).unwrap().is_none(), "{silent_after:?}");
            assert_eq!(checks.get(), 6, "{silent_after:?}");
        }
        assert_eq!(pool.held().len(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_frames_or_one_error(
            bytes in proptest::collection::vec(prop_oneof![Just(b'F'), Just(b'\n'), any::<u8>()], 0..200),
            headed in any::<bool>(),
        ) {
            let pool = FramePool::new(1 << 20);
            let bytes = if headed { [b"FRAME\n".as_slice(), &bytes].concat() } else { bytes };
            let mut reader = reader(Cursor::new(bytes), Lead::Line, Format::I422, (3, 2));
            for number in 0..40 {
                match take(&mut reader, number, &pool) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(()),
                    Err(error) => prop_assert!(error.starts_with("`t`") && error.len() < 400, "{}", error),
                }
            }
            prop_assert!(false, "it did not end");
        }
    }
}
