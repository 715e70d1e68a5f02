//! One recipe of the page, run in a folder of its own with generated media.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::page::{self, Section};
use super::picture::{Picture, encode};
use super::scene::Scene;
use crate::program::{Run, cache, dir, ends_with, finish};

/// The size and rate of the clips.
pub(super) const WIDTH: usize = 320;
pub(super) const HEIGHT: usize = 180;
pub(super) const FPS: u32 = 15;

/// How much a made picture may differ from the stored one.
#[derive(Clone, Copy)]
pub(super) enum Closeness {
    /// Not at all.
    Exact,
    /// At least this many dB, since versions of encoders and decoders differ.
    Decibel(f64),
    /// At least this many dB between the means of squares of 10x10 pixels, for noise that is never the same.
    Blocks(f64),
}

/// Versions of encoders differ by less, and the pictures of the page by more than 5 dB more (a test in mod.rs).
pub(super) const LOSSY: Closeness = Closeness::Decibel(32.0);

pub(super) struct Recipe {
    pub(super) dir: PathBuf,
    title: String,
    commands: VecDeque<String>,
    texts: VecDeque<String>,
    pictures: VecDeque<String>,
}

impl Recipe {
    /// Reads a recipe from the page and puts the files that it shows into a new folder.
    pub(super) fn open(title: &str, test: &str) -> Recipe {
        let section = page::sections().into_iter().find(|section| section.title == title);
        let Section { title, fences, pictures } = section.unwrap_or_else(|| panic!("the page has no `{title}`"));
        let dir = dir(&format!("cookbook_{test}"));
        let (mut commands, mut texts) = (VecDeque::new(), VecDeque::new());
        for fence in fences {
            match fence.language.as_str() {
                "sh" => commands.push_back(fence.text),
                "text" | "mermaid" => texts.push_back(fence.text),
                _ => {
                    let name = shown_file(&fence.text).unwrap_or_else(|| panic!("no file has this text:\n{fence:?}"));
                    std::fs::write(dir.join(name), fence.text).unwrap();
                }
            }
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vramp"), dir.join("vramp")).unwrap();
        Recipe { dir, title, commands, texts, pictures: pictures.into() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    // ---- commands

    /// Runs the next block of commands, which succeeds.
    #[track_caller]
    pub(super) fn run(&mut self) -> Run {
        self.run_to(0)
    }

    /// Runs the next block of commands, which ends with this exit code.
    #[track_caller]
    pub(super) fn run_to(&mut self, code: i32) -> Run {
        let block = self.next_block();
        ends_with(code, finish(self.shell(&block)))
    }

    /// The next block, for tests that interrupt it or name another address.
    pub(super) fn next_block(&mut self) -> String {
        self.commands.pop_front().unwrap_or_else(|| panic!("`{}` has no further commands", self.title))
    }

    /// A shell that runs this block and finds the tested program as `vramp`.
    pub(super) fn shell(&self, block: &str) -> Command {
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap();
        command.args(["-e", "-c", block]).current_dir(&self.dir);
        command.env("PATH", format!("{}:{path}", self.dir.display())).env("XDG_CACHE_HOME", cache());
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    // ---- what the page shows

    /// The next block of printed text.
    pub(super) fn text(&mut self) -> String {
        self.texts.pop_front().unwrap_or_else(|| panic!("`{}` shows no further text", self.title))
    }

    /// Compares with the next picture of the page, or stores it if `VRAMP_COOKBOOK_WRITE` is set.
    #[track_caller]
    pub(super) fn picture(&mut self, made: &Picture, closeness: Closeness) {
        let name = self.pictures.pop_front().unwrap_or_else(|| panic!("`{}` shows no further picture", self.title));
        let stored = page::folder().join(&name);
        if std::env::var_os("VRAMP_COOKBOOK_WRITE").is_some() {
            return made.store(&stored);
        }
        assert!(stored.is_file(), "docs/cookbook/{name} is missing; TESTING.md says how to make it");
        let stored = Picture::of(&stored);
        let is_close = match closeness {
            Closeness::Exact => *made == stored,
            Closeness::Decibel(least) => made.psnr(&stored) >= least,
            Closeness::Blocks(least) => made.blocks().psnr(&stored.blocks()) >= least,
        };
        if !is_close {
            made.write(&self.path("made.png"), &[]);
            let made_as = self.path("made.png");
            let (fine, coarse) = (made.psnr(&stored), made.blocks().psnr(&stored.blocks()));
            panic!("{} differs from docs/cookbook/{name}: {fine:.1} dB, blocks {coarse:.1} dB", made_as.display());
        }
    }

    /// Asserts that everything that the page shows was run or compared.
    pub(super) fn finish(self) {
        assert!(self.commands.is_empty(), "not run: {:?}", self.commands);
        assert!(self.texts.is_empty(), "not compared: {:?}", self.texts);
        assert!(self.pictures.is_empty(), "not compared: {:?}", self.pictures);
    }

    // ---- results

    /// All frames of a file in the folder.
    pub(super) fn frames(&self, name: &str) -> Vec<Picture> {
        Picture::all(&self.path(name))
    }

    pub(super) fn frame(&self, name: &str, number: usize) -> Picture {
        self.frames(name).swap_remove(number)
    }

    /// The names of all files in a folder, sorted.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let names = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    // ---- media

    /// Two seconds of the balloon over the hills in the afternoon, with sound.
    pub(super) fn clip(&self, name: &str) -> Vec<Picture> {
        self.clip_of(name, |time| Scene::at(16.0 + time / 2.0, time).landscape())
    }

    pub(super) fn clip_of(&self, name: &str, draw: impl Fn(f64) -> Vec<u8>) -> Vec<Picture> {
        let frames = (0..2 * FPS).map(|number| draw(f64::from(number) / f64::from(FPS)));
        let frames: Vec<Picture> = frames.map(|rgb| Picture::new(WIDTH, HEIGHT, rgb)).collect();
        self.encode(&frames, "-f lavfi -i sine=440:duration=2 -c:a aac", name);
        frames
    }

    /// Encodes frames in high quality.
    pub(super) fn encode(&self, frames: &[Picture], more: &str, name: &str) {
        let options = format!("{more} -c:v libx264 -preset veryfast -crf 8 -pix_fmt yuv420p");
        encode(frames, FPS, &options, &self.path(name));
    }

    /// A photo of an hour of the day.
    pub(super) fn photo(&self, scene: Scene, name: &str) -> Picture {
        let picture = Picture::new(scene.width, scene.height, scene.landscape());
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let is_jpeg = Path::new(name).extension().is_some_and(|end| end == "jpg");
        picture.write(&file, if is_jpeg { &["-pix_fmt", "yuvj420p", "-q:v", "2"] } else { &[] });
        picture
    }
}

/// The name of the file in docs/cookbook that has this text.
fn shown_file(text: &str) -> Option<String> {
    let mut entries = std::fs::read_dir(page::folder()).unwrap().map(|entry| entry.unwrap().path());
    let file = entries.find(|path| std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes()))?;
    Some(file.file_name().unwrap().to_str().unwrap().to_owned())
}
