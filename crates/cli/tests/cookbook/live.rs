//! Recipes with streams, cameras, and settings that change during a run.

use super::picture::Picture;
use super::recipe::{Closeness, LOSSY, Recipe};
use super::scene::Scene;
use crate::desktop::{Desktop, ended};
use crate::program::ends_with;
use crate::video::live::Watched;
use crate::video::rtsp::RtspServer;
use crate::video::{times, wait_until};

/// A colour table in which each colour is computed by this function.
fn cube(color: impl Fn([f64; 3]) -> [f64; 3]) -> String {
    const SIDE: u32 = 9;
    let at = |number: u32| f64::from(number % SIDE) / f64::from(SIDE - 1);
    let rows = (0..SIDE.pow(3)).map(|row| color([at(row), at(row / SIDE), at(row / SIDE / SIDE)]));
    let rows = rows.map(|row| row.map(|value| value.clamp(0.0, 1.0)));
    let rows: Vec<String> = rows.map(|[red, green, blue]| format!("{red:.5} {green:.5} {blue:.5}\n")).collect();
    format!("LUT_3D_SIZE {SIDE}\n{}", rows.concat())
}

fn warm([red, green, blue]: [f64; 3]) -> [f64; 3] {
    let light = 0.3 * red + 0.59 * green + 0.11 * blue;
    let strong = light * light * (3.0 - 2.0 * light);
    [
        red * 0.7 + strong * 0.3 + light * 0.1,
        green * 0.75 + strong * 0.25 + 0.02,
        blue * 0.65 + strong * 0.25 + (1.0 - light) * 0.1,
    ]
}

fn sepia([red, green, blue]: [f64; 3]) -> [f64; 3] {
    let light = 0.5 * red + 0.4 * green + 0.1 * blue;
    let strong = light * light * (3.0 - 2.0 * light);
    [strong * 1.02, strong * 0.97, strong * 0.88]
}

/// Starts a block in such a way that a signal reaches the program and not the shell.
fn start(recipe: &Recipe, block: &str) -> Watched {
    Watched::spawn(recipe.shell(&format!("exec {block}")))
}

pub(super) fn a_saved_table_and_a_saved_pipeline_reach_the_run(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    std::fs::write(recipe.path("film.cube"), cube(warm)).unwrap();
    let block = recipe.next_block();
    let run = start(recipe, &block);
    run.wait_for_frames(0);
    std::fs::write(recipe.path("film.cube"), cube(sepia)).unwrap();
    run.wait_for("note: lut0: reloaded");
    let pipeline = std::fs::read_to_string(recipe.path("grade.vramp")).unwrap();
    assert!(pipeline.contains("amount=0.1 "));
    std::fs::write(recipe.path("grade.vramp"), pipeline.replace("amount=0.1 ", "amout=0.1 ")).unwrap();
    run.wait_for("cannot be used, so the run continues as before");
    std::fs::write(recipe.path("grade.vramp"), pipeline.replace("amount=0.1 ", "amount=0.12 ")).unwrap();
    run.wait_for("note: grade.vramp: its settings are in force from frame ");
    let err = run.err();
    let (_, frame) = err.rsplit_once("in force from frame ").unwrap();
    let changed: usize = frame.split_whitespace().next().unwrap().parse().unwrap();
    wait_until("the clip begins again with the new table", || frames_so_far(&run.err()) > changed + 32);
    let (code, err) = run.interrupt();
    assert_eq!(code, Some(130), "{err}");
    let frames = recipe.frames("graded.mp4");
    assert!(frames.len() >= changed + 30, "{} frames, changed at {changed}", frames.len());
    let (before, after) = (&frames[0], &frames[changed.next_multiple_of(30)]);
    assert!(before.psnr(after) < 22.0, "the table changed: {:.1} dB", before.psnr(after));
    let [red, _, blue] = after.mean(0, 0, 320, 40);
    assert!(red > blue, "the blue sky became brown: {red} {blue}");
    recipe.picture(&before.beside(after), Closeness::Blocks(30.0));
}

/// The number of frames in the last line of progress.
fn frames_so_far(err: &str) -> usize {
    let words: Vec<&str> = err.split_whitespace().collect();
    let count = words.windows(2).rev().find(|pair| pair[1] == "frames").and_then(|pair| pair[0].parse().ok());
    count.unwrap_or(0)
}

pub(super) fn a_stream_is_recorded_until_ctrl_c(recipe: &mut Recipe) {
    Picture::new(320, 180, Scene::at(19.8, 0.0).empty()).write(&recipe.path("dusk.png"), &[]);
    let server = RtspServer::start(&recipe.dir);
    let sender = server.send_from("-loop 1 -framerate 15 -i dusk.png -pix_fmt yuv420p");
    let block = recipe.next_block();
    assert!(block.contains(" rtsp://camera.local/live "));
    let run = start(recipe, &block.replace("rtsp://camera.local/live", &server.address()));
    run.wait_for_frames(0);
    let (code, err) = run.interrupt();
    assert_eq!(code, Some(130), "{err}");
    drop(sender);
    let times = times(&recipe.dir, "door.mp4");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    let frames = recipe.frames("door.mp4");
    assert!(frames.len() > 2, "{}", frames.len());
    recipe.picture(frames.last().unwrap(), LOSSY);
}

pub(super) fn a_camera_is_recorded_and_shown_for_two_seconds(recipe: &mut Recipe) {
    let desktop = Desktop::start();
    let block = recipe.next_block();
    let mut shell = recipe.shell(&block);
    let run = desktop.shows(&mut shell).spawn().unwrap();
    // The sign is red, and the picture around it has other colours.
    let is_red = |pixel: &[u8; 3]| pixel[0] > 200 && pixel[1] < 110 && pixel[2] < 110;
    let preview = desktop.window("preview");
    let shown = preview.wait_for("the recording sign", |shot| shot.pixels.iter().any(is_red));
    assert_eq!((shown.width, shown.height), (320, 180));
    ends_with(0, ended(run));
    let times = times(&recipe.dir, "me.mp4");
    let length = times[times.len() - 1] - times[0];
    assert!(length > 1.0 && length < 2.1, "{times:?}");
    // The set grows slowly, so a dropped frame does not matter.
    recipe.picture(&recipe.frame("me.mp4", 0), Closeness::Decibel(24.0));
}

pub(super) fn a_line_of_text_changes_a_setting(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    let run = recipe.run();
    let answer = run.err.lines().find_map(|line| line.strip_prefix("ok ")).expect("the line is answered");
    let (frame, set) = answer.split_once(' ').unwrap();
    assert_eq!(set, "blur0.sigma=8");
    assert!(frame.parse::<usize>().unwrap() < 30, "{answer}");
    let last = recipe.frame("soft.mp4", 29);
    assert!(last.psnr(&clip[29]) < 27.0, "the end is blurred: {:.1} dB", last.psnr(&clip[29]));
    recipe.picture(&last, LOSSY);
}
