//! Pages of plans and runs: well formed, without addresses, with every handler once, and with the figures of the plan
//! and of the report.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;

use serde_json::Value;
use vramp::plan::{Plan, Profile, RunOptions, Space};
use vramp::report::{Page, Recorder};
use vramp::runtime::Report;
use vramp::{Pipeline, PipelineBuilder};

/// Runs a pipeline and returns its page.
fn ran(builder: PipelineBuilder) -> (Plan, Report, Page) {
    let recorder = Recorder::new();
    let mut pipeline = builder.trace(recorder.trace()).listener(recorder.listener()).build().unwrap();
    let report = pipeline.outcome().unwrap().report;
    let page = Page::of_run(pipeline.plan(), &report, recorder.record(&pipeline.watch()));
    (pipeline.plan().clone(), report, page)
}

fn planned(text: &str, profile: &str) -> Plan {
    Pipeline::parse(text).profile(Profile::shipped(profile).unwrap()).plan().unwrap()
}

/// The data that a page carries.
#[track_caller]
fn data(html: &str) -> Value {
    let (_, rest) = html.split_once("id=\"vramp-data\" class=\"vramp-data\">").expect("the page has data");
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// What is wrong with the tags of a page.
fn malformed(html: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!doctype html>").unwrap_or(html);
    while let Some(at) = rest.find('<') {
        if rest[..at].contains('>') {
            return Some(format!("a bare > before {:.60}", &rest[at..]));
        }
        let end = rest[at..].find('>').map(|end| at + end)?;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Some(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let name = tag.split_whitespace().next().unwrap_or_default();
        if !name.chars().all(|c| c.is_ascii_alphanumeric()) || tag.matches('"').count() % 2 == 1 {
            return Some(format!("<{tag}> is not a tag"));
        }
        if name == "script" || name == "style" {
            rest = rest.split_once(&format!("</{name}>")).map(|(_, rest)| rest)?;
        } else if name != "meta" {
            open.push(name);
        }
    }
    open.last().map(|name| format!("<{name}> is not closed"))
}

/// The text of each element of a class, up to the next tag, with its attributes.
fn elements<'a>(html: &'a str, class: &str) -> Vec<(&'a str, &'a str)> {
    let begins = format!("class=\"{class}\"");
    html.match_indices(&begins)
        .filter_map(|(at, _)| html[at..].split_once('>').map(|(tag, rest)| (tag, rest.split('<').next().unwrap_or(""))))
        .collect()
}

#[test]
fn pages_are_well_formed_and_name_no_address() {
    let (_, _, run) = ran(Pipeline::parse("pattern size=64x48 frames=20 ! blur ! null"));
    for page in [run, Page::of_plan(&planned("pattern ! blur ! png path=x-%d.png", "discrete"))] {
        let page = page.title("a & b").problem("it <failed>").fact("driver", "\"x\"");
        let html = page.to_html();
        assert_eq!(malformed(&html), None);
        assert!(!html.contains("://"), "an address");
        assert!(html.contains("<title>a &amp; b</title>") && html.contains("it &lt;failed&gt;"));
        assert_eq!(data(&html)["facts"][0], serde_json::json!(["driver", "\"x\""]));
        assert_eq!(html, page.to_html(), "the same page gives the same bytes");
    }
    for planted in ["<div><p></div>", "<p>a > b</p>", "<p class=\"a>b</p>", "<div>", "<?p>", "</p>"] {
        assert!(malformed(&format!("<!doctype html><html>{planted}</html>")).is_some(), "{planted}");
    }
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</script><!--<script>alert('1')</script> \\\" & ]]>";
    let text = format!("pattern size=64x48 frames=3 ! text \"{hostile}\" ! null");
    let (plan, report, page) = ran(Pipeline::parse(&text).options(RunOptions::new().only(Space::Cpu)));
    let page = page.pipeline(&text).title(hostile).problem(hostile).fact(hostile, hostile);
    let html = page.to_html();
    assert_eq!(malformed(&html), None);
    // The page has its data and its own script, and no other.
    assert_eq!((html.matches("<script").count(), html.matches("<!--").count()), (2, 0));
    let data = data(&html);
    assert_eq!((data["title"].as_str(), data["pipeline"].as_str()), (Some(hostile), Some(text.as_str())));
    assert_eq!(data["plan"], serde_json::from_str::<Value>(&plan.to_json()).unwrap());
    // Compared as read from text: reading may change the last bit of a float.
    let written = serde_json::to_string(&report).unwrap();
    assert_eq!(data["report"], serde_json::from_str::<Value>(&written).unwrap());
    assert_eq!(data, serde_json::from_str::<Value>(&page.to_json()).unwrap());
}

#[test]
fn passwords_of_addresses_are_left_out() {
    let page = Page::of_plan(&planned("pattern ! null", "cpu")).pipeline("video path=rtsp://me:secret@cam/1 ! null");
    let html = page.to_html();
    assert!(!html.contains("secret") && html.contains("rtsp://***@cam/1"));
    assert_eq!(data(&html)["pipeline"], "video path=rtsp://***@cam/1 ! null");
    // A setting, long enough to be cut off before the end of the password.
    let text = "pattern ! text \"http://administrator:AVeryLongSecretPassword@camera/1\" ! null";
    let html = Page::of_plan(&planned(text, "cpu")).to_html();
    assert!(!html.contains("VeryLong") && html.contains("http://***@camera/1"));
}

#[test]
fn every_handler_and_transfer_is_drawn_once() {
    let text = "pattern name=p size=1920x1080 ! mix name=m ! blur ! invert ! png path=a-%d.png; \
                p. ! upload ! flip ! download ! m.b; p. ! every n=2 ! jpeg path=b-%d.jpg";
    for profile in ["discrete", "cpu", "integrated"] {
        let Ok(plan) = Pipeline::parse(text).profile(Profile::shipped(profile).unwrap()).plan() else { continue };
        let html = Page::of_plan(&plan).to_html();
        for drawing in ["graph wide", "graph narrow"] {
            let (_, rest) = html.split_once(&format!("class=\"{drawing}\"")).unwrap();
            let graph = rest.split_once("</svg>").unwrap().0;
            for handler in &plan.handlers {
                let shown = [
                    format!(">{}</text>", handler.name),
                    format!("▲ {}<", handler.name),
                    format!("▼ {}<", handler.name),
                ];
                let count: usize = shown.iter().map(|words| graph.matches(words.as_str()).count()).sum();
                let inserted = graph.matches(&format!(">{} (inserted)</text>", handler.name)).count();
                assert_eq!(count + inserted, 1, "{profile}, {drawing}: {}", handler.name);
            }
            let transfers = graph.matches("class=\"box transfer\"").count();
            assert_eq!(transfers, plan.transfers.len(), "{profile}, {drawing}");
        }
    }
}

/// The cells of each row of the table of times, by the name of the unit.
fn rows(html: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut rows = BTreeMap::new();
    for part in html.split("<div class=\"row ").skip(1) {
        let part = part.split("class=\"drawn\"").next().unwrap();
        let Some((_, name)) = elements(part, "who").first().copied() else { continue };
        let cells = elements(part, "cell").into_iter().map(|(tag, text)| {
            let key = tag.split("data-name=\"").nth(1).unwrap().trim_end_matches('"');
            (key.to_owned(), text.to_owned())
        });
        rows.insert(name.replace(" + ", "+"), cells.collect());
    }
    rows
}

/// Asserts that a figure in ms is this many ns, rounded to three digits or to 0.1 µs.
#[track_caller]
fn is_ms(shown: &str, ns: f64) {
    let ms: f64 = shown.strip_suffix(" ms").unwrap_or_else(|| panic!("{shown} is not in ms")).parse().unwrap();
    let rounding = if ms >= 10.0 {
        ms * 0.006
    } else if ms >= 0.1 {
        0.0051
    } else if ms >= 0.01 {
        0.00051
    } else {
        0.000_051
    };
    assert!((ms - ns / 1e6).abs() <= rounding, "{shown} instead of {} ms", ns / 1e6);
}

#[test]
fn the_figures_are_those_of_the_plan_and_the_report() {
    for options in [RunOptions::new().only(Space::Cpu), RunOptions::new().only(Space::Gpu)] {
        let text = "pattern size=320x240 frames=40 ! blur ! invert ! null";
        let (plan, report, page) = ran(Pipeline::parse(text).options(options.clone()));
        let rows = rows(&page.to_html());
        assert_eq!(rows.len(), plan.units.len());
        for unit in &report.units {
            let row = &rows[&unit.name];
            is_ms(&row["mean"], unit.mean_us * 1e3);
            assert_eq!(row["calls"], unit.calls.to_string());
        }
        for group in &report.groups {
            let row = &rows[&group.handlers.join("+")];
            match group.p50_us {
                Some(p50) => is_ms(&row["p50"], p50 * 1e3),
                None => assert_eq!(row["p50"], "–"),
            }
            let own = &plan.groups[group.id];
            let cost: u64 = own.handlers.iter().map(|at| plan.handlers[*at].cost_ns).sum();
            is_ms(&row["plan"], (own.pass_ns + cost) as f64);
        }
        // Medians of whole frames come from the same histograms.
        let distributions = &data(&page.to_html())["observed"]["distributions"];
        let p50_ms = |which: &str| distributions[which]["p50_ns"].as_f64().map(|ns| ns / 1e6);
        assert_eq!(p50_ms("latency"), report.latency_ms.p50);
        assert_eq!(p50_ms("frame"), report.frame_ms.p50);
        assert_eq!(distributions["latency"]["count"], report.frames_out);
        for unit in distributions["units"].as_array().unwrap() {
            let counts = unit["time"]["buckets"].as_array().unwrap().iter().map(|bucket| bucket[2].as_u64().unwrap());
            assert_eq!(counts.sum::<u64>(), unit["time"]["count"].as_u64().unwrap());
        }
    }
}

#[test]
fn samples_end_with_the_run_and_stay_bounded() {
    let (_, report, page) = ran(Pipeline::parse("pattern size=16x16 frames=3000 ! blur ! null"));
    let data = data(&page.to_html());
    let rows = data["observed"]["samples"]["rows"].as_array().unwrap();
    let columns = data["observed"]["samples"]["columns"].as_array().unwrap();
    let at = |name: &str| columns.iter().position(|own| own == name).unwrap();
    let last = rows.last().unwrap();
    assert_eq!(last[at("frames_out")], report.frames_out);
    assert!(rows.len() <= 513 && rows.windows(2).all(|pair| pair[0][0].as_u64() <= pair[1][0].as_u64()));
    assert!(page.to_html().len() < 600_000);
}
