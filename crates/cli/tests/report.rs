//! `run --report FILE` and `plan --format html`: pages that are complete however a run ends, agree with `--json`, and
//! that a browser shows without an error, in light and dark, on a desk and on a phone.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::program::{command, dir, ends_with, file, json, vramp, vramp_in};
use serde_json::Value;

/// The data of a page.
#[track_caller]
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"vramp-data\" class=\"vramp-data\">").expect("the page has data");
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[track_caller]
fn read(dir: &Path, name: &str) -> String {
    let page = std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name} is not whole");
    page
}

fn left_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A chain of this many handlers, with forks that join again.
fn long_pipeline(handlers: usize, source: &str, sink: &str) -> String {
    let filters = ["blur", "invert", "brightness 0.1", "flip axis=h", "boxblur", "posterize", "sharpen", "median"];
    let (mut chain, mut forks, mut count) = (source.to_owned(), String::new(), 2);
    while count < handlers {
        if count % 12 == 7 && count + 4 <= handlers {
            let _ = write!(chain, " ! identity name=f{count} ! blur ! mix name=m{count}");
            let _ = write!(forks, "; f{count}. ! edges ! m{count}.b");
            count += 4;
        } else {
            let _ = write!(chain, " ! {}", filters[count % filters.len()]);
            count += 1;
        }
    }
    format!("{chain} ! {sink}{forks}")
}

#[test]
fn the_page_and_the_json_of_a_run_have_the_same_report() {
    let dir = dir("the_page_and_the_json");
    for side in ["--cpu", "--gpu"] {
        let text = "pattern size=64x48 frames=40 ! blur ! invert ! text \"<b>\\\"'&\" ! y4m path=out.y4m";
        let run = ends_with(0, vramp_in(&dir, &["run", text, side, "--json", "-q", "--report", "run.html"]));
        let page = data(&read(&dir, "run.html"));
        assert_eq!(page["report"], json(&run));
        assert_eq!(page["vramp_report"], 1);
        assert_eq!(page["pipeline"], text);
        assert_eq!(page["problems"], serde_json::json!([]));
        let settings = page["settings"].as_array().unwrap().iter().find(|own| own["handler"] == "text0").unwrap();
        assert!(settings["settings"].to_string().contains("<b>"), "{settings}");
        let frames = page["observed"]["timeline"]["windows"].as_array().unwrap();
        assert!(!frames.is_empty() && page["observed"]["samples"]["rows"].as_array().unwrap().len() > 1);
        assert_eq!(left_in(&dir), ["out.y4m", "run.html"]);
        std::fs::remove_file(dir.join("out.y4m")).unwrap();
    }
}

#[test]
fn a_plan_has_the_same_data_as_json() {
    let args = ["plan", "pattern size=64x48 ! blur ! png path=x-%d.png", "--profile", "discrete"];
    let page = ends_with(0, vramp(&[&args[..], &["--format", "html"]].concat()));
    let plan = json(&ends_with(0, vramp(&[&args[..], &["--json"]].concat())));
    let data = data(&page.out);
    assert_eq!(data["plan"], plan);
    assert_eq!((&data["report"], &data["observed"]), (&Value::Null, &Value::Null));
    assert!(!page.out.contains("://"), "the page names no address");
}

#[test]
fn collecting_a_report_allocates_nothing_per_frame() {
    let dir = dir("collecting_a_report");
    for (side, budget) in [("--cpu", "heap_allocs=0,frame_copies=0"), ("--gpu", "heap_allocs=0,gpu_allocs=0")] {
        let text = "pattern size=64x48 frames=400 ! blur ! invert ! null";
        let args = ["run", text, side, "--budget", budget, "--report", "run.html"];
        ends_with(0, vramp_in(&dir, &args));
        // Many calls are recorded, but a page stays small.
        assert!(read(&dir, "run.html").len() < 400_000);
    }
}

#[test]
fn a_run_that_fails_or_exceeds_a_budget_leaves_a_page_that_says_so() {
    let dir = dir("a_run_that_fails_leaves_a_page");
    let raw = file(&dir, "cut.raw", vec![7; 5 * 256 + 100]);
    let text = format!("raw path={raw} size=8x8 ! blur ! null");
    let run = ends_with(1, vramp_in(&dir, &["run", &text, "--cpu", "--report", "run.html"]));
    let page = data(&read(&dir, "run.html"));
    let problem = page["problems"][0].as_str().unwrap();
    assert!(problem.contains("raw0") && run.err.contains(problem), "{problem}\n{}", run.err);
    assert_eq!(page["report"]["frames_out"], 5);
    let text = "pattern size=8x8 frames=9 ! null";
    let args = ["run", text, "--cpu", "--budget", "fps=1000000000", "--report", "run.html"];
    ends_with(4, vramp_in(&dir, &args));
    let page = data(&read(&dir, "run.html"));
    assert!(page["problems"][0].as_str().unwrap().contains("fps"), "{}", page["problems"]);
    assert_eq!(left_in(&dir), ["cut.raw", "run.html"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_whole_page() {
    let dir = dir("ctrl_c_leaves_a_whole_page");
    let path = dir.join("run.html");
    let args = ["run", "pattern size=64x48 ! blur ! null", "--cpu", "--report", path.to_str().unwrap()];
    let mut child = command(&args).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut err = String::new();
    while !err.contains("fps") {
        assert!(std::io::BufRead::read_line(&mut lines, &mut err).unwrap() > 0, "it ended too early: {err}");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::io::Read::read_to_string(&mut lines, &mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{err}");
    let text = read(&dir, "run.html");
    let page = data(&text);
    assert_eq!(page["problems"][0], "the run was interrupted");
    assert!(page["report"]["frames"].as_u64().unwrap() > 0);
    // A second of quick frames: most of them are left out.
    assert_eq!(page["observed"]["timeline"]["is_cut"], true);
    assert!(text.len() < 600_000, "{} bytes", text.len());
    assert_eq!(left_in(&dir), ["run.html"]);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_runs() {
    let dir = dir("a_page_that_cannot_be_written");
    let a_file = file(&dir, "a_file", "");
    let text = "pattern size=8x8 frames=2 ! png path=out-%d.png";
    for path in ["missing/run.html", ".", "-", &format!("{a_file}/run.html")] {
        let run = ends_with(2, vramp_in(&dir, &["run", text, "--cpu", "--report", path]));
        assert!(run.err.contains("--report"), "{path}: {}", run.err);
        assert_eq!(left_in(&dir), ["a_file"], "{path}");
    }
    let run = ends_with(2, vramp_in(&dir, &["run", text, "--cpu", "--verify", "--report", "x.html"]));
    assert!(run.err.contains("--report: --verify"), "{}", run.err);
    // The page must not replace what the run reads or writes.
    let clip = "pattern size=8x8 frames=2 ! y4m path=clip.y4m";
    for (text, path, more) in [
        (clip, "clip.y4m", vec![]),
        ("y4m path=a_file ! null", "a_file", vec![]),
        ("pattern frames=1 ! null", "both.html", vec!["--trace", "both.html"]),
    ] {
        let args = [&["run", text, "--cpu", "--report", path][..], &more].concat();
        let run = ends_with(2, vramp_in(&dir, &args));
        assert!(run.err.contains("--report"), "{}", run.err);
        assert_eq!(left_in(&dir), ["a_file"]);
    }
}

#[test]
fn both_a_timeline_and_a_page_can_be_written() {
    let dir = dir("both_a_timeline_and_a_page");
    let text = "pattern size=64x48 frames=30 ! blur ! null";
    ends_with(0, vramp_in(&dir, &["run", text, "--cpu", "--trace", "run.json", "--report", "run.html"]));
    let page = data(&read(&dir, "run.html"));
    assert_eq!(page["observed"]["timeline"]["is_cut"], false);
    let trace: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 60);
}

// ---- in a browser

/// Opens pages in Chromium, each as wide as a desk and as a phone. Returns what the browser and `check.js` complain
/// about.
fn shown(dir: &Path, pages: &[(&str, String)], dark: bool) -> Vec<String> {
    let quoted = |page: &str| page.replace('&', "&amp;").replace('"', "&quot;");
    let mut host = "<!doctype html><meta charset=utf-8><style>:root{color-scheme:light dark}</style>\n".to_owned();
    for (name, page) in pages {
        for (width, height) in [(1280, 900), (390, 844)] {
            let page = quoted(page);
            let size = format!("width=\"{width}\" height=\"{height}\"");
            let _ = writeln!(host, "<iframe data-name=\"{name}\" {size} srcdoc=\"{page}\"></iframe>");
        }
    }
    let _ = write!(host, "<script>{}</script>", include_str!("browser/check.js"));
    let path = file(dir, if dark { "dark.html" } else { "light.html" }, &host);
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--dump-dom"]);
    browser.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)));
    browser.arg(format!("--user-data-dir={}", dir.join("profile").display())).arg(format!("file://{path}"));
    let output = browser.output().expect("chromium is installed; `cargo xtask test` installs it");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut complaints: Vec<String> = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let result = dom.rsplit_once("<pre id=\"complaints\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let Some((result, _)) = result else {
        complaints.push(format!("the pages were not looked at: {log}"));
        return complaints;
    };
    let result = result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["frames"], 2 * pages.len());
    complaints.extend(result["complaints"].as_array().unwrap().iter().map(|own| own.as_str().unwrap().to_owned()));
    complaints
}

#[test]
fn a_browser_shows_plans_and_runs_without_an_error() {
    let dir = dir("a_browser_shows");
    let mut pages = Vec::new();
    for (name, handlers) in [("3 handlers", 3), ("30 handlers", 30), ("300 handlers", 300)] {
        let text = long_pipeline(handlers, "pattern size=1920x1080", "png path=out-%d.png");
        let run = ends_with(0, vramp(&["plan", &text, "--profile", "discrete", "--format", "html"]));
        assert_eq!(data(&run.out)["plan"]["handlers"].as_array().unwrap().len(), handlers);
        pages.push((name, run.out));
    }
    let mut run = |name: &'static str, code: i32, args: &[&str]| {
        ends_with(code, vramp_in(&dir, &[&["run"], args, &["-q", "--report", "run.html"]].concat()));
        let page = read(&dir, "run.html");
        std::fs::remove_file(dir.join("run.html")).unwrap();
        pages.push((name, page.clone()));
        data(&page)
    };
    let wide = "W".repeat(30);
    let text = format!(
        "pattern name={wide} size=320x240 frames=60 !{{latest}} blur name=m{wide} sigma=9 ! invert name=i{wide} ! text \
         \"</script><script>alert(1)</script>\" ! null"
    );
    let drops = run("drops", 0, &[&text, "--cpu"]);
    assert!(drops["report"]["dropped"]["link_full"].as_u64().unwrap() > 0);
    let text = "pattern size=64x48 frames=120 ! blur ! invert ! y4m path=out.y4m";
    let lost = run("lost device", 0, &[text, "--gpu", "--lose-device-at", "40,80"]);
    assert_eq!(lost["report"]["recoveries"].as_array().unwrap().len(), 2);
    assert!(lost["observed"]["events"].as_array().unwrap().iter().any(|own| own["loss"] == true));
    file(&dir, "cut.raw", vec![7; 5 * 256 + 100]);
    let failed = run("failed", 1, &["raw path=cut.raw size=8x8 ! blur ! null", "--cpu"]);
    assert!(failed["problems"][0].as_str().unwrap().contains("raw0"), "{}", failed["problems"]);
    for dark in [false, true] {
        assert_eq!(shown(&dir, &pages, dark), [""; 0], "dark: {dark}");
    }
}

#[test]
fn planted_mistakes_are_found_in_the_browser() {
    let dir = dir("planted_mistakes");
    let run = ends_with(0, vramp(&["plan", "pattern ! blur ! null", "--profile", "discrete", "--format", "html"]));
    let planted = |mistake: &str| run.out.replace("</main>", &format!("{mistake}</main>"));
    let pages = [
        ("good", run.out.clone()),
        ("error", planted("<script>missing()</script>")),
        ("wide", planted("<div style=\"width:2000px\">-</div>")),
        ("long", run.out.replace(">pattern0<", ">a name that is much too long for a box<")),
        ("no script", run.out.replace("(() => {\n  \"use strict\";", "if (false) (() => {\n  \"use strict\";")),
    ];
    let complaints = shown(&dir, &pages, false);
    for found in
        ["missing is not defined", "wide at 390: 2", "does not fit its box", "no script at 390: the script did not run"]
    {
        assert!(complaints.iter().any(|own| own.contains(found)), "{found}: {complaints:?}");
    }
    assert!(!complaints.iter().any(|own| own.starts_with("good")), "{complaints:?}");
}
