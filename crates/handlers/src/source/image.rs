//! `image`: reads image files one after another.
//!
//! Files are read in natural order: `a2` comes before `a10`. Each frame has the size of its own image; probing finds
//! the size of the first image. A GIF gives all its frames, at the rate of the setting `fps` and not at the rate of the
//! GIF. A single image that repeats is kept in memory.

use std::fs;
use std::path::{Path, PathBuf};

use image::ImageFormat;
use vramp_files::open_regular;
use vramp_plan::catalog::{Class, Entry, Output, PathUse, RateRule, Setting, SizeRule, Units, Work};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, NoMemory, Setup, StartContext, Worker};

use crate::files::{ListError, matching};
use crate::picture_file::{self, Gif, PictureError, StillDecoder, kind};

pub static ENTRY: Entry = Entry {
    name: "image",
    about: "reads PNG, JPEG, WebP, BMP, TIFF and GIF files, rotated as their EXIF data says",
    example: "image path=photos/*.jpg ! resize size=640x480 ! null",
    outputs: &[Output { size: SizeRule::Probed(None), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[
        Setting::path(
            "path",
            PathUse::ReadMatching,
            "file, or a pattern such as photos/*.png, whose files are read in natural order: 2 before 10",
        ),
        Setting::bool("loop", "start again after the last image").default("false"),
        Setting::rate("fps", "images per second").default("30"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SOURCE
};

struct Image {
    settings: Settings,
    state: State,
}

struct Settings {
    path: String,
    again: bool,
}

#[derive(Default)]
struct State {
    files: Vec<PathBuf>,
    /// Index of the next file.
    next: usize,
    /// The GIF whose frames are being sent, if a GIF is open.
    gif: Option<Gif>,
    bytes: Vec<u8>,
    still: StillDecoder,
    /// The pixels of the image, if there is only one image and it repeats.
    kept: Option<(Size, Vec<u8>)>,
    /// Whether this round through the files has produced a frame.
    made: bool,
    /// The frame number and the message of a failure.
    failed: Option<(u64, String)>,
}

#[derive(Debug, thiserror::Error)]
enum FilesError {
    #[error("`{path}` cannot be read: {error}; check the path and the permissions of the file")]
    Unreadable { path: String, error: std::io::Error },
    #[error("`{path}` is a directory, expected a file; write `{path}/*.png` for all PNG files in that directory")]
    Directory { path: String },
    #[error("`{pattern}` is not a valid pattern: {problem}; write * for any part of a name, and ? for one character")]
    Pattern { pattern: String, problem: &'static str },
    #[error(
        "`{pattern}`: none of its {count} files gave an image in a whole round; check that the files still \
         exist and can be read, or remove `loop=true`"
    )]
    Fruitless { pattern: String, count: usize },
    #[error(
        "no file matches `{pattern}`; check the pattern, and put it in quotes so that the shell does not expand it"
    )]
    NoMatch { pattern: String },
}

impl FrameHandler for Image {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.state = State { files: files(&self.settings.path).map_err(HandlerError::failed)?, ..State::default() };
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let number = call.now().number;
        // After a failure, a call with the same number fails again, and the next number gets the next image.
        if let Some((_, problem)) = self.state.failed.take_if(|(failed, _)| *failed == number) {
            return Err(HandlerError::failed(problem));
        }
        match self.picture(call) {
            Ok(Some(frame)) => {
                self.state.made = true;
                call.send(0, frame);
                Ok(Flow::Produced)
            }
            // This error ends the run whatever `on-error` says, because every further round would be the same.
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
    /// Whether `loop` is set and a whole round through the files has produced no image.
    fn is_fruitless(&self) -> bool {
        self.settings.again && !self.state.made
    }

    /// The next frame; `None` at the end, and after a round without images.
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

    /// Reads a file: returns its image, or `None` for a GIF, whose frames `next_of_gif` returns.
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
            // If there is no memory for a copy, the file is decoded again for every frame.
            let mut pixels = Vec::new();
            if NoMemory::reserve(&mut pixels, frame.bytes().len()).is_ok() {
                pixels.extend_from_slice(&frame.bytes());
                *kept = Some((frame.meta().picture().size, pixels));
            }
        }
        Ok(Some(frame))
    }

    /// The next frame of the open GIF; `None` at the end of the GIF. At the end and after an error the GIF is closed.
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

/// The files that match a path or pattern, in natural order.
fn files(pattern: &str) -> Result<Vec<PathBuf>, FilesError> {
    let found = matching(pattern).map_err(|error| match error {
        ListError::Pattern { problem, .. } => FilesError::Pattern { pattern: pattern.to_owned(), problem },
        ListError::Unreadable { path, error } => FilesError::Unreadable { path: path.display().to_string(), error },
    })?;
    // Only a single file is checked here. Each file that matches a pattern is checked when it is read.
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

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings { path: setup.text("path")?.to_owned(), again: setup.flag("loop")? };
    Ok(Worker::frames(Image { settings, state: State::default() }))
}
