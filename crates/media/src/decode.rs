//! Decoding: an ffmpeg process that sends raw frames, read straight into the caller's memory.
//!
//! A frame is read in two steps: [`Decoder::next`] gives its time and size, and [`Decoder::read`] fills memory of that
//! size. Both return early if the caller's run is over. Planes without row padding are read in place; other rows go
//! through one buffer.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::process::Stdio;
use std::time::{Duration, Instant};

use vramp_plan::{Format, Size};

use crate::address::Address;
use crate::nut::read::{MOST_HEAD, NutError, NutParser, Step};
use crate::pipe::ReadEnd;
use crate::process::{NotStarted, Process, ending};
use crate::reading::Reading;
use crate::tools::Tools;

/// Bytes that are read at a time while the head of a frame is parsed. The rest belongs to the frame and is copied.
const HEAD_STEP: usize = 4 << 10;
/// How long a process that has sent everything may take to end.
const LAST: Duration = Duration::from_secs(5);
/// How long a message about a new size may take to arrive after the first frame of that size.
const SIZE_WAIT: Duration = Duration::from_secs(2);

/// What to decode.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoding {
    /// ffmpeg's input, with its options.
    pub input: DecoderInput,
    pub reading: Reading,
    pub hwaccel: Option<String>,
}

/// The input of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub enum DecoderInput {
    /// A file or URL.
    Address { address: String, start_s: Option<f64>, duration_s: Option<f64>, timeout: Duration },
    /// ffmpeg's options for a device.
    Device(Vec<OsString>),
}

/// The end of a wait.
pub struct Waiting<'a> {
    /// Whether the run is over.
    pub over: &'a dyn Fn() -> bool,
    /// The longest time without a byte.
    pub limit: Duration,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextFrame {
    /// A frame at this time. [`Decoder::read`] reads it.
    Frame { pts_ns: i64, size: Size },
    /// All frames have been sent.
    End,
    /// The run is over.
    Over,
}

/// Why no further frame comes.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    #[error("a pipe for ffmpeg cannot be made: {0}")]
    NoPipe(io::Error),
    #[error("ffmpeg {ending}{}", after(words))]
    Died { ending: String, words: String },
    #[error("ffmpeg sent nothing for {} s{}", limit.as_secs_f64(), after(words))]
    Silent { limit: Duration, words: String },
    #[error("ffmpeg's stream cannot be read: {0}")]
    Broken(#[from] NutError),
    #[error("the pipe from ffmpeg broke: {0}")]
    Pipe(io::Error),
    #[error(
        "frames have {bytes} bytes from here on, and ffmpeg does not tell their size; convert the video to one size first"
    )]
    NoSize { bytes: u64 },
    #[error(
        "frames turn from {0} to {1} in the middle of the stream, and cannot be told apart, since both have the same \
         number of bytes; convert the video to one size first"
    )]
    SameBytes(Size, Size),
}

fn after(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

pub struct Decoder {
    process: Process,
    pipe: ReadEnd,
    parser: NutParser,
    /// Bytes that have arrived and are not used yet.
    head: Box<[u8]>,
    filled: std::ops::Range<usize>,
    /// The bytes of the frame that is to be read.
    waiting: Option<(i64, u64)>,
    format: Format,
    turned: bool,
    size: Size,
    /// Of the sizes that ffmpeg has told: the number that belong to earlier frames, and the number that were looked at.
    sizes: usize,
    looked: usize,
    rows: Vec<u8>,
}

impl Decoder {
    pub fn start(tools: &Tools, decoding: &Decoding) -> Result<Decoder, DecodeError> {
        let (pipe, other) = ReadEnd::open().map_err(DecodeError::NoPipe)?;
        let process = Process::start(&tools.ffmpeg(), arguments(decoding), Stdio::null(), Stdio::from(other))?;
        let Reading { format, size, turned, .. } = decoding.reading;
        Ok(Decoder {
            process,
            pipe,
            parser: NutParser::default(),
            head: vec![0; MOST_HEAD].into(),
            filled: 0..0,
            waiting: None,
            format,
            turned,
            size,
            sizes: 0,
            looked: 0,
            rows: Vec::new(),
        })
    }

    /// The number of errors that ffmpeg has reported so far.
    pub fn error_count(&self) -> u64 {
        self.process.log().error_count()
    }

    /// The last error that ffmpeg has reported.
    pub fn last_error(&self) -> Option<String> {
        self.process.log().last_error()
    }

    /// A message that tells that the hardware decoder is not used.
    pub fn no_hardware(&self) -> Option<String> {
        self.process.log().no_hardware()
    }

    /// Waits for the next frame. Repeated calls return the same frame until it is read.
    pub fn next(&mut self, waiting: &Waiting<'_>) -> Result<NextFrame, DecodeError> {
        if let Some((pts_ns, _)) = self.waiting {
            return Ok(NextFrame::Frame { pts_ns, size: self.size });
        }
        let mut skip = 0_u64;
        loop {
            let held = self.filled.len() as u64;
            let gone = skip.min(held);
            self.filled.start += gone as usize;
            skip -= gone;
            let step = if skip > 0 { Step::More } else { self.parser.next(&self.head[self.filled.clone()])? };
            match step {
                Step::Skip(count) => skip = count,
                Step::Frame { head, pts_ns, bytes } => {
                    self.filled.start += head;
                    // An empty frame marks the end of a stream.
                    if bytes > 0 {
                        self.size = self.size_of(bytes)?;
                        self.waiting = Some((pts_ns, bytes));
                        return Ok(NextFrame::Frame { pts_ns, size: self.size });
                    }
                }
                Step::More => match self.fill_head(waiting)? {
                    Arrived::Bytes => {}
                    Arrived::Over => return Ok(NextFrame::Over),
                    Arrived::End => return self.end(self.filled.is_empty() && skip == 0),
                },
            }
        }
    }

    /// Reads the frame that [`Decoder::next`] has found. Returns false if the run is over.
    ///
    /// # Panics
    ///
    /// If there is no such frame, or if `into` is too small for it.
    pub fn read(&mut self, into: &mut [u8], waiting: &Waiting<'_>) -> Result<bool, DecodeError> {
        let (_, bytes) = self.waiting.expect("`next` has found a frame");
        let is_padded = self.format.planes(self.size).any(|plane| plane.row_bytes != plane.stride);
        let whole = if is_padded {
            let mut rows = std::mem::take(&mut self.rows);
            rows.resize(bytes as usize, 0);
            let whole = self.fill([&mut rows, &mut [], &mut []], waiting);
            let mut from = &rows[..];
            for plane in self.format.planes(self.size) {
                for row in 0..plane.rows {
                    let start = (plane.start + row * plane.stride) as usize;
                    let (own, rest) = from.split_at(plane.row_bytes as usize);
                    into[start..start + own.len()].copy_from_slice(own);
                    from = rest;
                }
            }
            self.rows = rows;
            whole?
        } else {
            let mut planes: [&mut [u8]; 3] = Default::default();
            let (mut rest, mut at) = (into, 0);
            for (own, plane) in planes.iter_mut().zip(self.format.planes(self.size)) {
                let (_, from) = std::mem::take(&mut rest).split_at_mut(plane.start as usize - at);
                let length = (plane.row_bytes * plane.rows) as usize;
                (*own, rest) = from.split_at_mut(length);
                at = plane.start as usize + length;
            }
            self.fill(planes, waiting)?
        };
        if whole {
            self.waiting = None;
        }
        Ok(whole)
    }

    /// The size of a frame with this many bytes.
    fn size_of(&mut self, bytes: u64) -> Result<Size, DecodeError> {
        let is_same = packed_bytes(self.format, self.size) == bytes;
        let told = self.process.log().size_count();
        // The first size is the probed one. Only a stream that changes its size has more.
        if is_same && told == self.looked {
            return Ok(self.size);
        }
        let limit = if is_same { Duration::ZERO } else { SIZE_WAIT };
        let is_other = |size: &Size| *size != self.size;
        let upright = |(width, height)| if self.turned { Size::new(height, width) } else { Size::new(width, height) };
        let told = self.process.log().sizes_until(self.sizes, limit, |size| {
            upright(size).is_some_and(|size| packed_bytes(self.format, size) == bytes)
        });
        self.looked = self.sizes + told.len();
        let told: Vec<Size> = told.into_iter().filter_map(upright).collect();
        let fits = |size: &Size| packed_bytes(self.format, *size) == bytes;
        if is_same {
            // A size with as many bytes, before frames of another number of bytes.
            return match told.iter().take_while(|size| fits(size)).find(|size| is_other(size)) {
                Some(other) => Err(DecodeError::SameBytes(self.size, *other)),
                None => Ok(self.size),
            };
        }
        let at = told.iter().position(fits).ok_or(DecodeError::NoSize { bytes })?;
        self.sizes += at + 1;
        Ok(told[at])
    }

    /// Fills these slices, first with bytes that have arrived before. Returns false if the run is over.
    ///
    /// The last read also takes the head of the next frame if it has arrived: a small read by itself would wake ffmpeg
    /// for a few free bytes in the pipe.
    fn fill(&mut self, mut into: [&mut [u8]; 3], waiting: &Waiting<'_>) -> Result<bool, DecodeError> {
        for slice in &mut into {
            let held = self.filled.len().min(slice.len());
            let (now, later) = std::mem::take(slice).split_at_mut(held);
            now.copy_from_slice(&self.head[self.filled.start..self.filled.start + held]);
            self.filled.start += held;
            *slice = later;
        }
        loop {
            let left: usize = into.iter().map(|slice| slice.len()).sum();
            if left == 0 {
                return Ok(true);
            }
            // All bytes of the head have been used.
            self.filled = 0..0;
            let [one, two, three] = &mut into;
            let mut slices = [&mut **one, two, three, &mut self.head[..HEAD_STEP]].map(IoSliceMut::new);
            let mut count = match arrive(&mut self.pipe, &self.process, &mut slices, left, waiting)? {
                (Arrived::Bytes, count) => count,
                (Arrived::Over, _) => return Ok(false),
                (Arrived::End, _) => return Err(self.died()),
            };
            for slice in &mut into {
                let done = count.min(slice.len());
                *slice = &mut std::mem::take(slice)[done..];
                count -= done;
            }
            self.filled = 0..count;
        }
    }

    /// Reads more bytes for the head of a frame or packet.
    fn fill_head(&mut self, waiting: &Waiting<'_>) -> Result<Arrived, DecodeError> {
        self.head.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let end = (self.filled.end + HEAD_STEP).min(self.head.len());
        let into = &mut [IoSliceMut::new(&mut self.head[self.filled.end..end])];
        let (arrived, count) = arrive(&mut self.pipe, &self.process, into, 1, waiting)?;
        self.filled.end += count;
        Ok(arrived)
    }

    fn end(&mut self, is_whole: bool) -> Result<NextFrame, DecodeError> {
        match self.process.wait(LAST) {
            Some(status) if status.success() && is_whole => Ok(NextFrame::End),
            Some(_) => Err(self.died()),
            None => {
                self.process.kill();
                let ending = format!("closed its output and did not end within {} s", LAST.as_secs());
                Err(DecodeError::Died { ending, words: self.process.log().last_words() })
            }
        }
    }

    fn died(&mut self) -> DecodeError {
        let ending = match self.process.wait(LAST) {
            Some(status) => ending(status),
            None => format!("closed its output and did not end within {} s", LAST.as_secs()),
        };
        DecodeError::Died { ending, words: self.process.log().last_words() }
    }
}

/// Bytes of a frame without padding.
pub(crate) fn packed_bytes(format: Format, size: Size) -> u64 {
    format.planes(size).map(|plane| plane.row_bytes * plane.rows).sum()
}

enum Arrived {
    Bytes,
    End,
    Over,
}

/// Waits for bytes.
fn arrive(
    pipe: &mut ReadEnd,
    process: &Process,
    into: &mut [IoSliceMut<'_>],
    wanted: usize,
    waiting: &Waiting<'_>,
) -> Result<(Arrived, usize), DecodeError> {
    let mut since = None;
    loop {
        match pipe.read(into, wanted).map_err(DecodeError::Pipe)? {
            Some(0) => return Ok((Arrived::End, 0)),
            Some(count) => return Ok((Arrived::Bytes, count)),
            None if (waiting.over)() => return Ok((Arrived::Over, 0)),
            None => {
                let since = *since.get_or_insert_with(Instant::now);
                if since.elapsed() >= waiting.limit {
                    let words = process.log().last_words();
                    return Err(DecodeError::Silent { limit: waiting.limit, words });
                }
            }
        }
    }
}

fn arguments(decoding: &Decoding) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["-nostdin", "-hide_banner", "-nostats", "-loglevel", "repeat+level+verbose"].map(OsString::from).into();
    if let Some(hwaccel) = &decoding.hwaccel {
        arguments.extend([OsString::from("-hwaccel"), hwaccel.into()]);
    }
    match &decoding.input {
        DecoderInput::Address { address, start_s, duration_s, timeout } => {
            for (option, seconds) in [("-ss", start_s), ("-t", duration_s)] {
                if let Some(seconds) = seconds {
                    arguments.extend([OsString::from(option), format!("{seconds:.9}").into()]);
                }
            }
            arguments.extend(Address::of(address).input(*timeout));
        }
        DecoderInput::Device(input) => arguments.extend(input.iter().cloned()),
    }
    arguments.extend(["-map", "0:V:0", "-autoscale", "0"].map(OsString::from));
    let format = decoding.reading.pixel_format.as_str();
    if !decoding.reading.filters.is_empty() {
        arguments.extend([OsString::from("-vf"), decoding.reading.filters.clone().into()]);
    }
    let output = ["-pix_fmt", format, "-fps_mode", "passthrough", "-enc_time_base", "-1", "-c:v", "rawvideo"];
    arguments.extend(output.map(OsString::from));
    arguments.extend(["-flush_packets", "1", "-write_index", "0", "-f", "nut", "pipe:1"].map(OsString::from));
    arguments
}
