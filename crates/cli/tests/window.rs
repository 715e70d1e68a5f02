//! The sink `window` and `--preview` on a virtual screen: pixels, keys, sizes, the end of the run.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::PathBuf;

use crate::desktop::{Desktop, SCREEN, Shot, ended, eventually};
use crate::program::{ends_with, json, vramp};

/// An empty folder of this test.
fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("window").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_screen_shows_the_frame_to_the_bit_from_either_side_and_nothing_is_downloaded() {
    let (desktop, folder) = (Desktop::start(), folder("exact"));
    let still = "pattern kind=checker size=321x243 color=c08040 label=false ! blur sigma=1.5";
    let file = folder.join("frame-%d.png");
    let text = format!("{still} ! png path={}", file.display());
    ends_with(0, vramp(&["run", &text, "--frames", "1", "--cpu"]));
    let frame = Shot::of_png(&folder.join("frame-0.png"));
    for side in ["--gpu", "--cpu"] {
        let run = desktop.vramp(&folder, &["run", &format!("{still} ! window title=exact"), side, "--json"]);
        let window = desktop.window("exact");
        window.wait_for("the frame, to the bit", |shot| *shot == frame);
        assert_eq!(window.size(), (321, 243), "pixels of the screen");
        window.close();
        let run = ends_with(0, ended(run));
        let report = json(&run);
        assert_eq!(report["counters"]["downloads"], 0);
        assert_eq!(report["counters"]["uploads"], 0, "the window's own upload is not one of the pipeline");
        assert_eq!(report["dropped"]["link_full"], 0);
        assert_eq!(report["memory"]["leaked"], 0, "{report}");
        assert!(run.err.contains(" shown"), "{}", run.err);
    }
}

/// A slow screen holds one frame more, perhaps late in the run, so that the device makes one more buffer and bind group.
/// Only these may take memory.
#[test]
fn steady_frames_of_a_window_take_nothing_from_the_heap_on_either_side() {
    let (desktop, folder) = (Desktop::start(), folder("budget"));
    for side in ["--gpu", "--cpu"] {
        let text = "pattern size=160x120 fps=100 ! window";
        let budget = "uploads=0,downloads=0,drops=0";
        let run = desktop.vramp(&folder, &["run", text, side, "--frames", "200", "--budget", budget, "--json"]);
        let report = json(&ends_with(0, ended(run)));
        assert_eq!(report["frames"], 200);
        let steady = |key: &str| report["steady"][key].as_f64().unwrap() * report["steady"]["frames"].as_f64().unwrap();
        let made = steady("gpu_allocs") + steady("bind_groups");
        assert!(steady("heap_allocs") <= 16.0 * made, "{side}: {report}");
        assert!(side == "--gpu" || made == 0.0, "{report}");
    }
}

#[test]
fn space_pauses_a_dot_steps_and_s_saves_what_is_seen() {
    let (desktop, folder) = (Desktop::start(), folder("keys"));
    let run = desktop.vramp(
        &folder,
        &["run", "pattern kind=noise size=160x120 fps=20 label=false ! window title=keys", "--gpu", "--json"],
    );
    let window = desktop.window("keys");
    let first = window.shot();
    window.wait_for("moving noise", |shot| *shot != first);
    window.key("space");
    window.wait_for_title("keys (paused)");
    let paused = window.shot();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(window.shot(), paused, "six frames later");
    window.key("s");
    let saved = |count: usize| {
        eventually("a saved picture", || {
            let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
            files.retain(|path| path.extension().is_some_and(|end| end == "png"));
            files.sort();
            (files.len() == count).then_some(files)
        })
    };
    assert_eq!(Shot::of_png(&saved(1)[0]), paused);
    window.key("period");
    let stepped = window.wait_for("the next frame", |shot| *shot != paused);
    window.key("s");
    let files = saved(2);
    assert_eq!(Shot::of_png(&files[1]), stepped);
    let number = |at: usize| -> u64 {
        let name = files[at].file_stem().unwrap().to_string_lossy().into_owned();
        name.strip_prefix("vramp-").unwrap().parse().unwrap()
    };
    assert_eq!(number(1), number(0) + 1, "one frame, not more");
    window.key("space");
    window.wait_for_title("keys");
    window.wait_for("noise again", |shot| *shot != stepped);
    window.close();
    let run = ends_with(0, ended(run));
    assert_eq!(json(&run)["counters"]["downloads"], 2, "the two saved pictures");
    assert!(run.err.contains("saved frame"), "{}", run.err);
}

#[test]
fn a_resized_window_keeps_the_proportions_and_f_covers_the_screen() {
    let (desktop, folder) = (Desktop::start(), folder("sizes"));
    let run = desktop.vramp(
        &folder,
        &["run", "pattern kind=solid size=200x100 color=ff8000 label=false ! window title=sizes", "--gpu"],
    );
    let window = desktop.window("sizes");
    let (orange, black) = ([255, 128, 0], [0, 0, 0]);
    window.resize(300, 300);
    let shot = window.wait_for("the wide picture in a square", |shot| shot.width == 300 && shot.at(150, 150) == orange);
    assert_eq!([shot.at(0, 75), shot.at(299, 224)], [orange; 2], "150 rows in the middle");
    assert_eq!([shot.at(0, 74), shot.at(299, 225), shot.at(150, 0), shot.at(150, 299)], [black; 4]);
    window.resize(40, 30);
    window.wait_for("a small window", |shot| shot.at(20, 15) == orange && shot.at(20, 0) == black);
    window.key("f");
    window.wait_for_size(SCREEN);
    window.wait_for("the whole screen", |shot| shot.at(0, 512) == orange && shot.at(640, 0) == black);
    window.key("f");
    window.wait_for_size((40, 30));
    window.close();
    ends_with(0, ended(run));
}

#[test]
fn h_lists_the_settings_and_arrows_change_them() {
    let (desktop, folder) = (Desktop::start(), folder("overlay"));
    let pipeline =
        "pattern kind=solid size=480x320 color=404040 label=false ! brightness amount=0 ! window title=overlay";
    let run = desktop.vramp(&folder, &["run", pipeline, "--gpu"]);
    let window = desktop.window("overlay");
    let grey = [64, 64, 64];
    window.wait_for("the picture", |shot| shot.pixels.iter().all(|pixel| *pixel == grey));
    window.key("h");
    let shot = window.wait_for("the overlay", |shot| shot.at(14, 14) != grey);
    assert_eq!(shot.at(470, 310), grey, "the picture around it");
    assert!(shot.pixels.iter().any(|pixel| pixel[0] > 200), "letters");
    // The last setting is that of `brightness`, and the choice stops there.
    for _ in 0..12 {
        window.key("Down");
    }
    window.key("Right");
    let brighter = window.wait_for("a brighter picture", |shot| shot.at(470, 310)[0] > 64);
    assert!(brighter.at(470, 310)[0] < 100, "one step");
    window.key("Escape");
    window.wait_for("only the picture", |shot| shot.at(14, 14) == shot.at(470, 310));
    window.close();
    ends_with(0, ended(run));
}

#[test]
fn closing_one_of_two_windows_ends_the_run_and_files_are_complete() {
    let (desktop, folder) = (Desktop::start(), folder("two"));
    let pipeline = "pattern name=p kind=noise size=64x48 fps=30 ! window title=one; \
                    p. ! invert ! window title=two; p. ! y4m path=out.y4m";
    let run = desktop.vramp(&folder, &["run", pipeline, "--cpu", "--json"]);
    let (one, two) = (desktop.window("one"), desktop.window("two"));
    let first = one.shot();
    one.wait_for("moving noise", |shot| *shot != first);
    two.close();
    let run = ends_with(0, ended(run));
    assert_eq!(json(&run)["dropped"]["stopped"], 0, "closing is an end of the sources, not an interruption");
    assert!(!one.is_open() && !two.is_open());
    let (frames, written) = (json(&run)["frames"].as_u64().unwrap(), std::fs::read(folder.join("out.y4m")).unwrap());
    let count = written.windows(6).filter(|bytes| *bytes == b"FRAME\n").count() as u64;
    assert!(count > 0 && count <= frames, "{count} of {frames}");
}

#[test]
fn a_window_follows_its_frames_when_the_device_is_lost() {
    let (desktop, folder) = (Desktop::start(), folder("loss"));
    for rule in ["reopen", "cpu"] {
        let pipeline = format!("pattern kind=noise size=64x48 fps=30 label=false ! blur ! window title={rule}");
        let args = ["run", &pipeline, "--gpu", "--lose-device-at", "20", "--on-loss", rule, "--frames", "60", "--json"];
        let run = ends_with(0, ended(desktop.vramp(&folder, &args)));
        let report = json(&run);
        assert_eq!(report["recoveries"].as_array().map(Vec::len), Some(1), "{}", run.err);
        assert_eq!(report["memory"]["leaked"], 0, "{report}");
        let words = run.err.lines().find(|line| line.contains("frames shown")).unwrap();
        let shown: u64 = words.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
        assert!(shown > 50, "{words}");
    }
}

#[test]
fn a_preview_shows_the_frames_of_the_sink_and_never_slows_the_run() {
    let (desktop, folder) = (Desktop::start(), folder("preview"));
    let pipeline = "pattern kind=solid size=64x48 color=2040ff label=false ! invert ! null";
    let run = desktop.vramp(&folder, &["run", pipeline, "--preview", "--cpu", "--json"]);
    let window = desktop.window("preview");
    window.wait_for("the inverted colour", |shot| shot.at(30, 20) == [0xdf, 0xbf, 0]);
    window.key("space");
    window.wait_for_title("preview (paused)");
    window.close();
    let report = json(&ends_with(0, ended(run)));
    let sink = report["handlers"].as_array().unwrap().iter().find(|handler| handler["name"] == "null0").unwrap();
    let frames = report["frames"].as_u64().unwrap();
    assert!(frames as f64 > 35.0 * report["seconds"].as_f64().unwrap(), "faster than 30 fps: {report}");
    assert!(report["dropped"]["link_full"].as_u64().unwrap() > 0, "the preview shows only some: {sink}");
}

#[test]
fn the_example_of_the_handler_runs_and_the_run_can_be_watched() {
    let (desktop, folder) = (Desktop::start(), folder("example"));
    let example = vramp::handlers::sink::window::ENTRY.example;
    let run = desktop.vramp(&folder, &["run", example, "--frames", "20", "--json"]);
    desktop.window("ball");
    let report = json(&ends_with(0, ended(run)));
    assert_eq!((&report["frames_out"], &report["memory"]["leaked"]), (&20.into(), &0.into()));
}

#[test]
fn a_paused_preview_does_not_keep_a_run_from_its_end() {
    let (desktop, folder) = (Desktop::start(), folder("paused"));
    let pipeline = "pattern kind=noise size=64x48 fps=30 ! null";
    let run = desktop.vramp(&folder, &["run", pipeline, "--preview", "--fps", "30", "--frames", "90", "--json"]);
    let window = desktop.window("preview");
    window.key("space");
    window.wait_for_title("preview (paused)");
    let report = json(&ends_with(0, ended(run)));
    assert_eq!(report["frames"], 90);
}

/// Anonymous memory of a process in kB.
fn memory_kb(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn showing_frames_takes_no_more_memory_with_every_frame() {
    let (desktop, folder) = (Desktop::start(), folder("memory"));
    let pipeline = "pattern kind=noise size=64x48 fps=100 label=false ! window title=memory";
    let run = desktop.vramp(&folder, &["run", pipeline, "--gpu", "--json"]);
    let window = desktop.window("memory");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let before = memory_kb(run.id());
    std::thread::sleep(std::time::Duration::from_secs(3));
    let grown = memory_kb(run.id()).saturating_sub(before);
    // Measured: 0 to 4 kB. A shader that branches on its parameters costs 0.9 MB a frame on this driver.
    assert!(grown < 8_000, "{grown} kB in 3 s");
    window.close();
    assert!(json(&ends_with(0, ended(run)))["frames"].as_u64().unwrap() > 200);
}

#[test]
fn a_picture_is_saved_even_if_the_window_closes_at_once() {
    let (desktop, folder) = (Desktop::start(), folder("saved"));
    let pipeline = "pattern kind=noise size=1600x1200 fps=5 label=false ! window title=saved";
    let run = desktop.vramp(&folder, &["run", pipeline, "--cpu"]);
    let window = desktop.window("saved");
    window.wait_for("a frame", |shot| shot.pixels.iter().any(|pixel| pixel[0] > 0));
    window.key("s");
    window.close();
    let run = ends_with(0, ended(run));
    assert!(run.err.contains("saved frame"), "{}", run.err);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!((Shot::of_png(&files[0]).width, Shot::of_png(&files[0]).height), (1600, 1200));
}

#[test]
fn without_a_display_the_error_names_the_terminal() {
    let run = ends_with(3, vramp(&["run", "pattern size=64x48 frames=3 ! window"]));
    assert!(
        run.err.contains("window0: there is no display: neither WAYLAND_DISPLAY nor DISPLAY is set"),
        "{}",
        run.err
    );
    assert!(run.err.contains("use `terminal`"), "{}", run.err);
    let run = ends_with(2, vramp(&["run", "pattern size=64x48 frames=3 ! null", "--preview"]));
    assert!(run.err.contains("preview draws in a terminal, and standard output is not a terminal"), "{}", run.err);
    ends_with(0, vramp(&["run", "pattern size=64x48 frames=3 ! window", "--verify", "--cpu"]));
    let run = ends_with(2, vramp(&["run", "pattern size=64x48 frames=3 ! null", "--preview", "--verify"]));
    assert!(run.err.contains("--preview: --verify compares instead of running"), "{}", run.err);
}

#[test]
fn a_display_that_does_not_answer_is_reported() {
    let mut command = crate::program::command(&["run", "pattern size=64x48 frames=3 ! window"]);
    command.env("DISPLAY", ":7654");
    let run = ends_with(3, crate::program::finish(command));
    assert!(run.err.contains("window0: there is no display: no X server answers at DISPLAY=:7654"), "{}", run.err);
    // The preview takes the terminal then, which is not one here.
    let mut command = crate::program::command(&["run", "pattern size=64x48 frames=3 ! null", "--preview"]);
    command.env("DISPLAY", ":7654");
    let run = ends_with(2, crate::program::finish(command));
    assert!(run.err.contains("preview draws in a terminal"), "{}", run.err);
}
