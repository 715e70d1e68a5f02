//! A small catalogue for the tests of reading and printing: one kind for each rule about bare values.

use vramp_plan::catalog::{Catalog, Entry, Fallback, Input, Liveness, PathUse, Setting, ValueType};

const fn setting(name: &'static str, value: ValueType) -> Setting {
    Setting { name, value, fallback: Fallback::Unset, liveness: Liveness::Fixed, about: "" }
}

static PATTERN_SETTINGS: [Setting; 2] = [setting("kind", ValueType::Text), setting("size", ValueType::Size)];
static PATTERN: Entry = Entry { name: "pattern", settings: &PATTERN_SETTINGS, ..Entry::SOURCE };

static PATH: [Setting; 1] = [setting("path", ValueType::Path(PathUse::Read))];
static READS: Entry = Entry { name: "y4m", settings: &PATH, bare: Some("path"), ..Entry::SOURCE };
static WRITES: Entry = Entry { name: "y4m", settings: &PATH, ..Entry::SINK };
static PNG: Entry = Entry { name: "png", settings: &PATH, bare: Some("path"), ..Entry::SINK };

static BLUR_SETTINGS: [Setting; 2] = [
    setting("sigma", ValueType::Number { min: 0.0, max: 99.0 }),
    setting("size", ValueType::Odd { max: 31, zero: true }),
];
static BLUR: Entry = Entry { name: "blur", settings: &BLUR_SETTINGS, bare: Some("sigma"), ..Entry::FILTER };

static TEXT_SETTINGS: [Setting; 1] = [setting("text", ValueType::Text)];
static TEXT: Entry = Entry { name: "text", settings: &TEXT_SETTINGS, bare: Some("text"), ..Entry::FILTER };

static INVERT: Entry = Entry { name: "invert", ..Entry::FILTER };
static MIX_INPUTS: [Input; 2] = [Input { name: "a", ..Input::VIDEO }, Input { name: "b", ..Input::VIDEO }];
static MIX: Entry = Entry { name: "mix", inputs: &MIX_INPUTS, ..Entry::FILTER };
// The eleventh `blur` has the same default name as the first of these.
static BLUR1: Entry = Entry { name: "blur1", ..Entry::FILTER };
static NULL: Entry = Entry { name: "null", ..Entry::SINK };

/// The kinds, for tests that make graphs.
#[allow(dead_code, reason = "not every test that shares this file makes graphs")]
pub(crate) const KINDS: [&str; 9] = ["pattern", "y4m", "png", "blur", "text", "invert", "mix", "blur1", "null"];

pub(crate) fn catalog() -> Catalog {
    Catalog::of([&PATTERN, &READS, &WRITES, &PNG, &BLUR, &TEXT, &INVERT, &MIX, &BLUR1, &NULL])
        .expect("the entries are well formed")
}
