//! Recipes about speed, residency, plans and forms of pipelines.

use super::picture::Picture;
use super::recipe::{Closeness, FPS, LOSSY, Recipe};
use super::scene::Scene;

/// The rows of the table that `-v` prints: milliseconds and handler.
fn rows(err: &str) -> Vec<(f64, String)> {
    let table = err.lines().skip_while(|line| !line.contains("per frame")).skip(1);
    let rows = table.take_while(|line| line.contains(" % ")).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let scale = if words[3] == "ms" { 1.0 } else { 0.001 };
        (words[2].parse::<f64>().unwrap() * scale, (*words.last().unwrap()).to_owned())
    });
    rows.collect()
}

/// Asserts that the page shows the heading and the first handler of the printed table.
fn shows_table(shown: &str, err: &str) {
    let (heading, _) = shown.split_once('\n').unwrap();
    assert!(err.lines().any(|line| line == heading), "no line is `{heading}`:\n{err}");
    assert_eq!(rows(shown)[0].1, rows(err)[0].1, "the slowest handler:\n{err}");
}

pub(super) fn the_slow_filter_is_named_and_mended(recipe: &mut Recipe) {
    let frames = (0..16).map(|number| Scene::at(8.0, f64::from(number) / f64::from(FPS)).landscape());
    let frames: Vec<Picture> = frames.map(|rgb| Picture::new(320, 180, rgb)).collect();
    recipe.encode(&frames, "-vf scale=1920:1080:flags=lanczos", "big.mp4");
    let slow = recipe.run();
    let shown = recipe.text();
    shows_table(&shown, &slow.err);
    let fast = recipe.run();
    let shown = recipe.text();
    shows_table(&shown, &fast.err);
    let of_blur = |err: &str| rows(err).into_iter().find(|(_, handler)| handler == "blur0").expect("a blur").0;
    let (before, after) = (of_blur(&slow.err), of_blur(&fast.err));
    assert!(after < before / 3.0, "the blur takes {after} ms instead of {before} ms");
    let [slow, fast] = ["slow-06.png", "fast-06.png"].map(|name| Picture::of(&recipe.path(name)));
    assert!(slow.psnr(&fast) > 36.0, "the pictures are the same: {:.1} dB", slow.psnr(&fast));
    recipe.picture(&slow.beside(&fast), LOSSY);
    let plans = recipe.run().out;
    let costs = plans.lines().filter_map(|line| line.split_once(" blur0 ")?.1.split_once(" ms"));
    let costs: Vec<f64> = costs.map(|(cost, _)| cost.trim().parse().unwrap()).collect();
    let [before, after] = costs[..] else { panic!("a blur in each plan:\n{plans}") };
    assert!(after < before / 3.0, "the blur is predicted to take {after} ms instead of {before} ms");
}

pub(super) fn leaving_the_gpu_has_its_exit_codes(recipe: &mut Recipe) {
    assert_eq!(recipe.run().err, "");
    let refused = recipe.run_to(3);
    assert_eq!(refused.err, recipe.text());
    let broken = recipe.run_to(4);
    // How many frames are in the second half depends on the frames in flight.
    let shown = recipe.text();
    let words = |text: &str| text.split_once(" (over ").unwrap().0.to_owned();
    assert_eq!(words(&broken.err), words(&shown));
    recipe.picture(&Picture::of(&recipe.path("disc-20.png")), Closeness::Exact);
}

pub(super) fn both_sides_give_the_same_pixels(recipe: &mut Recipe) {
    recipe.clip("in.mp4");
    let run = recipe.run();
    let shown = recipe.text();
    assert!(run.err.ends_with(&shown), "{}", run.err);
    assert!(run.err.contains("gpu and cpu: "), "both sides were compared:\n{}", run.err);
    assert!(!recipe.path("out.mp4").exists(), "nothing is written");
}

pub(super) fn the_plan_for_a_phone_is_as_shown(recipe: &mut Recipe) {
    let run = recipe.run();
    let shown = recipe.text();
    assert_eq!(without_times(&run.out), without_times(&shown));
    assert!(run.out.contains("==>"), "a transfer is drawn");
}

/// Replaces the numbers before `ms`, which change with the profiles that ship with vramp.
fn without_times(text: &str) -> String {
    let words = text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let is_time = |at: usize| words.get(at + 1).is_some_and(|unit| unit.starts_with("ms") || unit.starts_with("µs"));
    let masked = words.iter().enumerate().map(|(at, word)| if is_time(at) { "#" } else { word.as_str() });
    masked.collect::<Vec<_>>().join(" ")
}

pub(super) fn a_pipeline_in_toml_runs(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    let toml = std::fs::read_to_string(recipe.path("night.toml")).unwrap();
    assert!(toml.contains(&recipe.text()), "{toml}");
    assert_eq!(toml.matches("[[handlers]]").count(), 5);
    let frame = recipe.frame("night.mp4", 20);
    assert!(frame.psnr(&clip[20]) < 22.0);
    recipe.picture(&frame, LOSSY);
}
