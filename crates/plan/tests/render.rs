//! Plans built by hand, and their printed forms.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use vramp_plan::catalog::{Entry, Family, SettingValues, TransferDirection};
use vramp_plan::{
    Alternatives, Content, Format, FrameDesc, FusionGroup, Plan, PlannedHandler, PlannedLane, PlannedLink,
    PlannedMemory, Policy, PortAt, Size, Space, Transfer,
};

const FULL_HD: u64 = 8_294_400;

fn handler(name: &str, space: Space, lane: usize, group: Option<usize>, cost_ns: u64) -> PlannedHandler {
    static PATTERN: Entry = Entry { name: "pattern", ..Entry::SOURCE };
    static Y4M: Entry = Entry { name: "y4m", ..Entry::SOURCE };
    static PNG: Entry = Entry { name: "png", ..Entry::SINK };
    static NULL: Entry = Entry { name: "null", ..Entry::SINK };
    static CONVERT: Entry = Entry { name: "convert", family: Family::Convert, ..Entry::FILTER };
    static BLUR: Entry = Entry { name: "blur", ..Entry::FILTER };
    static INVERT: Entry = Entry { name: "invert", ..Entry::FILTER };
    let entry = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "pattern" => &PATTERN,
        "y4m" => &Y4M,
        "png" => &PNG,
        "null" => &NULL,
        "convert" => &CONVERT,
        "blur" => &BLUR,
        _ => &INVERT,
    };
    let (settings, lead) = (SettingValues::default(), 0);
    let name = name.to_owned();
    // Handlers without a kernel stand for handlers without a second implementation.
    let (alone_ns, other_ns) = (cost_ns, group.map(|_| 4 * cost_ns));
    PlannedHandler {
        name,
        entry,
        settings,
        lead,
        inserted: false,
        space,
        lane,
        group,
        cost_ns,
        alone_ns,
        other_ns,
        small_bytes: 0,
    }
}

fn group(space: Space, handlers: Vec<usize>, dispatches: u32, pass_ns: u64, other_ns: Option<u64>) -> FusionGroup {
    FusionGroup { space, handlers, dispatches, pass_ns, other_ns }
}

fn lane(device: bool, handlers: Vec<usize>) -> PlannedLane {
    PlannedLane { device, handlers, segments: Vec::new() }
}

fn at(handler: usize, port: &'static str) -> PortAt {
    PortAt { handler, port }
}

fn link(from: usize, to: usize, from_space: Space, space: Space, depth: u32, transfer: Option<usize>) -> PlannedLink {
    let size = Size::new(1920, 1080).unwrap();
    PlannedLink {
        from: at(from, "video"),
        to: at(to, "video"),
        from_space,
        space,
        content: Content::Video(FrameDesc { format: Format::Rgba8, size, rate: None }),
        tags: None,
        policy: Policy::Lossless,
        depth,
        transfer,
        rings: Vec::new(),
    }
}

/// `pattern ! invert ! blur ! png`: generated and filtered on the device, one download.
fn linear() -> Plan {
    use Space::{Cpu, Gpu};
    Plan {
        handlers: vec![
            handler("pattern0", Gpu, 0, Some(0), 40_000),
            handler("invert0", Gpu, 0, Some(0), 60_000),
            handler("blur0", Gpu, 0, Some(1), 900_000),
            handler("png0", Cpu, 1, None, 12_000_000),
        ],
        links: vec![link(0, 1, Gpu, Gpu, 0, None), link(1, 2, Gpu, Gpu, 0, None), link(2, 3, Gpu, Cpu, 2, Some(0))],
        transfers: vec![Transfer {
            from: at(2, "video"),
            to: vec![at(3, "video")],
            direction: TransferDirection::Down,
            bytes: FULL_HD,
            est_ns: 1_310_000,
            explicit: false,
        }],
        groups: vec![
            group(Gpu, vec![0, 1], 1, 5_000, Some(390_000)),
            group(Gpu, vec![2], 2, 100_000, Some(14_500_000)),
        ],
        lanes: vec![lane(true, vec![0, 1, 2]), lane(false, vec![3])],
        units: vec![],
        rings: vec![],
        memory: PlannedMemory { gpu_bytes: 2 * FULL_HD, cpu_bytes: FULL_HD, ..PlannedMemory::default() },
        segments: 1,
        profile: "shipped:integrated".to_owned(),
        cost_ns: 14_415_000,
        alternatives: Alternatives { cpu_ns: Some(21_000_000), gpu_ns: Some(14_415_000) },
        latency: None,
        warnings: vec!["png0 reads on the cpu only: blur0's frames go down".to_owned()],
        notes: vec![],
    }
}

/// A file fans out to a blurred and a plain branch on the device over one transfer. Both meet in a mix, and the result
/// is drawn over a pattern.
fn diamond() -> Plan {
    use Space::{Cpu, Gpu};
    let mut up = link(1, 2, Cpu, Gpu, 1, Some(0));
    let mut side = link(1, 3, Cpu, Gpu, 3, Some(0));
    up.policy = Policy::Latest;
    side.to.port = "b";
    let mut mixed = link(3, 5, Gpu, Gpu, 0, None);
    mixed.to.port = "b";
    Plan {
        handlers: vec![
            handler("y4m0", Cpu, 0, None, 700_000),
            PlannedHandler { inserted: true, ..handler("convert0", Cpu, 1, Some(0), 400_000) },
            handler("blur0", Gpu, 2, Some(1), 900_000),
            handler("mix0", Gpu, 2, Some(2), 80_000),
            handler("pattern0", Gpu, 2, Some(3), 40_000),
            handler("under", Gpu, 2, Some(3), 9_000),
            handler("null0", Gpu, 2, None, 0),
        ],
        links: vec![
            link(0, 1, Cpu, Cpu, 2, None),
            up,
            side,
            link(2, 3, Gpu, Gpu, 0, None),
            mixed,
            link(4, 5, Gpu, Gpu, 0, None),
            link(5, 6, Gpu, Gpu, 0, None),
        ],
        transfers: vec![Transfer {
            from: at(1, "video"),
            to: vec![at(2, "video"), at(3, "b")],
            direction: TransferDirection::Up,
            bytes: FULL_HD,
            est_ns: 45_200,
            explicit: true,
        }],
        groups: vec![
            group(Cpu, vec![1], 0, 240_000, Some(31_000)),
            group(Gpu, vec![2], 2, 0, Some(3_600_000)),
            group(Gpu, vec![3], 1, 0, None),
            group(Gpu, vec![4, 5], 1, 0, Some(120_000)),
        ],
        lanes: vec![lane(false, vec![0]), lane(false, vec![1]), lane(true, vec![2, 3, 4, 5, 6])],
        units: vec![],
        rings: vec![],
        memory: PlannedMemory { gpu_bytes: 4 * FULL_HD, cpu_bytes: 3 * FULL_HD, ..PlannedMemory::default() },
        segments: 1,
        profile: "lab.toml".to_owned(),
        cost_ns: 2_414_200,
        alternatives: Alternatives { cpu_ns: None, gpu_ns: Some(3_000_000) },
        latency: None,
        warnings: vec![],
        notes: vec![],
    }
}

/// A chain of this many handlers, one group each, with a transfer at every link.
fn long(n: usize) -> Plan {
    let space = |i: usize| if i.is_multiple_of(2) { Space::Gpu } else { Space::Cpu };
    let transfer = |i: usize| Transfer {
        from: at(i, "video"),
        to: vec![at(i + 1, "video")],
        direction: if space(i) == Space::Gpu { TransferDirection::Down } else { TransferDirection::Up },
        bytes: FULL_HD,
        est_ns: 1,
        explicit: false,
    };
    Plan {
        handlers: (0..n).map(|i| handler(&format!("invert{i}"), space(i), i % 2, Some(i), 1)).collect(),
        links: (0..n - 1).map(|i| link(i, i + 1, space(i), space(i + 1), 2, Some(i))).collect(),
        transfers: (0..n - 1).map(transfer).collect(),
        groups: (0..n).map(|i| group(space(i), vec![i], 1, 1, Some(2))).collect(),
        lanes: (0..2).map(|l| lane(l == 0, (0..n).filter(|i| i % 2 == l).collect())).collect(),
        units: vec![],
        rings: vec![],
        memory: PlannedMemory::default(),
        segments: 5000,
        profile: "shipped:software".to_owned(),
        cost_ns: 1,
        alternatives: Alternatives::default(),
        latency: None,
        warnings: vec![],
        notes: vec![],
    }
}

fn check(plan: &Plan, expected: &str) {
    let shown = plan.to_text(false);
    assert_eq!(shown.trim(), expected.trim(), "\n--- shown:\n{shown}");
}

#[test]
fn a_linear_plan_shows_its_fused_group_and_its_transfer_in_the_path_of_the_frame() {
    check(
        &linear(),
        "
14.41 ms a frame: 3 handlers on the gpu, 1 on the cpu, 1 transfer (1.31 ms)

         gpu  pattern0 + invert0   0.10 ms   cpu 0.39 ms  lane 0  group 0, 1 dispatch    rgba8 1920x1080  source
         gpu  blur0                1.00 ms  cpu 14.50 ms  lane 0  group 1, 2 dispatches  rgba8 1920x1080
  <= down ==  gpu->cpu  8.3 MB  ~1.31 ms  blur0.video -> png0.video
  cpu         png0                12.00 ms             -  lane 1

links    blur0.video -> png0.video  lossless  depth 2  rgba8 1920x1080
lanes    0 (device): pattern0, invert0, blur0
         1: png0
memory   gpu 16.6 MB, cpu 8.3 MB
device   1 segment, 3 dispatches a frame
cost     14.41 ms by shipped:integrated; --cpu would cost 21.00 ms, --gpu would cost 14.41 ms
warning: png0 reads on the cpu only: blur0's frames go down
",
    );
}

#[test]
fn a_diamond_says_what_feeds_a_row_where_that_is_not_the_row_above() {
    check(
        &diamond(),
        "
2.41 ms a frame: 5 handlers on the gpu, 2 on the cpu, 1 transfer (45 µs)

  cpu         y4m0                 0.70 ms            -  lane 0                         rgba8 1920x1080  source
  cpu         convert0 (inserted)  0.64 ms    gpu 31 µs  lane 1  group 0                rgba8 1920x1080
  === up ==>  cpu->gpu  8.3 MB  ~45 µs  convert0.video -> blur0.video, mix0.b  (explicit)
         gpu  blur0                0.90 ms  cpu 3.60 ms  lane 2  group 1, 2 dispatches  rgba8 1920x1080
         gpu  mix0                   80 µs            -  lane 2  group 2, 1 dispatch    rgba8 1920x1080  <- convert0, blur0
         gpu  pattern0 + under       49 µs  cpu 0.12 ms  lane 2  group 3, 1 dispatch    rgba8 1920x1080  source, <- mix0
         gpu  null0                   0 ms            -  lane 2

links    y4m0.video -> convert0.video   lossless  depth 2  rgba8 1920x1080
         convert0.video -> blur0.video  latest    depth 1  rgba8 1920x1080
         convert0.video -> mix0.b       lossless  depth 3  rgba8 1920x1080
lanes    0: y4m0
         1: convert0
         2 (device): blur0, mix0, pattern0, under, null0
memory   gpu 33.2 MB, cpu 24.9 MB
device   1 segment, 4 dispatches a frame
cost     2.41 ms by lab.toml; --cpu is impossible, --gpu would cost 3.00 ms
",
    );
}

#[test]
fn the_transfer_of_an_explicit_download_comes_after_it_and_is_drawn() {
    let mut plan = linear();
    plan.handlers[2] = PlannedHandler { group: None, ..handler("download0", Space::Gpu, 0, None, 0) };
    plan.groups.pop();
    plan.transfers[0] =
        Transfer { from: at(1, "video"), to: vec![at(2, "video")], explicit: true, ..plan.transfers[0].clone() };
    plan.links[2] = link(2, 3, Space::Cpu, Space::Cpu, 2, None);
    let shown = plan.to_text(false);
    let places = ["gpu  download0", "<= down ==", "cpu         png0"].map(|words| shown.find(words).unwrap());
    assert!(places.is_sorted() && shown.contains("(explicit)"), "{shown}");
    assert!(plan.to_mermaid().contains("h1 ==>|\"down 8.3 MB, 1.31 ms<br/>"), "{}", plan.to_mermaid());
}

#[test]
fn colour_adds_escape_codes_and_nothing_else() {
    for plan in [linear(), diamond(), long(50)] {
        let mut plain = String::new();
        let painted = plan.to_text(true);
        for (i, piece) in painted.split('\x1b').enumerate() {
            plain.push_str(if i == 0 { piece } else { piece.split_once('m').unwrap().1 });
        }
        assert!(painted.len() > plain.len());
        assert_eq!(plain, plan.to_text(false));
    }
}

#[test]
fn no_line_of_text_ends_in_a_space() {
    for plan in [linear(), diamond(), long(50)] {
        for colour in [false, true] {
            let shown = plan.to_text(colour);
            assert!(shown.lines().all(|line| line.trim_end() == line), "{shown}");
        }
    }
}

#[test]
fn a_group_of_many_handlers_is_broken_into_lines() {
    let mut plan = linear();
    for (i, handler) in plan.handlers.iter_mut().enumerate().take(3) {
        handler.name = format!("a-name-of-thirty-letters-at-le{i}");
        handler.group = Some(0);
    }
    plan.groups = vec![FusionGroup { handlers: vec![0, 1, 2], ..plan.groups[0].clone() }];
    let shown = plan.to_text(false);
    assert!(shown.contains("\n              + a-name-of-thirty-letters-at-le1\n"), "{shown}");
    assert!(shown.contains("\n              + a-name-of-thirty-letters-at-le2\n"), "{shown}");
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn json_has_the_promised_keys_and_shapes() {
    let plan = linear();
    let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
    let promised = BTreeSet::from([
        "handlers", "links", "ramps", "groups", "lanes", "memory", "segments", "profile", "cost_ms", "warnings",
        "notes",
    ]);
    let given: BTreeSet<&str> = keys(&json).into_iter().collect();
    assert_eq!(given.difference(&promised).copied().collect::<Vec<_>>(), ["alternatives", "latency"]);
    assert_eq!(promised.difference(&given).count(), 0);
    let expected = serde_json::json!({
        "handlers": {"name": "blur0", "kind": "blur", "space": "gpu", "lane": 0, "group": 1, "inserted": false,
                     "alone_ms": 0.9, "other_ms": 3.6},
        "links": {"from": "blur0.video", "to": "png0.video", "space": "cpu", "format": "rgba8", "size": [1920, 1080],
                  "policy": "lossless", "depth": 2, "from_space": "gpu"},
        "groups": {"id": 0, "space": "gpu", "handlers": ["pattern0", "invert0"], "dispatches": 1,
                   "cost_ms": 0.105, "other_ms": 0.39},
        "lanes": {"id": 1, "handlers": ["png0"], "device": false},
    });
    assert_eq!(json["handlers"][2], expected["handlers"]);
    assert_eq!((&json["handlers"][3]["group"], &json["handlers"][3]["other_ms"]), (&Value::Null, &Value::Null));
    assert_eq!(json["links"][2], expected["links"]);
    assert_eq!(
        json["ramps"],
        serde_json::json!([{"from": "blur0.video", "to": ["png0.video"], "direction": "gpu->cpu",
                            "bytes": 8_294_400, "est_ms": 1.31, "explicit": false}])
    );
    assert_eq!(json["groups"][0], expected["groups"]);
    assert_eq!(json["lanes"][1], expected["lanes"]);
    assert_eq!(json["memory"], serde_json::json!({"gpu_bytes": 16_588_800, "cpu_bytes": 8_294_400}));
    assert_eq!((json["segments"].as_u64(), json["profile"].as_str()), (Some(1), Some("shipped:integrated")));
    assert_eq!(json["cost_ms"].as_f64(), Some(14.415));
    assert_eq!(json["alternatives"], serde_json::json!({"cpu_ms": 21.0, "gpu_ms": 14.415}));
    assert_eq!(json["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn json_writes_null_for_a_missing_format_and_a_missing_alternative() {
    let mut plan = diamond();
    plan.links[0].content = Content::Data { bytes: 64, rate: None };
    let json: Value = serde_json::from_str(&plan.to_json()).unwrap();
    assert_eq!((&json["links"][0]["format"], &json["links"][0]["size"]), (&Value::Null, &Value::Null));
    assert_eq!(json["alternatives"]["cpu_ms"], Value::Null);
    assert_eq!(json["ramps"][0]["direction"], "cpu->gpu");
}

#[test]
fn json_on_one_line_says_the_same_and_keeps_the_order_of_the_manual() {
    for plan in [linear(), diamond()] {
        let line = plan.to_json_line();
        assert!(!line.contains('\n'));
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed, serde_json::from_str::<Value>(&plan.to_json()).unwrap());
        let places =
            ["\"handlers\":[{\"name\"", "\"links\"", "\"ramps\"", "\"groups\"", "\"lanes\":[{\"id\"", "\"memory\""]
                .map(|key| line.find(key).unwrap());
        assert!(places.is_sorted(), "{line}");
    }
}

#[test]
fn graphviz_draws_the_plan_with_every_handler_and_transfer() {
    for (plan, transfer) in [(linear(), "down 8.3 MB, 1.31 ms"), (diamond(), "up 8.3 MB, 45 µs")] {
        let mut child = Command::new("dot")
            .arg("-Tsvg")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("graphviz is installed: apt-get install graphviz");
        child.stdin.take().unwrap().write_all(plan.to_dot().as_bytes()).unwrap();
        let drawn = child.wait_with_output().unwrap();
        let words = String::from_utf8(drawn.stderr).unwrap();
        assert!(drawn.status.success() && !words.contains("syntax"), "{words}");
        let svg = String::from_utf8(drawn.stdout).unwrap();
        for handler in &plan.handlers {
            assert!(svg.contains(&format!(">{}", handler.name)), "{} is not drawn", handler.name);
        }
        assert!(svg.contains(transfer), "{svg}");
        let edges = svg.matches("class=\"edge\"").count();
        let forks = plan.transfers.iter().filter(|r| r.to.len() > 1).count();
        assert_eq!(edges, plan.links.len() + forks);
        // Two spaces and one group of two.
        assert_eq!(svg.matches("class=\"cluster\"").count(), 3);
    }
}

#[test]
fn mermaid_declares_every_id_once_before_it_is_used_and_closes_every_subgraph() {
    let mut plan = diamond();
    plan.handlers[2].name = "end".to_owned();
    plan.handlers[3].name = "subgraph".to_owned();
    for plan in [linear(), plan, long(7)] {
        let chart = plan.to_mermaid();
        let mut lines = chart.lines();
        assert_eq!(lines.next(), Some("flowchart LR"));
        let (mut open, mut known, mut edges) = (0, BTreeSet::new(), 0);
        for line in lines.map(str::trim) {
            if let Some(title) = line.strip_prefix("subgraph ") {
                open += 1;
                assert!(known.insert(title.split_once("[\"").unwrap().0), "{chart}");
            } else if line == "end" {
                open -= 1;
            } else if let Some((from, rest)) = line.split_once("==>|").or(line.split_once("-->|")) {
                let (label, to) = rest.split_once("| ").unwrap();
                assert!(known.contains(from.trim()) && known.contains(to), "{line}");
                assert!(label.starts_with('"') && label.ends_with('"'), "{line}");
                edges += 1;
            } else {
                let (id, shape) = line.split_at(line.find(['[', '(']).unwrap());
                assert!(known.insert(id), "{chart}");
                assert!(shape.ends_with("\"]") || shape.ends_with("\"))"), "{line}");
            }
            assert!(open >= 0);
        }
        assert_eq!(open, 0, "{chart}");
        let forks = plan.transfers.iter().filter(|r| r.to.len() > 1).count();
        assert_eq!(edges, plan.links.len() + forks);
        assert!(known.iter().all(|id| !matches!(*id, "end" | "subgraph" | "graph")));
    }
}

#[test]
fn a_plan_of_ten_thousand_handlers_prints_in_every_form() {
    let plan = long(10_000);
    let text = plan.to_text(true);
    let json = plan.to_json_line();
    let drawings = plan.to_dot().len() + plan.to_mermaid().len();
    assert!(text.contains("invert9999") && json.contains("invert9999") && drawings > 1_000_000);
    assert!(text.lines().all(|line| line.len() < 300));
}

#[test]
fn an_empty_plan_prints_in_every_form() {
    let plan = Plan {
        handlers: vec![],
        links: vec![],
        transfers: vec![],
        groups: vec![],
        lanes: vec![],
        segments: 0,
        ..linear()
    };
    assert!(plan.to_text(false).contains("device   not used"));
    assert_eq!(plan.to_mermaid(), "flowchart LR\n");
    assert!(plan.to_dot().ends_with("}\n"));
    assert!(serde_json::from_str::<Value>(&plan.to_json()).is_ok());
}
