//! `vramp demo --model`: a neural network finds the person in the picture of a camera, live.
//!
//! Without a camera, a portrait moves before the network. The demo first writes a picture of the portrait, so that
//! there is something to look at without a window or a terminal too; there, the live part runs for `--seconds`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use vramp::handlers::app::AppInput;
use vramp::media::cameras;
use vramp::model::shipped;
use vramp::plan::{Graph, RunOptions, Size};
use vramp::runtime::{Registry, Report};
use vramp::{Error, Pipeline};

use crate::args::DemoArgs;
use crate::failure::CliError;
use crate::interrupt::Interrupts;
use crate::page;
use crate::request;
use crate::run::{Live, Total, check_budget, whole_ms};
use crate::windows::{beside_windows, live_sink};

use super::{finished, say};

/// The part of the portrait that moves.
const VIEW: Size = Size { width: 320, height: 320 };

/// The size of the portrait.
const PORTRAIT: Size = Size { width: 384, height: 384 };

/// Frames per second of the moving portrait, and frames until it is where it began.
const RATE: u32 = 30;
const ROUND: u32 = 240;

pub(super) fn run(args: &DemoArgs, registry: &Registry) -> Result<(), CliError> {
    let interrupts = Interrupts::listen()?;
    let files = Files::write().map_err(CliError::Failed)?;
    let output = args.output.to_str().ok_or_else(|| {
        CliError::Wrong(anyhow!("--output {} is not UTF-8 text; help: choose another name", args.output.display()))
    })?;
    // A percent sign would number files.
    let sink = format!("png path=\"{}\"", quoted(&output.replace('%', "%%")));
    still(args, registry, &text(&files, &files.portrait(), PORTRAIT, "", &sink), &interrupts)?;
    say(args, &format!("{output} shows a person over a blurred background, and the mask that the network found."));

    let camera = cameras().first().map(|camera| camera.device.clone());
    let warn = |words: &str| page::words(&format!("warning: {words}"));
    let report = with_fallback(camera.as_deref(), warn, |camera| live(args, registry, &files, camera, &interrupts))?;
    conclude(args, &report)?;
    check_budget(&args.flags, &report)
}

/// Runs with a camera if there is one. If it cannot be opened, for example because another program uses it, warns and runs
/// without one.
fn with_fallback<T>(
    camera: Option<&str>,
    warn: impl Fn(&str),
    run: impl Fn(Option<&str>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let Some(device) = camera else { return run(None) };
    match run(Some(device)) {
        Err(CliError::Failed(error)) => {
            warn(&format!("the camera {device} does not work, so a portrait moves instead: {error:#}"));
            run(None)
        }
        outcome => outcome,
    }
}

/// The part that moves: from a camera, or the portrait.
fn live(
    args: &DemoArgs,
    registry: &Registry,
    files: &Files,
    camera: Option<&str>,
    interrupts: &Interrupts,
) -> Result<Report, CliError> {
    let (source, size) = match camera {
        Some(device) => (format!("camera device=\"{}\"", quoted(device)), Size { width: 640, height: 480 }),
        None => (format!("app size={VIEW} fps={RATE}"), VIEW),
    };
    let (sink, is_seen) = live_sink();
    let graph = read(registry, &text(files, &source, size, "! text \"{fps} fps\" x=12 y=32 ", sink))?;
    let moving = if camera.is_none() { Some(pixels(&files.portrait())?) } else { None };
    say(args, camera.map_or("There is no camera: a portrait moves.", |_| "Live from the camera."));
    let seconds = args.seconds.or((!is_seen).then_some(super::SECONDS));
    beside_windows(&graph, registry, |registry, windows| {
        let live = Live::new(args.flags.quiet || is_seen, seconds.map_or(Total::Unknown, Total::Time), false);
        let options = RunOptions { longest_ms: seconds.map(whole_ms), ..request::options(&args.flags)? };
        let builder = request::on_this_machine(&args.flags, &graph, registry)?.options(options);
        let mut pipeline = builder.listener(live.listener()).build()?;
        windows.attach(&pipeline);
        interrupts.stop_instead(pipeline.stopper());
        live.begin();
        let outcome = match &moving {
            None => pipeline.outcome(),
            Some(pixels) => {
                let input = pipeline.input("view")?;
                std::thread::scope(|scope| {
                    scope.spawn(|| push(&input, pixels));
                    let outcome = pipeline.outcome();
                    input.close();
                    outcome
                })
            }
        };
        live.end();
        finished(outcome?, interrupts)
    })
}

/// Prints what the live part reached.
fn conclude(args: &DemoArgs, report: &Report) -> Result<(), CliError> {
    if args.json {
        let mut line = serde_json::to_string(report).map_err(|error| CliError::Failed(error.into()))?;
        line.push('\n');
        return page::result(line.as_bytes());
    }
    let network = report.handlers.iter().find(|handler| handler.name == "network").and_then(|handler| handler.p50_us);
    let took = network.map_or(String::new(), |us| format!("; the network took {:.1} ms a frame", us / 1e3));
    let line = format!("{} frames, {:.0} fps on {}{took}\n", report.frames, report.fps, report.device);
    page::result(line.as_bytes())
}

/// A pipeline that shows frames of this size with a blurred background, and the mask beside them.
fn text(files: &Files, source: &str, size: Size, caption: &str, sink: &str) -> String {
    let (model, width, Size { height, .. }) = (files.path("selfie.onnx"), 2 * size.width, size);
    format!(
        "{source} name=view ! blur sigma=12 ! mix name=person mode=over amount=1 {caption}! sides.in0
         view. ! model path=\"{model}\" output=mask name=network ! person.b
         network. ! colormatrix m=0,0,0,1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,0,1 ! sides.in1
         compositor name=sides layout=row size={width}x{height} ! {sink}"
    )
}

fn read(registry: &Registry, text: &str) -> Result<Graph, CliError> {
    let spec = vramp::read(text, registry.catalog()).map_err(|error| CliError::Failed(anyhow!("{error}")))?;
    registry.check(&spec).map_err(|error| CliError::Failed(error.into()))
}

/// Writes the picture.
fn still(args: &DemoArgs, registry: &Registry, text: &str, interrupts: &Interrupts) -> Result<(), CliError> {
    let graph = read(registry, text)?;
    let flags = crate::args::SharedFlags { fps: None, ..args.flags.clone() };
    let mut pipeline = request::on_this_machine(&flags, &graph, registry)?.build()?;
    interrupts.stop_instead(pipeline.stopper());
    finished(pipeline.outcome()?, interrupts).map(drop)
}

/// The pixels of the portrait.
fn pixels(image: &str) -> Result<Vec<u8>, CliError> {
    let pull = || -> Result<Option<Vec<u8>>, Error> {
        let running = Pipeline::parse(format!("{image} ! app")).build()?.spawn()?;
        let frame = running.pull()?.map(|frame| frame.bytes().to_vec());
        running.wait()?;
        Ok(frame)
    };
    pull()?.ok_or_else(|| CliError::Failed(anyhow!("the portrait has no picture")))
}

/// Pushes views that move in a circle over the portrait, until the run ends.
fn push(input: &AppInput, pixels: &[u8]) {
    let mut view = Vec::with_capacity(VIEW.pixels() as usize * 4);
    for number in (0..ROUND).cycle() {
        let angle = f64::from(number) / f64::from(ROUND) * std::f64::consts::TAU;
        let place = |most: u32, way: f64| (f64::from(most) * (0.5 + 0.5 * way)).round() as usize;
        let left = place(PORTRAIT.width - VIEW.width, angle.sin());
        let top = place(PORTRAIT.height - VIEW.height, -angle.cos());
        view.clear();
        for row in pixels.chunks_exact(PORTRAIT.width as usize * 4).skip(top).take(VIEW.height as usize) {
            view.extend_from_slice(&row[left * 4..][..VIEW.width as usize * 4]);
        }
        if input.push(&view).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_secs(1) / RATE);
    }
}

/// The model and the portrait as files in a temporary folder, which is removed at the end.
struct Files(PathBuf);

/// Names that are tried for the folder.
const TRIES: u32 = 1000;

impl Files {
    fn write() -> anyhow::Result<Files> {
        Files::write_in(&std::env::temp_dir())
    }

    /// Writes the files in a new folder in `parent`. Others may write there too, so an entry that exists is not used.
    fn write_in(parent: &Path) -> anyhow::Result<Files> {
        let files = Files(fresh_folder(parent).with_context(|| parent.display().to_string())?);
        for (name, bytes) in [("selfie.onnx", shipped::SELFIE), ("portrait.jpg", shipped::PORTRAIT)] {
            let path = files.0.join(name);
            std::fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        }
        Ok(files)
    }

    /// The source that reads the portrait.
    fn portrait(&self) -> String {
        format!("image path=\"{}\"", self.path("portrait.jpg"))
    }

    /// The path of a file, for the text of a setting in quotes.
    fn path(&self, name: &str) -> String {
        quoted(&self.0.join(name).display().to_string())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What remains is in the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a folder with a name of its own that only this user can write.
fn fresh_folder(parent: &Path) -> std::io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let mut number = 0;
    loop {
        let folder = parent.join(format!("vramp-demo-{}-{number}", std::process::id()));
        match builder.create(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number + 1 < TRIES => number += 1,
            made => return made.map(|()| folder),
        }
    }
}

/// Text inside quotes.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_files_are_in_a_new_folder_even_if_others_have_taken_its_name() {
        let parent = std::env::temp_dir().join(format!("vramp-demo-test-{}", std::process::id()));
        std::fs::create_dir(&parent).unwrap();
        let taken = parent.join(format!("vramp-demo-{}-0", std::process::id()));
        std::fs::create_dir(&taken).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&taken, parent.join(format!("vramp-demo-{}-1", std::process::id()))).unwrap();
        let files = Files::write_in(&parent).unwrap();
        assert!(files.0.join("selfie.onnx").is_file() && files.0 != taken);
        assert_eq!(std::fs::read_dir(&taken).unwrap().count(), 0, "nothing is written there, nor through a link");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&files.0).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o700);
        }
        let folder = files.0.clone();
        drop(files);
        assert!(!folder.exists() && taken.exists());
        std::fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn a_camera_that_does_not_work_is_replaced_by_the_portrait_with_a_warning() {
        let (warnings, runs) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let warn = |words: &str| warnings.borrow_mut().push(words.to_owned());
        let run = |camera: Option<&str>| {
            runs.borrow_mut().push(camera.map(str::to_owned));
            if camera.is_some() { Err(CliError::Failed(anyhow!("device is busy"))) } else { Ok(1) }
        };
        assert!(matches!(with_fallback(Some("0"), warn, run), Ok(1)));
        assert_eq!(*runs.borrow(), [Some("0".to_owned()), None]);
        assert_eq!(*warnings.borrow(), ["the camera 0 does not work, so a portrait moves instead: device is busy"]);
        // Ctrl-C during the camera's run ends the demo.
        let interrupted = |_: Option<&str>| -> Result<u32, CliError> { Err(CliError::Interrupted) };
        assert!(matches!(with_fallback(Some("0"), warn, interrupted), Err(CliError::Interrupted)));
        assert_eq!(warnings.borrow().len(), 1);
    }
}
