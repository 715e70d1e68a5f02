//! Recipes that turn one video into another.

use super::picture::Picture;
use super::recipe::{Closeness, HEIGHT, LOSSY, Recipe, WIDTH};
use super::scene::Scene;
use crate::video::{probe, sound, times};

/// Asserts the number of frames, the time from the first to the last, and whether there is sound of the same length.
#[track_caller]
fn has(recipe: &Recipe, name: &str, frames: usize, seconds: f64, with_sound: bool) {
    let times = times(&recipe.dir, name);
    assert_eq!(times.len(), frames, "{name}");
    let length = times[times.len() - 1] - times[0];
    assert!((length - seconds).abs() < 0.02, "{name} has {length} s");
    let streams = probe(&recipe.dir, "-select_streams a -show_entries stream=codec_name", name);
    assert_eq!(!streams.is_empty(), with_sound, "{name}: {streams:?}");
    if with_sound {
        let (first, last) = sound(&recipe.dir, name);
        assert!(first.abs() < 0.1 && (last - length).abs() < 0.15, "{name}: sound from {first} to {last}");
    }
}

const LENGTH: f64 = 29.0 / 15.0;

pub(super) fn a_grid_has_four_views_and_the_sound(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "grid.mp4", 30, LENGTH, true);
    recipe.picture(&recipe.frame("grid.mp4", 10), LOSSY);
}

pub(super) fn an_actor_stands_before_a_background_of_another_size(recipe: &mut Recipe) {
    recipe.clip_of("actor.mp4", |time| Scene::at(12.0, time).green_screen());
    let sunset = Scene { width: 480, height: 300, hour: 17.7, time: 0.0 };
    Picture::new(480, 300, sunset.empty()).write(&recipe.path("sunset.jpg"), &["-q:v", "2"]);
    recipe.run();
    has(recipe, "out.mp4", 30, LENGTH, true);
    let frame = recipe.frame("out.mp4", 12);
    let [red, green, blue] = frame.mean(0, 0, WIDTH, HEIGHT);
    assert!(green < red && green < blue + 20.0, "no green is left: {red} {green} {blue}");
    recipe.picture(&frame, LOSSY);
}

pub(super) fn a_line_moves_between_before_and_after(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "wipe.mp4", 30, LENGTH, true);
    let frames = recipe.frames("wipe.mp4");
    let color = |frame: &Picture, x: usize| {
        let [red, _, blue] = frame.mean(x, 0, 20, 60);
        (blue - red).abs()
    };
    assert!(color(&frames[0], 10) > 30.0, "the sky has its colour at first");
    assert!(color(&frames[15], 10) < 5.0 && color(&frames[15], 290) > 30.0, "the line has passed one side");
    assert!(color(&frames[29], 290) < 5.0, "the line has passed the other side");
    recipe.picture(&frames[13], LOSSY);
}

pub(super) fn a_second_video_is_in_the_corner(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    recipe.clip_of("second.mp4", |time| Scene::at(19.0, 2.0 - time).landscape());
    recipe.run();
    has(recipe, "pip.mp4", 30, LENGTH, true);
    recipe.picture(&recipe.frame("pip.mp4", 10), LOSSY);
}

pub(super) fn only_the_rectangle_is_blurred(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "hidden.mp4", 30, LENGTH, true);
    let frame = recipe.frame("hidden.mp4", 0);
    let part = |picture: &Picture, x, y, size| {
        let rows = (y..y + size).map(|row| (x..x + size).map(|column| picture.mean(column, row, 1, 1)[1]).collect());
        let rows: Vec<Vec<f64>> = rows.collect();
        rows.iter().map(|row| row.windows(2).map(|pair| (pair[0] - pair[1]).abs()).sum::<f64>()).sum::<f64>()
    };
    assert!(part(&frame, 80, 45, 30) < part(&clip[0], 80, 45, 30) / 3.0, "the stripes are gone");
    assert!(part(&frame, 200, 40, 60) > part(&clip[0], 200, 40, 60) * 0.5, "the sun is still sharp");
    recipe.picture(&frame, LOSSY);
}

pub(super) fn frames_carry_their_numbers(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "numbered.mp4", 30, LENGTH, true);
    let frames = recipe.frames("numbered.mp4");
    let brightness = |picture: &Picture| picture.mean(10, 145, 220, 30)[0];
    for (frame, plain) in frames.iter().zip(&clip) {
        assert!(brightness(frame) > brightness(plain) + 15.0, "every frame has white letters");
    }
    recipe.picture(&frames[23], LOSSY);
}

pub(super) fn a_gif_has_half_of_the_frames_and_the_same_speed(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    recipe.run();
    let times = times(&recipe.dir, "out.gif");
    assert_eq!(times.len(), 8);
    assert!((times[7] - times[0] - 14.0 / 15.0).abs() < 0.03, "{times:?}");
    let frame = recipe.frame("out.gif", 3);
    assert_eq!((frame.width, frame.height), (240, 135));
    recipe.picture(&frame, Closeness::Decibel(28.0));
}

pub(super) fn a_wide_video_is_inside_an_upright_one(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "upright.mp4", 30, LENGTH, true);
    let frame = recipe.frame("upright.mp4", 6);
    assert_eq!((frame.width, frame.height), (180, 320));
    let (inside, whole) = (frame.mean(0, 110, 180, 100), clip[6].mean(0, 0, WIDTH, HEIGHT));
    for channel in 0..3 {
        assert!((inside[channel] - whole[channel]).abs() < 3.0, "the whole video is inside: {inside:?} {whole:?}");
    }
    recipe.picture(&frame, LOSSY);
}

pub(super) fn a_sideways_video_is_turned(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.encode(&clip, "-f lavfi -i sine=440:duration=2 -c:a aac -vf transpose=clock", "sideways.mp4");
    recipe.run();
    has(recipe, "turned.mp4", 30, LENGTH, true);
    let (before, after) = (recipe.frame("sideways.mp4", 14), recipe.frame("turned.mp4", 14));
    assert_eq!((before.width, before.height), (HEIGHT, WIDTH));
    assert!(after.psnr(&clip[14]) > 30.0, "{:.1} dB", after.psnr(&clip[14]));
    recipe.picture(&before.beside(&after), LOSSY);
}

pub(super) fn a_third_of_the_speed_takes_three_times_as_long(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "slow.mp4", 30, 29.0 / 5.0, false);
    let frames = recipe.frames("slow.mp4");
    for (frame, plain) in frames.iter().zip(&clip) {
        assert!(frame.psnr(plain) > 30.0, "{:.1} dB", frame.psnr(plain));
    }
    recipe.picture(&frames[5].beside(&frames[25]), LOSSY);
}

pub(super) fn what_moves_is_white_and_the_rest_black(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "motion.mp4", 30, LENGTH, true);
    let frame = recipe.frame("motion.mp4", 15);
    assert!(frame.mean(95, 30, 70, 70)[0] > 60.0, "the balloon moves");
    assert!(frame.mean(0, 150, WIDTH, 30)[0] < 10.0, "the nearest hill has no features that move");
    recipe.picture(&frame, Closeness::Blocks(22.0));
}

pub(super) fn two_encodes_differ_more_the_worse_one_is(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "good.mp4", 30, LENGTH, true);
    has(recipe, "small.mp4", 30, LENGTH, true);
    let sizes = ["good.mp4", "small.mp4"].map(|name| recipe.path(name).metadata().unwrap().len());
    assert!(sizes[1] < sizes[0], "{sizes:?}");
    let [good, small] = ["good.mp4", "small.mp4"].map(|name| recipe.frame(name, 15).psnr(&clip[15]));
    assert!(good > small + 6.0, "{good:.1} {small:.1}");
    has(recipe, "loss.mp4", 30, LENGTH, true);
    let frame = recipe.frame("loss.mp4", 15);
    recipe.picture(&frame, Closeness::Blocks(22.0));
}

pub(super) fn frames_pass_between_two_ffmpeg_commands(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    has(recipe, "relief.webm", 30, LENGTH, false);
    let frame = recipe.frame("relief.webm", 10);
    assert!(frame.psnr(&clip[10]) < 40.0);
    recipe.picture(&frame, LOSSY);
}
