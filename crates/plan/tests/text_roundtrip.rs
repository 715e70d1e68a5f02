//! Printed text reads back as the same graph, in both forms, for arbitrary graphs.

use crate::text_kinds;
use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use vramp_plan::{
    GraphSpec, HandlerId, HandlerSpec, LinkEnd, OnError, Policy, read_text, read_toml, write_text, write_toml,
};

/// Names that look like default names, like kinds and like neither.
const NAMES: [&str; 9] = ["cam", "blur0", "blur1", "blur10", "null", "mix0", "x-1_y", "name", "Z"];
const KEYS: [&str; 7] = ["sigma", "size", "path", "text", "kind", "k-1", "depth"];
const PORTS: [&str; 4] = ["a", "b", "video", "in0"];
/// Texts that tend to break quoting.
const PIECES: [&str; 22] = [
    "",
    " ",
    "\"",
    "\\",
    "\n",
    "\t",
    "\r\n",
    "#",
    "!",
    "!{latest}",
    ";",
    "=",
    ".",
    "a.b",
    "null",
    "ä",
    "\u{feff}",
    "\u{a0}",
    "\0",
    "\u{7f}",
    "'''",
    "}",
];

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        vec(select(&PIECES[..]), 0..6).prop_map(|pieces| pieces.concat()),
        any::<String>(),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        vec(-9.0..9.0_f64, 1..4).prop_map(|n| n.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        select(vec![
            "true", "007", "-0", "+1", "1e3", "2.50", ".5", "5.", "1,", ",", "1,,2", "1, 2", "nan", "0x10", "1_0"
        ])
        .prop_map(str::to_owned),
    ]
}

fn handler() -> impl Strategy<Value = HandlerSpec> {
    let settings = vec((select(&KEYS[..]), value()), 0..4);
    let name = option::weighted(0.3, select(&NAMES[..]));
    (select(&text_kinds::KINDS[..]), name, settings, select(&OnError::ALL[..])).prop_map(
        |(kind, name, settings, on_error)| {
            let mut handler = HandlerSpec::new(kind).on_error(on_error);
            handler.name = name.map(str::to_owned);
            settings.into_iter().fold(handler, |handler, (key, value)| handler.set(key, value))
        },
    )
}

fn end() -> impl Strategy<Value = (prop::sample::Index, Option<&'static str>)> {
    (any::<prop::sample::Index>(), option::weighted(0.4, select(&PORTS[..])))
}

fn spec() -> impl Strategy<Value = GraphSpec> {
    let delivery = option::of((select(&Policy::ALL[..]), option::of(1..=65_536_u32)));
    // Neighbours are linked often, so that chains of every length occur.
    let chained = vec(any::<bool>(), 14);
    (vec(handler(), 1..14), chained, vec((end(), end(), delivery), 0..8)).prop_map(|(handlers, chained, links)| {
        let mut spec = GraphSpec::new();
        let mut names = BTreeSet::new();
        for mut handler in handlers {
            handler.name = handler.name.filter(|name| names.insert(name.clone()));
            spec.add(handler);
        }
        let count = spec.handlers().len();
        for (index, _) in chained[..count - 1].iter().enumerate().filter(|(_, chained)| **chained) {
            spec.connect(HandlerId(index), HandlerId(index + 1));
        }
        for (from, to, delivery) in links {
            let end = |(index, port): (prop::sample::Index, Option<&str>)| {
                let handler = HandlerId(index.index(count));
                port.map_or(LinkEnd::from(handler), |port| handler.port(port))
            };
            let link = spec.connect(end(from), end(to));
            link.policy = delivery.map(|(policy, _)| policy);
            link.depth = delivery.and_then(|(_, depth)| depth);
        }
        spec
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_reads_back_as_the_same_graph(spec in spec()) {
        let text = write_text(&spec);
        let reading = read_text(&text, &text_kinds::catalog());
        prop_assert!(reading.mistakes.is_empty(), "{text}\n{:?}", reading.mistakes);
        prop_assert_eq!(reading.spec, spec, "{}", text);
    }

    #[test]
    fn toml_reads_back_as_the_same_graph(spec in spec()) {
        let toml = write_toml(&spec);
        let reading = read_toml(&toml);
        prop_assert!(reading.mistakes.is_empty(), "{toml}\n{:?}", reading.mistakes);
        prop_assert_eq!(reading.spec, spec, "{}", toml);
    }

    #[test]
    fn text_to_toml_and_back_is_the_same_text(spec in spec()) {
        let text = write_text(&spec);
        let toml = write_toml(&read_text(&text, &text_kinds::catalog()).spec);
        prop_assert_eq!(write_text(&read_toml(&toml).spec), text);
    }
}

#[test]
fn a_depth_without_a_policy_is_printed_as_one_that_waits() {
    let mut spec = GraphSpec::new();
    let from = spec.add(HandlerSpec::new("pattern"));
    let to = spec.add(HandlerSpec::new("null"));
    spec.connect(from, to).depth(3);
    assert_eq!(write_text(&spec), "pattern !{lossless depth=3} null\n");
    assert!(write_toml(&spec).ends_with("policy = \"lossless\"\ndepth = 3\n"));
}

#[test]
fn default_names_longer_than_a_given_name_may_be_still_read_back() {
    let mut spec = GraphSpec::new();
    let kind = "k".repeat(64);
    let (a, b) = (spec.add(HandlerSpec::new(kind.as_str())), spec.add(HandlerSpec::new(kind.as_str())));
    spec.connect(b, a);
    assert_eq!(read_text(&write_text(&spec), &text_kinds::catalog()).spec, spec);
    assert_eq!(read_toml(&write_toml(&spec)).spec, spec);
}
