//! Messages that users act on: each names the problem, and its suggestion works.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{Run, dir, ends_with, file, vramp, vramp_in};

fn plan(pipeline: &str, more: &[&str]) -> Run {
    vramp(&[&["plan", pipeline, "--profile", "discrete"][..], more].concat())
}

/// The first text in backquotes after `help: `.
#[track_caller]
fn suggested(run: &Run) -> String {
    let help = run.err.split("help: ").nth(1).unwrap_or_else(|| panic!("no help in\n{}", run.err));
    help.split('`').nth(1).unwrap_or_else(|| panic!("nothing to type in\n{help}")).to_owned()
}

#[test]
fn kinds_of_other_tools_are_answered_with_what_runs_here() {
    for (word, source, sink) in [
        ("videotestsrc", false, true),
        ("testsrc", false, true),
        ("autovideosink", true, false),
        ("fakesink", true, false),
        ("scale", true, true),
        ("videoscale", true, true),
        ("videoconvert", true, true),
        ("drawtext", true, true),
        ("hflip", true, true),
        ("vflip", true, true),
        ("transpose", true, true),
        ("gblur", true, true),
        ("unsharp", true, true),
        ("negate", true, true),
        ("eq", true, true),
        ("framestep", true, true),
        ("convolution", true, true),
        ("colorchannelmixer", true, true),
        ("colorkey", true, true),
    ] {
        let around = |middle: &str| {
            format!("{}{middle}{}", if source { "pattern ! " } else { "" }, if sink { " ! null" } else { "" })
        };
        let run = ends_with(2, plan(&around(word), &[]));
        assert!(run.err.contains(&format!("unknown handler `{word}`")), "{}", run.err);
        let help = run.err.split("help: ").nth(1).unwrap();
        // The suggested kind, or the example after it.
        let example = help.lines().next().unwrap().split('`').skip(1).step_by(2).last().unwrap();
        ends_with(0, plan(&around(example), &[]));
    }
    let run = ends_with(2, plan("pattern ! tee name=t ! null", &[]));
    ends_with(0, plan(&suggested(&run), &[]));
    assert!(ends_with(2, plan("v4l2src ! null", &[])).err.contains("help: pipe a camera in"));
    assert!(ends_with(2, plan("pattern ! queue ! null", &[])).err.contains("!{queue depth=4}"));
}

#[test]
fn settings_and_values_of_other_tools_are_answered_with_the_ones_here() {
    for (pipeline, words) in [
        ("pattern ! blur radius=3 ! null", "help: use `sigma`"),
        ("pattern ! resize width=640 ! null", "size=WIDTHxHEIGHT"),
        ("pattern num-buffers=9 ! null", "`frames`"),
        ("image location=a.png ! null", "`path=FILE`"),
        ("pattern ! resize 50% ! null", "`50%` is not a valid size"),
        ("pattern ! resize 50% ! null", "expected a size WIDTHxHEIGHT such as 1280x720"),
        ("pattern ! resize 50% ! null", "help: a size is in pixels; use `scale=0.5` for 50%"),
        ("pattern ! crop 50% ! null", "help: a size is in pixels, not in percent"),
        ("pattern ! resize size=640:480 ! null", "help: write `640x480`"),
    ] {
        let run = ends_with(2, plan(pipeline, &[]));
        assert!(run.err.contains(words), "{pipeline}: {words} is not in\n{}", run.err);
    }
    ends_with(0, plan("pattern ! resize scale=0.5 ! null", &[]));
}

#[test]
fn links_and_filter_lists_of_other_tools_are_one_mistake_with_one_hint() {
    for (pipeline, mistakes) in [
        ("pattern | blur | null", 2),
        ("pattern -> blur ! null", 1),
        ("pattern|blur|null", 1),
        ("pattern ! scale=640:480 ! null", 1),
        ("pattern ! blur=5,hue ! null", 1),
        ("[0:v]scale=640:480[out]", 1),
    ] {
        let run = ends_with(2, plan(pipeline, &[]));
        assert_eq!(run.err.matches("error: ").count(), mistakes, "{pipeline}:\n{}", run.err);
        assert_eq!(run.err.matches("help: ").count(), mistakes, "{pipeline}:\n{}", run.err);
        assert!(run.err.contains("`!`"), "{}", run.err);
    }
    // In quotes, or in place of a text value, it is a value.
    ends_with(0, plan("pattern ! text | ! null", &[]));
    ends_with(0, plan("pattern ! text \"->\" ! null", &[]));
}

#[test]
fn a_shipped_profile_goes_by_its_name_and_a_file_of_that_name_by_its_path() {
    let dir = dir("messages_profile");
    file(&dir, "discrete", "not a profile");
    for name in ["discrete", "integrated", "phone", "software", "cpu"] {
        let by = |word: &str| ends_with(0, vramp_in(&dir, &["plan", "pattern ! blur ! null", "--profile", word])).out;
        assert_eq!(by(name), by(&format!("shipped:{name}")));
    }
    let run = vramp_in(&dir, &["plan", "pattern ! blur ! null", "--profile", "./discrete"]);
    assert!(run.code == 2 && run.err.contains("./discrete"), "{}", run.err);
    let help = ends_with(0, vramp(&["plan", "--help"])).out;
    assert!(help.contains("./discrete"), "{help}");
}

#[test]
fn what_strict_suggests_before_a_sink_of_another_format_plans() {
    for pipeline in ["pattern ! blur ! download ! y4m path=x.y4m", "pattern ! blur ! y4m path=x.y4m"] {
        let run = ends_with(3, plan(pipeline, &["--strict", "--gpu"]));
        let fix = suggested(&run);
        assert_eq!(fix, "blur0.video ! convert i420 ! download ! y4m0.video", "{}", run.err);
    }
    ends_with(0, plan("pattern ! blur ! convert i420 ! download ! y4m path=x.y4m", &["--strict", "--gpu"]));
    // A consumer on the GPU needs an upload instead.
    let run = ends_with(3, plan("pattern ! convert i420 ! download ! blur ! null", &["--strict", "--gpu"]));
    assert_eq!(suggested(&run), "download0.video ! upload ! blur0.video", "{}", run.err);
    ends_with(0, plan("pattern ! convert i420 ! download ! upload ! blur ! null", &["--strict", "--gpu"]));
}

#[test]
fn an_unknown_profile_is_answered_with_the_shipped_ones() {
    let run = ends_with(2, vramp(&["plan", "pattern ! null", "--profile", "discreet"]));
    assert!(run.err.contains("discreet: no such file") && run.err.contains("discrete, integrated"), "{}", run.err);
}

#[test]
fn advice_is_given_once_and_only_if_it_can_be_taken() {
    let dir = dir("messages_advice");
    let shader = file(&dir, "swap.wgsl", "fn pixel(color: vec4f) -> vec4f { return color.bgra; }");
    let clip = dir.join("in.y4m");
    let make = format!("pattern frames=2 size=64x48 ! y4m path={}", clip.display());
    ends_with(0, vramp(&["run", &make, "--cpu", "-q"]));
    let pipeline = format!("y4m path={} ! wgsl {shader} ! y4m path=out.y4m", clip.display());
    let run = ends_with(0, plan(&pipeline, &[]));
    assert_eq!(run.err.matches("transfer of").count(), 2, "{}", run.err);
    assert!(run.err.contains("wgsl0 only runs on the gpu"), "{}", run.err);
    assert!(!run.err.contains("avoidable"), "{}", run.err);
    let pipeline = format!("y4m path={} ! blur ! y4m path=out.y4m", clip.display());
    let run = ends_with(0, plan(&pipeline, &["--gpu"]));
    assert_eq!(run.err.matches("transfer of").count(), 2, "{}", run.err);
    assert_eq!(run.err.matches("dropping --gpu would save").count(), 1, "{}", run.err);
    let run = ends_with(0, vramp_in(&dir, &["run", &pipeline, "--gpu", "-v"]));
    assert_eq!(run.err.matches("transfer of").count(), 2, "{}", run.err);
}

#[test]
fn pictures_of_many_sizes_are_one_note_with_their_number() {
    let dir = dir("messages_sizes");
    for at in 0..20 {
        let make = format!("pattern frames=1 size={}x16 ! png path={}/p-{at:02}.png", 16 + at, dir.display());
        ends_with(0, vramp(&["run", &make, "--cpu", "-q"]));
    }
    let pipeline = format!("image path={}/p-*.png ! null", dir.display());
    let run = ends_with(0, vramp(&["run", &pipeline, "--cpu"]));
    assert!(run.err.contains("note: frames of image0 changed size 19 times, last to 35x16"), "{}", run.err);
    assert_eq!((run.err.matches("planned again").count(), run.err.matches("warning").count()), (1, 0), "{}", run.err);
    assert_eq!(ends_with(0, vramp(&["run", &pipeline, "--cpu", "-q"])).err, "");
}

#[test]
fn frames_that_a_slower_input_has_left_over_are_no_loss() {
    let dir = dir("messages_rates");
    for fps in ["30", "25"] {
        let make = format!("pattern frames=20 size=64x48 fps={fps} ! y4m path={}/{fps}.y4m", dir.display());
        ends_with(0, vramp(&["run", &make, "--cpu", "-q"]));
    }
    let run =
        ends_with(0, vramp_in(&dir, &["run", "y4m path=30.y4m ! mix name=m ! null; y4m path=25.y4m ! m.b", "--cpu"]));
    let (line, _) = run.err.split_once(" left over when the consumer ended").unwrap();
    assert!(line.contains("none dropped; ") && !run.err.contains("late"), "{}", run.err);
}

#[test]
fn memory_is_a_peak_beside_what_was_planned() {
    let run = ends_with(0, vramp(&["run", "pattern frames=5 size=64x48 ! blur ! null", "--cpu"]));
    let line = run.err.lines().find(|line| line.starts_with("memory: peak ")).unwrap();
    assert!(line.contains(" on the cpu (planned ") && !line.contains('%'), "{line}");
}

#[test]
fn each_option_has_one_description() {
    let long = ends_with(0, vramp(&["help", "run"])).out;
    let short = ends_with(0, vramp(&["run", "-h"])).out;
    for help in [&long, &short] {
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("Exit with code 4 if a frame needs more than this on average"), "{flat}");
        assert!(
            flat.contains("Print the whole plan, the negotiated memory space of every link, during a run the frame pools, and after a run the time of every handler on standard error"),
            "{flat}"
        );
    }
    let flat = long.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("`-v` also prints the complete plan and every link"), "{flat}");
    let key = ends_with(0, vramp(&["inspect", "chromakey"])).out;
    assert!(key.contains("become fully transparent") && !key.contains("gone"), "{key}");
}
