//! `vramp top` and the sink `terminal` in a pseudo-terminal: the screen, the keys, and the restored terminal after
//! every kind of end.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::Path;

use crate::program::{dir, ends_with, json, vramp};
use crate::terminal::{self, Ended, Terminal};

/// An endless run that leaves most of a processor idle.
const ENDLESS: &str = "pattern size=64x48 ! blur name=soft !{queue depth=3} invert ! null";
const PACED: [&str; 3] = ["--cpu", "--fps", "200"];

fn top(columns: u16, lines: u16, pipeline: &str, more: &[&str]) -> Terminal {
    Terminal::start(columns, lines, &[&["top", pipeline][..], more].concat(), &[])
}

#[track_caller]
fn ends(terminal: Terminal, code: i32) -> Ended {
    let ended = terminal.end();
    assert_eq!(ended.code, code, "{}", ended.text);
    assert!(ended.restored, "the terminal is not what it was:\n{}", ended.text);
    ended
}

/// Whole frames in a y4m file, as the program itself reads it.
fn frames_in(path: &Path) -> u64 {
    let pipeline = format!("y4m path={} ! null", path.display());
    json(&ends_with(0, vramp(&["run", &pipeline, "--cpu", "--json"])))["frames"].as_u64().unwrap()
}

#[test]
fn it_shows_every_handler_and_link_with_numbers_that_move_and_q_ends_it() {
    let terminal = top(80, 24, ENDLESS, &PACED);
    for words in
        ["pattern0", "soft", "invert0", "null0", "queue 3", "fps", "latency", "memory cpu", "pool cpu", "device none"]
    {
        terminal.wait_for(words);
    }
    assert!(!terminal.is_cooked(), "keys come one by one");
    let first = terminal.number_before("out");
    terminal.wait("a larger count", |screen| {
        terminal::number_before(&screen.contents(), "out").filter(|count| *count > first + 50)
    });
    terminal.wait("a rate near the requested one", |screen| {
        let text = screen.contents();
        let fps: f64 =
            text.split_whitespace().zip(text.split_whitespace().skip(1)).find(|(_, w)| *w == "fps")?.0.parse().ok()?;
        (50.0..250.0).contains(&fps).then_some(())
    });
    assert!(terminal.wait("the alternate screen", |screen| screen.hide_cursor().then(|| screen.alternate_screen())));
    terminal.press("q");
    let ended = ends(terminal, 0);
    for words in ["plan: 4 handlers on the cpu", "memory: ", " frames in ", " fps; "] {
        assert!(ended.text.contains(words), "{words} is missing in\n{}", ended.text);
    }
}

#[test]
fn on_the_device_its_name_its_work_and_its_memory_are_shown() {
    let terminal = top(120, 30, "pattern size=64x48 ! blur ! null", &["--gpu", "--fps", "100"]);
    for words in ["(vulkan)  busy ", "memory gpu ", "; cpu ", "pool gpu ", " 0 misses/s", "blur0     gpu"] {
        terminal.wait_for(words);
    }
    terminal.wait("a share of the time at work", |screen| {
        let text = screen.contents();
        let busy = text.split("busy ").nth(1)?.split_whitespace().next()?;
        busy.parse::<u32>().ok()
    });
    terminal.press("\x1b");
    ends(terminal, 0);
}

#[test]
fn ctrl_c_ends_as_it_ends_a_run_and_files_are_whole() {
    let dir = dir("top_ctrl_c");
    for (name, end) in [("key", "\x03"), ("int", "-INT"), ("term", "-TERM")] {
        let out = dir.join(format!("{name}.y4m"));
        let pipeline = format!("pattern size=64x48 ! y4m path={}", out.display());
        let terminal = top(80, 24, &pipeline, &PACED);
        terminal.wait("frames", |screen| terminal::number_before(&screen.contents(), "out").filter(|count| *count > 5));
        if end.starts_with('-') {
            terminal.signal(end);
        } else {
            terminal.press(end);
        }
        let ended = ends(terminal, 130);
        assert!(ended.text.contains(" frames in "), "{}", ended.text);
        assert!(frames_in(&out) > 5, "{name}");
    }
}

#[test]
fn q_leaves_whole_files_and_the_same_report_as_a_run() {
    let dir = dir("top_q");
    let out = dir.join("out.y4m");
    // `q` is an intended end, so an older file is replaced.
    std::fs::write(&out, "old").unwrap();
    let pipeline = format!("pattern size=64x48 ! y4m path={}", out.display());
    let terminal = top(160, 24, &pipeline, &[&PACED[..], &["--json"]].concat());
    terminal.wait("frames", |screen| terminal::number_before(&screen.contents(), "out").filter(|count| *count > 5));
    terminal.press("q");
    let ended = ends(terminal, 0);
    let line = ended.bytes.lines().last().unwrap();
    let report: serde_json::Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
    assert_eq!(report["frames_out"].as_u64(), Some(frames_in(&out)));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing half-written is left");
}

#[test]
fn a_run_that_ends_by_itself_ends_the_view() {
    let terminal = top(80, 24, "pattern size=64x48 frames=60 ! null", &PACED);
    let ended = ends(terminal, 0);
    assert!(ended.text.contains("60 frames in "), "{}", ended.text);
    let terminal = top(80, 24, ENDLESS, &[&PACED[..], &["--seconds", "0.5", "--budget", "drops=0"]].concat());
    ends(terminal, 0);
    let terminal =
        top(80, 24, "pattern size=64x48 frames=60 ! null", &["--cpu", "--budget", "max_in_flight=0,drops=0"]);
    ends(terminal, 0);
}

#[test]
fn an_error_during_the_run_is_printed_after_the_screen_is_restored() {
    let dir = dir("top_error");
    let out = dir.join("one.png");
    let pipeline = format!("pattern size=16x16 ! png path={}", out.display());
    let ended = ends(top(200, 24, &pipeline, &PACED), 1);
    assert!(ended.text.contains("error: png0, frame 1: frame 1 would replace frame 0"), "{}", ended.text);
    let pipeline = format!("pattern size=16x16 ! png on-error=skip path={}", out.display());
    let terminal = top(200, 24, &pipeline, &PACED);
    terminal.wait_for("png0 failed on frame 1");
    terminal.press("q");
    let ended = ends(terminal, 0);
    assert!(ended.text.contains("warning: png0 failed on frame 1"), "{}", ended.text);
}

#[test]
fn windows_of_any_size_are_filled_and_too_small_ones_say_so() {
    let terminal = top(80, 24, ENDLESS, &PACED);
    terminal.wait_for("q end");
    terminal.resize(30, 8);
    terminal.wait_for("window too small: 30x8");
    terminal.resize(120, 40);
    terminal.wait("the last line", |screen| {
        screen.contents().lines().nth(39).is_some_and(|line| line.starts_with("q end")).then_some(())
    });
    terminal.resize(40, 12);
    terminal.wait_for("[1-1 of ");
    terminal.press("\x1b[B");
    terminal.wait_for("[2-2 of ");
    terminal.press("\t\x1b[B");
    terminal.wait("the second table", |screen| screen.contents().contains("[2-3 of 3]").then_some(()));
    terminal.press("q");
    ends(terminal, 0);
}

#[test]
fn a_key_right_after_a_resize_is_not_lost() {
    let terminal = top(80, 24, ENDLESS, &PACED);
    terminal.wait_for("q end");
    for columns in 81..100 {
        // The help and the figures alternate.
        for (columns, words) in [(columns, "files are finished"), (columns + 40, "null0")] {
            terminal.resize(columns, 24);
            terminal.press("?");
            terminal.wait_for(words);
        }
    }
    terminal.press("q");
    ends(terminal, 0);
}

#[test]
fn a_terminal_that_goes_away_ends_the_run() {
    let (pty, other_end) = pty_process::blocking::open().unwrap();
    pty.resize(pty_process::Size::new(24, 80)).unwrap();
    let command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_vramp")).env("TERM", "xterm-256color");
    let mut child = command.args(["top", ENDLESS]).args(PACED).spawn(other_end).unwrap();
    // The program has taken the screen once it draws.
    let mut first = [0];
    std::io::Read::read_exact(&mut &pty, &mut first).unwrap();
    drop(pty);
    let begun = std::time::Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if begun.elapsed() > std::time::Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("it continues without a terminal");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    // The exit code depends on what is noticed first: the signal, or that the terminal is gone.
    assert!(matches!(code, Some(1 | 130)), "{code:?}");
}

#[test]
fn escape_leaves_the_help_and_then_ends_the_run() {
    let terminal = top(80, 24, ENDLESS, &PACED);
    for key in ["?", "h", "\x1bOP"] {
        terminal.press(key);
        terminal.wait_for("files are finished");
        terminal.press("\x1b");
        terminal.wait_for("null0");
    }
    let so_far = terminal.number_before("out");
    terminal.wait("a larger count", |screen| {
        terminal::number_before(&screen.contents(), "out").filter(|count| *count > so_far)
    });
    terminal.press("\x1b");
    ends(terminal, 0);
}

#[test]
fn the_view_is_paused_while_the_run_continues() {
    let terminal = top(80, 24, ENDLESS, &PACED);
    terminal.number_before("out");
    terminal.press("p");
    terminal.wait_for("paused");
    let still = terminal.number_before("out");
    terminal.press("?");
    terminal.wait_for("files are finished");
    terminal.press("?");
    terminal.wait_for("null0");
    assert_eq!(terminal.number_before("out"), still);
    terminal.press(" ");
    terminal.wait("larger counts", |screen| {
        terminal::number_before(&screen.contents(), "out").filter(|count| *count > still)
    });
    terminal.press("q");
    ends(terminal, 0);
}

/// The frame number after these words.
fn frame_after(screen: &vt100::Screen, words: &str) -> Option<u64> {
    screen.contents().split(words).nth(1)?.split_whitespace().next()?.parse().ok()
}

/// The row of the settings table that starts with this name.
fn row(screen: &vt100::Screen, name: &str) -> Option<Vec<String>> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    screen.contents().lines().map(words).find(|row| row.first().is_some_and(|first| first == name))
}

#[test]
fn keys_change_settings_while_the_run_continues() {
    let terminal = top(100, 30, "pattern size=64x48 ! blur ! null", &PACED);
    terminal.wait_for("s settings");
    terminal.press("s");
    terminal.wait_for("blur0.sigma");
    assert_eq!(terminal.wait("a fixed row", |screen| row(screen, "pattern0.size"))[1..3], ["64x48", "fixed"]);
    let below = terminal.wait("rows", |screen| {
        let names: Vec<String> = screen.contents().lines().map(str::to_owned).collect();
        let first = names.iter().position(|line| line.starts_with("pattern0.kind"))?;
        Some(names.iter().position(|line| line.starts_with("blur0.sigma"))? - first)
    });
    terminal.press(&"\x1b[B".repeat(below));
    terminal.press("+");
    let first = terminal.wait("a step", |screen| frame_after(screen, "blur0.sigma=2.2 from frame "));
    assert_eq!(terminal.wait("the new value", |screen| row(screen, "blur0.sigma"))[1..3], ["2.2", "live"]);
    terminal.press("-");
    terminal.wait("a step back", |screen| frame_after(screen, "blur0.sigma=2 from frame "));
    // The input line: `q` is text, and Esc leaves the value as it was.
    terminal.press("\rq");
    terminal.wait_for("blur0.sigma = 2q");
    terminal.press("\x1b");
    terminal.wait_for("Enter edit");
    terminal.press("\r\x7f3.5\r");
    terminal.wait("an edited value, with a later frame", |screen| {
        frame_after(screen, "blur0.sigma=3.5 from frame ").filter(|frame| *frame > first)
    });
    terminal.press("\rmany\r");
    terminal.wait_for("blur0: `3.5many` is not a valid sigma; expected a number from 0.01 to 100");
    assert_eq!(terminal.wait("the old value", |screen| row(screen, "blur0.sigma"))[1], "3.5");
    // A rebuild: the first row, `pattern0.kind`.
    terminal.press("\x1b[H\x1b[C");
    terminal.wait("another picture", |screen| frame_after(screen, "pattern0.kind=bars from frame "));
    // A fixed setting, the second row.
    terminal.press("\x1b[B\r");
    terminal.wait_for("pattern0.size is read when the pipeline starts");
    terminal.wait_for("these can: kind");
    terminal.press("\x1b");
    terminal.wait_for("at work");
    let so_far = terminal.number_before("out");
    terminal.wait("a larger count", |screen| {
        terminal::number_before(&screen.contents(), "out").filter(|count| *count > so_far)
    });
    terminal.press("q");
    ends(terminal, 0);
}

#[test]
fn kernels_on_the_device_are_rebuilt_while_the_view_continues() {
    let terminal = top(100, 30, "pattern size=64x48 ! blur ! null", &["--gpu", "--fps", "100"]);
    terminal.wait_for("(vulkan)  busy ");
    // Steps follow each other, even if the first one is still compiled.
    terminal.press("s+++");
    terminal.wait("the last picture", |screen| frame_after(screen, "pattern0.kind=checker from frame "));
    let so_far = terminal.number_before("out");
    terminal.wait("a larger count", |screen| {
        terminal::number_before(&screen.contents(), "out").filter(|count| *count > so_far)
    });
    terminal.press("q");
    ends(terminal, 0);
}

#[test]
fn ctrl_c_interrupts_while_a_value_is_edited() {
    let terminal = top(80, 24, ENDLESS, &PACED);
    terminal.wait_for("s settings");
    terminal.press("s\r");
    terminal.wait_for("pattern0.kind = ball");
    terminal.resize(20, 5);
    terminal.wait_for("window too small");
    terminal.resize(40, 12);
    terminal.wait_for("pattern0.kind = ball");
    terminal.press("\x03");
    ends(terminal, 130);
}

#[test]
fn a_lost_device_is_among_the_events() {
    let more = ["--gpu", "--fps", "100", "--lose-device-at", "20", "--on-loss", "cpu"];
    let terminal = top(100, 30, "pattern size=64x48 ! blur ! null", &more);
    terminal.wait_for("the CPU continues");
    terminal.wait_for("lost once");
    terminal.press("q");
    let ended = ends(terminal, 0);
    assert!(ended.text.contains("warning: ") && ended.text.contains("device lost"), "{}", ended.text);
}

#[test]
fn without_a_terminal_or_with_a_sink_on_standard_output_it_is_refused() {
    let run = ends_with(2, vramp(&["top", "pattern ! null"]));
    assert!(
        run.out.is_empty() && run.err.contains("not a terminal") && run.err.contains("run PIPELINE --json"),
        "{}",
        run.err
    );
    assert!(ends_with(2, vramp(&["top", "pattern ! blru ! null"])).err.contains("blru"));
    for (pipeline, words) in [
        ("pattern ! y4m path=-", "y4m0 writes frames to standard output"),
        ("pattern ! terminal", "terminal0 draws on standard output"),
        ("raw path=- size=8x8 ! null", "raw0 reads frames from standard input"),
    ] {
        let ended = ends(top(200, 24, pipeline, &["--cpu"]), 2);
        assert!(ended.text.contains(words) && ended.text.contains("vramp top"), "{}", ended.text);
    }
    let ended = ends(top(200, 24, "pattern ! null", &["--verify"]), 2);
    assert!(ended.text.contains("cannot compare"), "{}", ended.text);
}

// ---- the sink `terminal`

/// The number of screen lines that are full of half blocks.
fn picture_lines(screen: &vt100::Screen) -> usize {
    screen.contents().lines().filter(|line| line.matches('▀').count() > 5).count()
}

fn run(columns: u16, lines: u16, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
    Terminal::start(columns, lines, &[&["run"][..], args].concat(), variables)
}

#[test]
fn a_picture_is_drawn_in_place_in_full_colour_and_stays() {
    let terminal = run(80, 24, &["pattern kind=bars size=160x90 frames=40 ! terminal", "--cpu", "--fps", "100"], &[]);
    let ended = ends(terminal, 0);
    assert!(
        ended.bytes.contains("\x1b[38;2;") && ended.bytes.contains("\x1b[?25l"),
        "it is coloured, without a cursor"
    );
    let lines = ended.text.lines().filter(|line| line.contains('▀')).count();
    // The closing lines push the upper part of 23 lines out of the window, and no second frame is below it.
    assert!((15..=23).contains(&lines), "{lines} lines\n{}", ended.text);
    let pictures = ended.bytes.matches("\x1b[?2026h").count();
    assert!((2..=15).contains(&pictures), "{pictures} pictures of 40 frames in 0.4 s");
    assert!(ended.text.contains("40 frames in "), "all count as taken: {}", ended.text);
    assert!(!ended.bytes.contains("%  "), "no progress beside it");
}

#[test]
fn a_verbose_run_has_its_pools_below_the_bar() {
    let args = ["pattern size=64x48 ! blur ! null", "--cpu", "--fps", "100", "--frames", "150", "-v"];
    let terminal = run(80, 24, &args, &[]);
    terminal.wait("a bar, and the pool below it", |screen| {
        let mut lines = screen.rows(0, 80).skip_while(|line| !line.contains("of 150 frames")).skip(1);
        lines.next().filter(|line| line.starts_with("cpu pool: ") && line.trim_end().ends_with(" misses/s")).map(drop)
    });
    let ended = ends(terminal, 0);
    assert!(!ended.text.contains("cpu pool: "), "nothing of it stays: {}", ended.text);
}

#[test]
fn the_picture_follows_the_window_and_ctrl_c_gives_the_cursor_back() {
    let terminal = run(80, 24, &["pattern size=160x90 ! terminal", "--cpu", "--fps", "60"], &[]);
    terminal.wait("a picture", |screen| (picture_lines(screen) >= 20).then_some(()));
    assert!(terminal.wait("a hidden cursor", |screen| screen.hide_cursor().then_some(true)));
    terminal.resize(40, 10);
    terminal.wait("a smaller one", |screen| {
        let lines: Vec<String> = screen.contents().lines().map(str::to_owned).collect();
        let full = lines.iter().filter(|line| line.chars().filter(|c| *c == '▀').count() == 32).count();
        (full == 9).then_some(())
    });
    terminal.press("\x03");
    let ended = ends(terminal, 130);
    assert!(ended.text.contains(" frames in "), "{}", ended.text);
}

#[test]
fn the_terminal_is_given_back_after_an_error_elsewhere() {
    let dir = dir("terminal_error");
    let out = dir.join("one.png");
    let pipeline = format!("pattern name=a size=160x90 ! terminal; a. ! png path={}", out.display());
    let ended = ends(run(120, 24, &[&pipeline, "--cpu", "--fps", "30"], &[]), 1);
    assert!(ended.text.contains("error: png0, frame 1"), "{}", ended.text);
}

#[test]
fn fewer_colours_and_none_are_drawn_too() {
    let pipeline = "pattern kind=bars size=160x90 frames=3 ! terminal";
    let ended = ends(run(80, 24, &[pipeline, "--cpu"], &[("TERM", "screen-256color")]), 0);
    assert!(ended.bytes.contains("\x1b[38;5;") && !ended.bytes.contains("38;2;"));
    let ended = ends(run(80, 24, &[pipeline, "--cpu"], &[("NO_COLOR", "1")]), 0);
    assert!(
        !ended.bytes.contains("38;") && !ended.bytes.contains('▀') && ended.text.contains("@@@@"),
        "{}",
        ended.text
    );
    let ended = ends(run(200, 24, &[pipeline, "--cpu"], &[("TERM", "dumb")]), 1);
    assert!(ended.text.contains("TERM=dumb"), "{}", ended.text);
}

#[test]
fn drawing_elsewhere_than_into_a_terminal_is_refused() {
    let pipeline = "pattern size=16x9 frames=2 ! terminal";
    let run = ends_with(2, vramp(&["run", pipeline, "--cpu"]));
    assert!(run.out.is_empty() && run.err.contains("not a terminal") && run.err.contains("y4m path=-"), "{}", run.err);
    let run = ends_with(2, vramp(&["run", pipeline, "--json"]));
    assert!(run.err.contains("terminal0 draws on standard output, where --json"), "{}", run.err);
    let two = "pattern name=a frames=2 ! terminal; a. ! terminal";
    assert!(ends_with(2, vramp(&["run", two])).err.contains("both draw"));
    let two = "pattern name=a frames=2 ! terminal; a. ! y4m path=-";
    assert!(ends_with(2, vramp(&["run", two])).err.contains("terminal0 draws there"));
    ends_with(0, vramp(&["run", "pattern size=16x9 frames=2 ! terminal", "--cpu", "--verify"]));
}
