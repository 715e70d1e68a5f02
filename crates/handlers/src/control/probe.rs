//! `probe`: prints a line for each frame: name, number, time, what the frame carries (size and format, or element type
//! and shape, or data), space, a hash, and the notes of the frame.
//!
//! The hash is XXH64 with seed 0, as 16 hexadecimal digits. For a picture it is over the visible bytes: plane by plane,
//! row by row from the top, without padding; for rgba8 these are red, green, blue and alpha of each pixel. For a tensor
//! it is over the elements, for data over all bytes. The hash does not depend on the machine. A line is written with one
//! call, so that lines of several probes do not mix.
//!
//! The module `crate::probe` is unrelated to this handler: that module reads the headers of sources.

use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::io::Write;

use twox_hash::XxHash64;
use vramp_plan::catalog::{Class, Entry, Units, Work};
use vramp_plan::{Format, Size, Space};
use vramp_runtime::{Call, Flow, Frame, FrameContent, FrameHandler, HandlerError, Now, Picture, Setup, Worker};

use super::pass_on;
use crate::Unhurried;
use crate::visible::visible_ranges;

pub static ENTRY: Entry = Entry {
    name: "probe",
    about: "prints size, format, space, a hash and the notes of each frame to standard error",
    example: "pattern frames=3 ! probe ! null",
    spaces: &[Space::Cpu],
    work: Work { class: Class::Reduce, units: Units::PerPixel(1.0) },
    ..Entry::CONTROL
};

#[derive(Debug)]
struct ProbeHandler<W> {
    settings: Settings,
    state: State,
    to: W,
}

#[derive(Debug)]
struct Settings {
    name: String,
}

/// The line of the last frame, whose memory is reused.
#[derive(Debug, Default)]
struct State {
    line: String,
}

impl<W: Write> ProbeHandler<W> {
    fn say(&mut self, now: Now, frame: &Frame) -> Result<(), HandlerError> {
        let (meta, line) = (frame.meta(), &mut self.state.line);
        let hash = hash(frame);
        line.clear();
        let mut written = || -> std::fmt::Result {
            write!(line, "{}: frame {} pts {} ns ", self.settings.name, now.number, now.pts_ns)?;
            match &meta.content {
                // Width and height are formatted separately, because formatting a size allocates.
                FrameContent::Video(Picture { size, format, .. }) => {
                    write!(line, "{}x{} {}", size.width, size.height, format.name())?;
                }
                other => write!(line, "{other}")?,
            }
            write!(line, " {} {hash:016x}", frame.space().name())?;
            if let Some(notes) = frame.notes() {
                write!(line, " {notes}")?;
            }
            line.write_char('\n')
        };
        written().map_err(HandlerError::failed)?;
        self.to.write_all(line.as_bytes()).map_err(|error| {
            HandlerError::failed(format!("the line of a frame cannot be written to standard error: {error}"))
        })
    }
}

impl<W: Write + Send> FrameHandler for ProbeHandler<W> {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let now = call.now();
        if let Some(frame) = call.input(0) {
            self.say(now, frame)?;
        }
        Ok(pass_on(call))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings { name: setup.name.to_owned() };
    Ok(Worker::frames(ProbeHandler { settings, state: State::default(), to: Unhurried(std::io::stderr()) }))
}

/// XXH64 of bytes, with the same seed as for frames.
pub fn hash_of_bytes(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// The hash of the visible bytes of a frame in host memory, as `probe` prints it.
pub fn hash(frame: &Frame) -> u64 {
    match &frame.meta().content {
        FrameContent::Video(Picture { format, size, .. }) => hash_of(*format, *size, &frame.bytes()),
        FrameContent::Tensor(shape) => hash_of_bytes(&frame.bytes()[..shape.element_bytes() as usize]),
        FrameContent::Data { .. } => hash_of_bytes(&frame.bytes()),
    }
}

fn hash_of(format: Format, size: Size, bytes: &[u8]) -> u64 {
    let mut hash = XxHash64::with_seed(0);
    visible_ranges(format, size).for_each(|range| hash.write(&bytes[range]));
    hash.finish()
}

#[cfg(test)]
mod tests {
    use vramp_runtime::{Birth, FramePool, Meta};

    use super::*;

    /// The output of `xxhsum -H1`.
    #[test]
    fn known_texts_have_their_known_hashes() {
        for (text, known) in [("", 0xef46_db37_51d8_e999), ("a", 0xd24e_c4f1_a98c_6e5b), ("abc", 0x44bc_2cf5_ad77_0999)]
        {
            assert_eq!(hash_of_bytes(text.as_bytes()), known, "{text}");
        }
    }

    #[test]
    fn pieces_do_not_matter() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * i % 251) as u8).collect();
        for length in [0, 1, 31, 32, 33, 64, 100, 1000] {
            for piece in [1, 3, 31, 32, 33, 70] {
                let mut pieces = XxHash64::with_seed(0);
                bytes[..length].chunks(piece).for_each(|piece| pieces.write(piece));
                assert_eq!(pieces.finish(), hash_of_bytes(&bytes[..length]), "{length} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn padding_does_not_count() {
        let size = Size { width: 5, height: 3 };
        for format in Format::RANKED {
            let mut bytes = vec![7; format.frame_bytes(size) as usize];
            let mut seen = XxHash64::with_seed(0);
            for plane in format.planes(size) {
                for row in 0..plane.rows {
                    let start = (plane.start + row * plane.stride) as usize;
                    bytes[start..start + plane.row_bytes as usize].fill(1);
                    seen.write(&vec![1; plane.row_bytes as usize]);
                }
            }
            assert_eq!(hash_of(format, size, &bytes), seen.finish(), "{format:?}");
        }
    }

    #[test]
    fn a_line_says_who_when_what_where_and_the_hash() {
        let pool = FramePool::new(1 << 20);
        let mut frame = pool.lend(Meta::new(Format::Rgba8, Size { width: 2, height: 1 })).unwrap();
        frame.fill().unwrap().copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let settings = Settings { name: "here".to_owned() };
        let mut probe = ProbeHandler { settings, state: State::default(), to: Vec::new() };
        let now = Now { number: 12, pts_ns: 400_000_000, delta_ns: 0, birth: Birth::default() };
        probe.say(now, &frame).unwrap();
        let line = String::from_utf8(probe.to).unwrap();
        assert_eq!(line, "here: frame 12 pts 400000000 ns 2x1 rgba8 cpu 814c43eb29646e14\n");
    }
}
