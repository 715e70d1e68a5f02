//! `image`: pictures from files, one after another.
//!
//! Owns which files come when, and the memory of the last one where it comes again and again.
//! Does not decode by itself; the size of the first file is found by probing.
//!
//! Always: files come in the order of their names, numbers in them counted as numbers; each frame has the size of its own
//! picture; a GIF gives all of its frames, at the rate that was set and not at its own.

use std::fs;
use std::path::{Path, PathBuf};

use image::ImageFormat;
use vramp_files::open_regular;
use vramp_plan::catalog::{Class, Entry, Output, PathUse, RateRule, Setting, SizeRule, Units, Work};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, NoMemory, Setup, Worker};

use crate::files::{ListError, matching};
use crate::picture_file::{self, Gif, PictureError, StillDecoder, kind};

/// What `image` declares.
pub static ENTRY: Entry = Entry {
    name: "image",
    about: "reads PNG, JPEG, WebP, BMP, TIFF and GIF files, turned as their EXIF says",
    example: "image path=photos/*.jpg ! resize size=640x480 ! null",
    outputs: &[Output { size: SizeRule::Probed(None), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[
        Setting::path(
            "path",
            PathUse::ReadMatching,
            "a file, or a pattern such as photos/*.png, in natural order: 2 before 10",
        ),
        Setting::bool("loop", "whether to begin again after the last picture").default("false"),
        Setting::rate("fps", "pictures per second").default("30"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SOURCE
};

/// Reads pictures.
struct Image {
    settings: Settings,
    state: State,
}

/// What was set.
struct Settings {
    path: String,
    again: bool,
}

/// What changes from frame to frame.
#[derive(Default)]
struct State {
    files: Vec<PathBuf>,
    /// The file that comes next.
    next: usize,
    /// The file whose frames are coming.
    gif: Option<Gif>,
    bytes: Vec<u8>,
    still: StillDecoder,
    /// The pixels of the only picture, where it is shown again and again.
    kept: Option<(Size, Vec<u8>)>,
    /// Whether this round through the files has brought a picture.
    made: bool,
    /// The number under which a picture failed, and how.
    failed: Option<(u64, String)>,
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
enum FilesError {
    #[error("`{path}` cannot be read: {error}; check the path and who may read it")]
    Unreadable { path: String, error: std::io::Error },
    #[error("`{path}` is a directory, expected a file; for all pictures in it write `{path}/*.png`")]
    Directory { path: String },
    #[error("`{pattern}` is not a pattern: {problem}; write * for any part of a name, ? for one character")]
    Pattern { pattern: String, problem: &'static str },
    #[error(
        "`{pattern}`: none of its {count} files brought a picture in a whole round; check that they are still there and \
         can be read, or leave out `loop=true`"
    )]
    Fruitless { pattern: String, count: usize },
    #[error("no file matches `{pattern}`; check the pattern, and quote it so that the shell leaves it alone")]
    NoMatch { pattern: String },
}

impl FrameHandler for Image {
    fn start(&mut self) -> Result<(), HandlerError> {
        self.state = State { files: files(&self.settings.path).map_err(HandlerError::failed)?, ..State::default() };
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let number = call.now().number;
        // Tried again, a picture is as broken as before; the next number gets the next picture.
        if let Some((_, problem)) = self.state.failed.take_if(|(failed, _)| *failed == number) {
            return Err(HandlerError::failed(problem));
        }
        match self.picture(call) {
            Ok(Some(frame)) => {
                self.state.made = true;
                call.send(0, frame);
                Ok(Flow::Produced)
            }
            // Whatever `on-error` says: every further round would be the same.
            Ok(None) if self.is_fruitless() => Err(HandlerError::hopeless(FilesError::Fruitless {
                pattern: self.settings.path.clone(),
                count: self.state.files.len(),
            })),
            Ok(None) => Ok(Flow::Ended),
            Err(problem) => {
                self.state.failed = Some((number, problem.clone()));
                Err(HandlerError::failed(problem))
            }
        }
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.state = State::default();
        Ok(())
    }
}

impl Image {
    /// Whether it was to go on for ever, and a whole round through the files has brought no picture.
    fn is_fruitless(&self) -> bool {
        self.settings.again && !self.state.made
    }

    /// The next picture; none at the end, and after a round without pictures.
    fn picture(&mut self, call: &Call<'_>) -> Result<Option<Frame>, String> {
        loop {
            if self.state.gif.is_some() {
                if let Some(frame) = self.next_of_gif(call)? {
                    return Ok(Some(frame));
                }
                continue;
            }
            if self.state.next == self.state.files.len() {
                if !self.settings.again || !self.state.made {
                    return Ok(None);
                }
                (self.state.next, self.state.made) = (0, false);
            }
            let at = self.state.next;
            self.state.next += 1;
            let outcome = self.open(at, call);
            let picture = outcome.map_err(|error| format!("`{}`, {error}", self.state.files[at].display()))?;
            if picture.is_some() {
                return Ok(picture);
            }
        }
    }

    /// Reads a file: its picture, or none where it is a GIF, whose frames come from now on.
    fn open(&mut self, at: usize, call: &Call<'_>) -> Result<Option<Frame>, PictureError> {
        let State { files, bytes, still, kept, .. } = &mut self.state;
        if let Some((size, pixels)) = kept {
            let mut frame = call.lend(Format::Rgba8, *size)?;
            fill(&mut frame, pixels);
            return Ok(Some(frame));
        }
        picture_file::read(&files[at], bytes).map_err(|error| PictureError::Broken {
            at: bytes.len(),
            length: bytes.len(),
            problem: format!("cannot be read: {error}"),
        })?;
        let kind = kind(bytes)?;
        if kind == ImageFormat::Gif {
            self.state.gif = Some(Gif::open(std::mem::take(bytes))?);
            return Ok(None);
        }
        let lend = |size| Ok(call.lend(Format::Rgba8, size)?);
        let frame = still.decode(kind, bytes, lend, |frame: &mut Frame, decode| {
            decode(&mut frame.fill().expect("a frame that was just lent has one holder"))
        })?;
        if self.settings.again && files.len() == 1 {
            // Without memory for a copy the file is decoded again.
            let mut pixels = Vec::new();
            if NoMemory::reserve(&mut pixels, frame.bytes().len()).is_ok() {
                pixels.extend_from_slice(&frame.bytes());
                *kept = Some((frame.meta().size, pixels));
            }
        }
        Ok(Some(frame))
    }

    /// The next frame of the GIF that was opened; at its end, none, and it is closed.
    fn next_of_gif(&mut self, call: &Call<'_>) -> Result<Option<Frame>, String> {
        let name = self.state.files[self.state.next - 1].display();
        let Some(gif) = &mut self.state.gif else { return Ok(None) };
        let lent = call.lend(Format::Rgba8, gif.size()).map_err(PictureError::from);
        let made = lent.and_then(|mut frame| {
            Ok(gif.next()?.map(|pixels| {
                fill(&mut frame, pixels);
                frame
            }))
        });
        let outcome = made.map_err(|error| format!("`{name}`, {error}"));
        if !matches!(outcome, Ok(Some(_)))
            && let Some(gif) = self.state.gif.take()
        {
            self.state.bytes = gif.into_bytes();
        }
        outcome
    }
}

fn fill(frame: &mut Frame, pixels: &[u8]) {
    frame.fill().expect("a frame that was just lent has one holder").copy_from_slice(pixels);
}

/// The files that a path or pattern stands for, in natural order.
fn files(pattern: &str) -> Result<Vec<PathBuf>, FilesError> {
    let found = matching(pattern).map_err(|error| match error {
        ListError::Pattern { problem, .. } => FilesError::Pattern { pattern: pattern.to_owned(), problem },
        ListError::Unreadable { path, error } => FilesError::Unreadable { path: path.display().to_string(), error },
    })?;
    // Of several files, each is looked at when its turn comes.
    if let [only] = &found[..]
        && only == Path::new(pattern)
    {
        let path = only.display().to_string();
        let unreadable = |error| FilesError::Unreadable { path: path.clone(), error };
        if fs::metadata(only).map_err(unreadable)?.is_dir() {
            return Err(FilesError::Directory { path });
        }
        open_regular(only).map_err(unreadable)?;
    }
    if found.is_empty() { Err(FilesError::NoMatch { pattern: pattern.to_owned() }) } else { Ok(found) }
}

/// Makes the source `image`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings { path: setup.text("path")?.to_owned(), again: setup.flag("loop")? };
    Ok(Worker::frames(Image { settings, state: State::default() }))
}
