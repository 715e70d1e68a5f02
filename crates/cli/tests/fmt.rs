//! `vramp fmt`: conversion between text and TOML in both directions.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{ends_with, vramp, vramp_fed};

const PIPELINES: [&str; 6] = [
    "pattern ! null",
    "pattern size=640x480 kind=bars ! blur 2 ! text \"{fps} \\\"fps\\\"\" ! png path=out-%04d.png",
    "pattern name=cam ! mix name=both ! null; cam. ! flip axis=h ! both.b",
    "pattern name=a !{latest} null\na. !{queue depth=4} null\na. !{lossless} null",
    "pattern ! blur on-error=skip ! null # a comment",
    "pattern ! colormatrix m=1,0,0,0,0,0,1,0,0,0,0,0,1,0,0,0,0,0,1,0 ! null",
];

#[test]
fn text_becomes_toml_and_toml_becomes_canonical_text() {
    for pipeline in PIPELINES {
        let toml = ends_with(0, vramp(&["fmt", pipeline])).out;
        assert!(toml.contains("[[handlers]]"), "{toml}");
        let text = ends_with(0, vramp_fed(&["fmt", "-"], toml.as_bytes())).out;
        assert!(!text.contains("[[handlers]]"), "{text}");
        let again = ends_with(0, vramp_fed(&["fmt", "-"], text.as_bytes())).out;
        assert_eq!(again, toml, "text -> TOML is the same from the canonical text");
        let text_again = ends_with(0, vramp_fed(&["fmt", "-"], again.as_bytes())).out;
        assert_eq!(text_again, text, "TOML -> text has one result");
    }
}

#[test]
fn both_forms_have_the_same_plan() {
    for pipeline in PIPELINES {
        let toml = ends_with(0, vramp(&["fmt", pipeline])).out;
        let planned = ends_with(0, vramp(&["plan", pipeline, "--json"])).out;
        assert_eq!(ends_with(0, vramp_fed(&["plan", "-", "--json"], toml.as_bytes())).out, planned);
    }
}

#[test]
fn a_wrong_pipeline_is_not_printed_in_any_form() {
    for pipeline in
        ["pattern ! blru ! null", "pattern ! ", "pattern ! blur sigma=lots ! null", "[[handlers]]\nkind = 1"]
    {
        let run = ends_with(2, vramp_fed(&["fmt", "-"], pipeline.as_bytes()));
        assert_eq!(run.out, "");
        assert!(run.err.starts_with("error"), "{}", run.err);
    }
}

#[test]
fn files_are_not_probed() {
    ends_with(0, vramp(&["fmt", "image path=no/such/picture.png ! null"]));
}
