//! Writes whole frames to a byte stream, for sinks of uncompressed video. Row padding is left out. The sinks
//! provide the headers.
//!
//! All frames of a stream have one size and format. After an error, the partly written frame is removed; the stream
//! ends if the output cannot be truncated. Writing allocates nothing after the first frame.

use std::io::{self, Write};

use vramp_plan::catalog::{Setting, SettingValues};
use vramp_plan::{Format, Size};
use vramp_runtime::{Meta, PartialFile, Yuv};

use super::outlet::{Outlet, OutletError, remedy};
use crate::visible::visible_ranges;

/// Size of the buffer in which short rows and lines are collected into one write. Pieces of at least half this size are
/// written directly.
const GATHER_BYTES: usize = 256 << 10;

/// The setting for unfinished files.
pub(super) const PARTIAL: Setting = Setting::choice(
    "partial",
    &["beside", REPLACE],
    "keep an unfinished file beside an older file of the same name, or replace the older file",
)
.default("beside");

const REPLACE: &str = "replace";

/// Whether unfinished files replace older files.
pub(super) fn replaces(settings: &SettingValues) -> bool {
    settings.word(PARTIAL.name) == Some(REPLACE)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(
        "{name}, frame {frame}, byte {at}: {error}; the {frames} earlier frames are complete ({bytes} bytes); {}",
        remedy(error)
    )]
    Failed { name: String, frame: u64, at: u64, frames: u64, bytes: u64, error: io::Error },
    #[error(
        "{name}, frame {frame}, byte {at}: the reader has closed the stream after {frames} whole frames; to \
         write fewer frames, use `--frames N` or `--seconds S`"
    )]
    Closed { name: String, frame: u64, at: u64, frames: u64 },
    #[error("{name}, frame {frame}: the stream broke in an earlier frame and cannot continue; restart the run")]
    Over { name: String, frame: u64 },
    #[error(
        "{name}: frame {frame} is {size}, but earlier frames are {first}, and the size must not change; put `resize \
         size={first}` before this sink"
    )]
    Size { name: String, frame: u64, size: Size, first: Size },
    #[error(
        "{name}: frame {frame} is {format}, but earlier frames are {first}; put `convert format={first}` before this \
         sink"
    )]
    Format { name: String, frame: u64, format: Format, first: Format },
    #[error(
        "{name}: frame {frame} has another colour range, matrix or chroma siting than earlier frames; put `convert \
         format=rgba8 ! convert format={format}` before this sink"
    )]
    Colours { name: String, frame: u64, format: Format },
    #[error(transparent)]
    Outlet(#[from] OutletError),
}

/// A stream of frames with one format and size.
pub(super) struct FrameWriter {
    name: String,
    to: Box<dyn Outlet>,
    /// Format, size and colours of the first frame.
    first: Option<(Format, Size, Yuv)>,
    /// Total bytes of the whole frames written so far.
    bytes: u64,
    /// Number of whole frames written so far.
    frames: u64,
    gathered: Vec<u8>,
    /// Whether the stream broke inside a frame that could not be removed.
    over: bool,
}

impl FrameWriter {
    pub(super) fn new(path: &str, to: Box<dyn Outlet>) -> FrameWriter {
        let name = if path == "-" { "standard output".to_owned() } else { format!("`{path}`") };
        let gathered = Vec::with_capacity(GATHER_BYTES);
        FrameWriter { name, to, first: None, bytes: 0, frames: 0, gathered, over: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Writes `lead` and then a frame. All bytes have been passed to the output when this method returns.
    pub(super) fn write(&mut self, lead: &[u8], meta: &Meta, pixels: &[u8]) -> Result<(), WriteError> {
        let frame = meta.number;
        self.check(meta)?;
        let mut written = 0;
        match self.try_write(lead, meta, pixels, &mut written) {
            Ok(()) => {
                self.first = Some((meta.picture().format, meta.picture().size, meta.picture().yuv));
                self.bytes += written;
                self.frames += 1;
                Ok(())
            }
            Err(error) => {
                // If the partly written frame cannot be removed, nothing may be written after it.
                self.over = !self.to.cut_to(self.bytes).unwrap_or(false);
                let (name, at, frames, bytes) = (self.name.clone(), self.bytes + written, self.frames, self.bytes);
                Err(match error.kind() {
                    io::ErrorKind::BrokenPipe => WriteError::Closed { name, frame, at, frames },
                    _ => WriteError::Failed { name, frame, at, frames, bytes, error },
                })
            }
        }
    }

    fn check(&self, meta: &Meta) -> Result<(), WriteError> {
        let (name, frame) = (|| self.name.clone(), meta.number);
        if self.over {
            return Err(WriteError::Over { name: name(), frame });
        }
        match self.first {
            Some((first, ..)) if first != meta.picture().format => {
                Err(WriteError::Format { name: name(), frame, format: meta.picture().format, first })
            }
            Some((_, first, _)) if first != meta.picture().size => {
                Err(WriteError::Size { name: name(), frame, size: meta.picture().size, first })
            }
            Some((format, _, yuv)) if yuv != meta.picture().yuv => {
                Err(WriteError::Colours { name: name(), frame, format })
            }
            _ => Ok(()),
        }
    }

    fn try_write(&mut self, lead: &[u8], meta: &Meta, pixels: &[u8], written: &mut u64) -> io::Result<()> {
        self.gathered.clear();
        self.put(lead, written)?;
        for range in visible_ranges(meta.picture().format, meta.picture().size) {
            self.put(&pixels[range], written)?;
        }
        push(&mut *self.to, &self.gathered, written)?;
        self.to.flush()
    }

    /// Collects short pieces, and passes long pieces on.
    fn put(&mut self, bytes: &[u8], written: &mut u64) -> io::Result<()> {
        if self.gathered.len() + bytes.len() > GATHER_BYTES {
            push(&mut *self.to, &self.gathered, written)?;
            self.gathered.clear();
        }
        if bytes.len() >= GATHER_BYTES / 2 {
            push(&mut *self.to, &self.gathered, written)?;
            self.gathered.clear();
            return push(&mut *self.to, bytes, written);
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the stream early. The file holds whole frames. An older file at the target stays; the new file is then kept
    /// beside it under another name, which is returned.
    pub(super) fn finish_early(self) -> Result<Option<PartialFile>, WriteError> {
        if self.is_empty() {
            return Ok(None);
        }
        Ok(self.to.finish_early()?)
    }

    /// Finishes the stream. A stream without frames creates no file, and an older file stays.
    pub(super) fn finish(self) -> Result<(), WriteError> {
        if self.is_empty() {
            return Ok(());
        }
        Ok(self.to.finish()?)
    }
}

/// Writes all bytes and counts them.
fn push(to: &mut dyn Write, mut bytes: &[u8], written: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => {
                *written += taken as u64;
                bytes = &bytes[taken..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A disk with room for a few bytes, or a pipe that the reader closes after that many bytes.
    #[derive(Clone)]
    struct Small {
        bytes: Arc<Mutex<Vec<u8>>>,
        room: usize,
        kind: io::ErrorKind,
        finished: Arc<Mutex<bool>>,
    }

    impl Small {
        fn new(room: usize, kind: io::ErrorKind) -> Small {
            Small { bytes: Arc::default(), room, kind, finished: Arc::default() }
        }

        fn text(&self) -> String {
            String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut held = self.bytes.lock().unwrap();
            let taken = bytes.len().min(self.room - held.len());
            held.extend(&bytes[..taken]);
            if taken == 0 { Err(self.kind.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Outlet for Small {
        fn cut_to(&mut self, bytes: u64) -> io::Result<bool> {
            let is_file = self.kind == io::ErrorKind::StorageFull;
            if is_file {
                self.bytes.lock().unwrap().truncate(bytes as usize);
            }
            Ok(is_file)
        }

        fn finish(self: Box<Self>) -> Result<(), OutletError> {
            *self.finished.lock().unwrap() = true;
            Ok(())
        }
    }

    fn gray(number: u64, width: u32, height: u32) -> Meta {
        Meta { number, ..Meta::new(Format::Gray8, Size::new(width, height).unwrap()) }
    }

    #[test]
    fn padding_is_left_out() {
        let small = Small::new(100, io::ErrorKind::StorageFull);
        let mut writer = FrameWriter::new("t", Box::new(small.clone()));
        writer.write(b"H ", &gray(0, 3, 2), b"abc-def-").unwrap();
        writer.write(b"F ", &gray(1, 3, 2), b"ghi-jkl-").unwrap();
        writer.finish().unwrap();
        assert_eq!((small.text().as_str(), *small.finished.lock().unwrap()), ("H abcdefF ghijkl", true));
    }

    #[test]
    fn a_full_disk_keeps_whole_frames_and_names_the_place() {
        let small = Small::new(18, io::ErrorKind::StorageFull);
        let mut writer = FrameWriter::new("out.y4m", Box::new(small.clone()));
        writer.write(b"H ", &gray(4, 4, 2), b"abcdefgh").unwrap();
        let error = writer.write(b"F ", &gray(5, 4, 2), b"ijklmnop").unwrap_err().to_string();
        assert!(error.starts_with("`out.y4m`, frame 5, byte 18: "), "{error}");
        assert!(error.contains("the 1 earlier frames are complete (10 bytes)"), "{error}");
        assert_eq!(small.text(), "H abcdefgh");
        // The stream did not break: the next frame is tried at the same place.
        let error = writer.write(b"F ", &gray(6, 4, 2), b"qrstuvwx").unwrap_err().to_string();
        assert!(error.starts_with("`out.y4m`, frame 6, byte 18"), "{error}");
        writer.finish().unwrap();
        assert!(*small.finished.lock().unwrap());
    }

    #[test]
    fn a_disk_that_is_full_at_once_leaves_nothing_behind() {
        let small = Small::new(3, io::ErrorKind::StorageFull);
        let mut writer = FrameWriter::new("t", Box::new(small.clone()));
        assert!(writer.write(b"H ", &gray(0, 4, 2), b"abcdefgh").is_err());
        writer.finish().unwrap();
        assert_eq!((small.text().as_str(), *small.finished.lock().unwrap()), ("", false));
    }

    #[test]
    fn a_closed_reader_is_reported_and_nothing_follows_half_a_frame() {
        let small = Small::new(18, io::ErrorKind::BrokenPipe);
        let mut writer = FrameWriter::new("-", Box::new(small.clone()));
        writer.write(b"H ", &gray(0, 4, 2), b"abcdefgh").unwrap();
        let error = writer.write(b"F ", &gray(1, 4, 2), b"ijklmnop").unwrap_err().to_string();
        assert!(error.starts_with("standard output, frame 1, byte 18: the reader has closed the stream"), "{error}");
        let error = writer.write(b"F ", &gray(2, 4, 2), b"ijklmnop").unwrap_err().to_string();
        assert!(error.contains("frame 2: the stream broke in an earlier frame"), "{error}");
    }

    #[test]
    fn another_size_format_or_range_is_refused_with_the_way_out() {
        let small = Small::new(1000, io::ErrorKind::StorageFull);
        let mut writer = FrameWriter::new("t", Box::new(small.clone()));
        writer.write(b"", &gray(0, 4, 2), b"abcdefgh").unwrap();
        let error = writer.write(b"", &gray(1, 4, 1), b"abcd").unwrap_err().to_string();
        assert!(error.contains("frame 1 is 4x1") && error.contains("`resize size=4x2`"), "{error}");
        let rgb = Meta::new(Format::Rgb8, Size::new(4, 2).unwrap());
        let error = writer.write(b"", &rgb, &[0; 24]).unwrap_err().to_string();
        assert!(error.contains("`convert format=gray8`"), "{error}");
        let mut full = gray(2, 4, 2);
        full.picture_mut().yuv.full_range = true;
        assert!(matches!(writer.write(b"", &full, b"abcdefgh"), Err(WriteError::Colours { .. })));
        assert_eq!(small.text(), "abcdefgh");
    }

    #[test]
    fn long_planes_and_short_rows_come_in_order() {
        let small = Small::new(10 << 20, io::ErrorKind::StorageFull);
        let mut writer = FrameWriter::new("t", Box::new(small.clone()));
        let size = Size::new(1000, 602).unwrap();
        let meta = Meta::new(Format::I420, size);
        let pixels: Vec<u8> = (0..Format::I420.frame_bytes(size)).map(|at| (at / 7 % 100) as u8).collect();
        let mut expected = b"lead".to_vec();
        for plane in Format::I420.planes(size) {
            let start = plane.start as usize;
            expected.extend(&pixels[start..start + (plane.row_bytes * plane.rows) as usize]);
        }
        writer.write(b"lead", &meta, &pixels).unwrap();
        assert!(*small.bytes.lock().unwrap() == expected);
    }
}
