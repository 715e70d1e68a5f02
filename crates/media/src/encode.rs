//! Encoding: an ffmpeg process that gets raw frames with their times and writes a video file.
//!
//! Large frames are lent to the pipe instead of copied, and held until ffmpeg has taken them. The process writes its
//! file under the name that it is given; the caller gives that file its final name when [`Encoder::finish`] has
//! succeeded.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use vramp_plan::{Format, PixelAspect, Rate, Siting, Size};

use crate::container::{Container, output};
use crate::decode::packed_bytes;
use crate::nut::{TimeBase, write};
use crate::pipe::WriteEnd;
use crate::process::{NotStarted, Process, ending};
use crate::reading::{ColourMatrix, VideoColours};
use crate::tools::Tools;

/// Frames of fewer bytes are copied, so that few frames are in the pipe at a time.
const LEND_BYTES: u64 = 1 << 20;
/// An encoder that neither takes bytes nor computes nor writes for this long is stuck.
const STUCK: Duration = Duration::from_secs(30);
/// Interval at which an encoder that takes no bytes is checked.
const LOOK: Duration = Duration::from_millis(20);

/// What to encode.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    pub container: Container,
    /// ffmpeg's encoder; the container's usual one by default.
    pub codec: Option<String>,
    pub crf: Option<i64>,
    pub preset: Option<String>,
    pub format: Format,
    pub size: Size,
    pub colours: VideoColours,
    pub aspect: Option<PixelAspect>,
    pub rate: Option<Rate>,
}

impl Encoding {
    /// ffmpeg's encoder.
    pub fn codec(&self) -> &str {
        self.codec.as_deref().unwrap_or(self.container.codec())
    }

    /// The ticks in which the encoder gets its times.
    fn time_base(&self) -> TimeBase {
        match self.rate {
            // Older codecs have a constant rate, and at most 65535 ticks to a second.
            Some(rate) if ["mpeg4", "mpeg2video", "mpeg1video", "h263", "msmpeg4"].contains(&self.codec()) => {
                TimeBase { num: u64::from(rate.den()), den: u64::from(rate.num()) }
            }
            rate => time_base(rate),
        }
    }

    /// Whether the container holds fewer frames a second than there are.
    pub fn thins(&self) -> bool {
        self.container == Container::Gif
            && self.rate.is_some_and(|rate| u64::from(rate.num()) > 50 * u64::from(rate.den()))
    }

    /// The size of the file if its encoder needs even sides and the frames have an odd one.
    pub fn even_size(&self) -> Option<Size> {
        let needs_even = ["264", "265", "hevc"].iter().any(|part| self.codec().contains(part));
        let even = |side: u32| side.next_multiple_of(2);
        let size = Size::new(even(self.size.width), even(self.size.height))?;
        (needs_even && size != self.size).then_some(size)
    }
}

/// Why a file cannot be encoded further.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
    #[error("a pipe for ffmpeg cannot be made: {0}")]
    NoPipe(io::Error),
    #[error("ffmpeg {ending}{}", if words.is_empty() { String::new() } else { format!(": {words}") })]
    Died { ending: String, words: String },
    #[error("ffmpeg has neither taken a frame nor computed nor written for {} s", STUCK.as_secs())]
    Stuck,
    #[error("the pipe to ffmpeg broke: {0}")]
    Pipe(io::Error),
}

/// A running encoder. `H` holds the memory of a frame until ffmpeg has taken it.
#[derive(Debug)]
pub struct Encoder<H> {
    process: Process,
    pipe: Option<WriteEnd>,
    format: Format,
    size: Size,
    base: TimeBase,
    /// The first time if it is negative; NUT has no negative times.
    shift_ns: Option<i64>,
    head: Vec<u8>,
    rows: Vec<u8>,
    /// Frames that ffmpeg may still read, with the position of their last byte.
    lent: VecDeque<(u64, H)>,
    life: Life,
}

impl<H> Encoder<H> {
    /// Starts ffmpeg, which writes to `file`.
    pub fn start(tools: &Tools, encoding: &Encoding, file: &Path) -> Result<Encoder<H>, EncodeError> {
        let (mut pipe, other) = WriteEnd::open().map_err(EncodeError::NoPipe)?;
        let base = encoding.time_base();
        let arguments = arguments(encoding, base, file);
        let process = Process::start(&tools.ffmpeg(), arguments, Stdio::from(other), Stdio::null())?;
        let aspect = encoding.aspect.unwrap_or(PixelAspect::SQUARE);
        let header = write::header(encoding.size, tag(encoding.format), base, (aspect.num, aspect.den));
        let whole = packed_bytes(encoding.format, encoding.size);
        let mut encoder = Encoder {
            process,
            pipe: None,
            format: encoding.format,
            size: encoding.size,
            base,
            shift_ns: None,
            head: Vec::with_capacity(write::MOST_HEAD),
            rows: if is_packed(encoding.format, encoding.size) { Vec::new() } else { vec![0; whole as usize] },
            lent: VecDeque::with_capacity(8),
            life: Life::new(),
        };
        // The header is smaller than any pipe, so writing it does not wait.
        let written = pipe.write(&header).map_err(EncodeError::Pipe)?;
        encoder.pipe = Some(pipe);
        if written < header.len() {
            return Err(encoder.died());
        }
        Ok(encoder)
    }

    /// Writes a frame. `bytes` has the planes of the frame with their padding, in memory that `held` holds. Calls
    /// `alive` whenever ffmpeg makes progress.
    pub fn write(&mut self, pts_ns: i64, bytes: &[u8], held: H, alive: &mut dyn FnMut()) -> Result<(), EncodeError> {
        self.release();
        let shift_ns = *self.shift_ns.get_or_insert(pts_ns.min(0));
        let ticks = u64::try_from(self.base.to_ticks(pts_ns - shift_ns)).unwrap_or(0);
        let whole = packed_bytes(self.format, self.size);
        let mut head = std::mem::take(&mut self.head);
        write::frame_head(ticks, whole, &mut head);
        let sent = self.send(&head, false, alive);
        self.head = head;
        sent?;
        if !is_packed(self.format, self.size) {
            let mut rows = std::mem::take(&mut self.rows);
            let mut at = 0;
            for plane in self.format.planes(self.size) {
                for row in 0..plane.rows {
                    let (start, length) = ((plane.start + row * plane.stride) as usize, plane.row_bytes as usize);
                    rows[at..at + length].copy_from_slice(&bytes[start..start + length]);
                    at += length;
                }
            }
            let sent = self.send(&rows, false, alive);
            self.rows = rows;
            return sent;
        }
        let lends = whole >= LEND_BYTES;
        for plane in self.format.planes(self.size) {
            let (start, length) = (plane.start as usize, (plane.row_bytes * plane.rows) as usize);
            // After an error ffmpeg reads nothing any more, so the frame need not be held.
            self.send(&bytes[start..start + length], lends, alive)?;
        }
        if lends && let Some(pipe) = &self.pipe {
            self.lent.push_back((pipe.sent(), held));
        }
        Ok(())
    }

    /// Ends the stream and waits until ffmpeg has written its file. Calls `alive` whenever ffmpeg makes progress.
    pub fn finish(mut self, file: &Path, alive: &mut dyn FnMut()) -> Result<(), EncodeError> {
        self.pipe = None;
        let status = self.life.wait(&mut self.process, file, alive)?;
        // ffmpeg has taken or will never take what was lent.
        self.lent.clear();
        if status.success() {
            return Ok(());
        }
        Err(self.died())
    }

    /// Drops frames that ffmpeg has taken.
    fn release(&mut self) {
        let consumed = self.pipe.as_ref().map_or(u64::MAX, WriteEnd::consumed);
        while self.lent.front().is_some_and(|(end, _)| *end <= consumed) {
            self.lent.pop_front();
        }
    }

    fn send(&mut self, mut bytes: &[u8], lends: bool, alive: &mut dyn FnMut()) -> Result<(), EncodeError> {
        while !bytes.is_empty() {
            let Some(pipe) = &mut self.pipe else { return Err(self.died()) };
            let moved = if lends { pipe.lend(bytes) } else { pipe.write(bytes) };
            match moved {
                // A slow encoder or disk is waited for, as long as it may take.
                Ok(0) if self.life.is_moving(&self.process, None) || !self.life.is_stuck() => alive(),
                Ok(0) => {
                    self.process.kill();
                    return Err(EncodeError::Stuck);
                }
                Ok(count) => {
                    bytes = &bytes[count..];
                    self.life.moved();
                    alive();
                }
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(self.died()),
                Err(error) => return Err(EncodeError::Pipe(error)),
            }
        }
        Ok(())
    }

    fn died(&mut self) -> EncodeError {
        self.pipe = None;
        let ending = match self.process.wait(Duration::from_secs(2)) {
            Some(status) => ending(status),
            None => "closed its input".to_owned(),
        };
        EncodeError::Died { ending, words: self.process.log().last_words() }
    }
}

/// Whether a process still does something: takes bytes, computes, or writes its file.
#[derive(Debug)]
pub(crate) struct Life {
    ticks: Option<u64>,
    file_bytes: u64,
    since: Instant,
}

impl Life {
    pub(crate) fn new() -> Life {
        Life { ticks: None, file_bytes: 0, since: Instant::now() }
    }

    fn moved(&mut self) {
        self.since = Instant::now();
    }

    /// Whether the process has computed or its file has grown since the last look.
    fn is_moving(&mut self, process: &Process, file: Option<&Path>) -> bool {
        let ticks = process.processor_ticks();
        let file_bytes = file.and_then(|file| std::fs::metadata(file).ok()).map_or(0, |found| found.len());
        let is_moving = ticks != self.ticks || file_bytes != self.file_bytes;
        (self.ticks, self.file_bytes) = (ticks, file_bytes);
        if is_moving {
            self.moved();
        }
        is_moving
    }

    fn is_stuck(&self) -> bool {
        self.since.elapsed() >= STUCK
    }

    /// Waits for the end of a process that makes progress.
    pub(crate) fn wait(
        &mut self,
        process: &mut Process,
        file: &Path,
        alive: &mut dyn FnMut(),
    ) -> Result<std::process::ExitStatus, EncodeError> {
        self.moved();
        loop {
            if let Some(status) = process.wait(LOOK) {
                return Ok(status);
            }
            if !self.is_moving(process, Some(file)) && self.is_stuck() {
                process.kill();
                return Err(EncodeError::Stuck);
            }
            alive();
        }
    }
}

/// Ticks of which a frame of this rate takes a whole number, and at least 90000 to a second.
fn time_base(rate: Option<Rate>) -> TimeBase {
    let num = rate.map_or(90_000, |rate| u64::from(rate.num()));
    let den = num * 90_000_u64.div_ceil(num);
    // Containers store 32 bits.
    TimeBase { num: 1, den: if den < 1 << 31 { den } else { 90_000 } }
}

/// ffmpeg's code of a raw pixel format.
fn tag(format: Format) -> [u8; 4] {
    match format {
        Format::Rgba8 => *b"RGBA",
        Format::Rgb8 => *b"RGB\x18",
        Format::I444 => *b"444P",
        Format::I422 => *b"422P",
        Format::I420 => *b"I420",
        Format::Nv12 => *b"NV12",
        Format::Gray8 => *b"Y800",
    }
}

fn is_packed(format: Format, size: Size) -> bool {
    format.planes(size).all(|plane| plane.row_bytes == plane.stride)
}

fn arguments(encoding: &Encoding, base: TimeBase, file: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "-nostdin",
        // ffmpeg otherwise ends with 0 after a full disk.
        "-xerror",
        "-y",
        "-hide_banner",
        "-nostats",
        "-loglevel",
        "repeat+level+warning",
        "-f",
        "nut",
        "-i",
        "pipe:0",
        "-map",
        "0:v:0",
        "-fps_mode",
        "passthrough",
        "-enc_time_base",
        "-1",
    ]
    .map(OsString::from)
    .into();
    let mut add = |option: &str, value: String| arguments.extend([OsString::from(option), value.into()]);
    let Encoding { container, colours, size, .. } = encoding;
    let is_yuv = !matches!(encoding.format, Format::Rgba8 | Format::Rgb8);
    if *container == Container::Gif {
        // One palette for each frame, since a palette of all frames would need all frames in memory. Frames of less than
        // two hundredths of a second are shown slowly by most programs.
        let fewer = if encoding.thins() { "fps=50," } else { "" };
        add("-vf", format!("{fewer}split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1"));
    } else if is_yuv {
        let matrix =
            colours.matrix.unwrap_or(if size.height < 720 { ColourMatrix::Bt601 } else { ColourMatrix::Bt709 });
        let (matrix, primaries) = match matrix {
            ColourMatrix::Bt601 => ("smpte170m", "smpte170m"),
            ColourMatrix::Bt709 => ("bt709", "bt709"),
        };
        let range = if colours.full_range { "pc" } else { "tv" };
        let evened = encoding.even_size().map_or(String::new(), |even| {
            let (right, bottom) = (even.width - size.width, even.height - size.height);
            format!("pad={}:{},fillborders=right={right}:bottom={bottom}:mode=smear,", even.width, even.height)
        });
        let tags = format!("range={range}:colorspace={matrix}:color_primaries={primaries}:color_trc={matrix}");
        add("-vf", format!("{evened}setparams={tags}"));
        if matches!(encoding.format, Format::I420 | Format::Nv12) {
            let location = if colours.siting == Siting::Centre { "center" } else { "left" };
            add("-chroma_sample_location", location.to_owned());
        }
    }
    add("-c:v", encoding.codec().to_owned());
    if let Some(crf) = encoding.crf {
        add("-crf", crf.to_string());
        // VP9 takes a rate as the upper limit of its quality otherwise.
        add("-b:v", "0".to_owned());
    }
    if let Some(preset) = &encoding.preset {
        add("-preset", preset.clone());
    }
    if container.has_timescale() {
        add("-video_track_timescale", time_base(encoding.rate).den.max(base.den).to_string());
    }
    add("-f", container.muxer().to_owned());
    arguments.push(output(file));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_usual_rates_take_whole_ticks_of_at_most_a_90000th() {
        for (num, den) in [(25, 1), (30_000, 1001), (24_000, 1001), (60, 1), (1, 1), (1, 60), (120_000, 1001)] {
            let base = time_base(Rate::new(num, den));
            assert!(base.num == 1 && base.den >= 90_000, "{num}/{den}: {base:?}");
            assert_eq!(base.den * u64::from(den) % u64::from(num), 0, "{num}/{den}");
        }
        assert_eq!(time_base(None).den, 90_000);
        assert_eq!(time_base(Rate::new(u32::MAX, 1)).den, 90_000);
    }
}
