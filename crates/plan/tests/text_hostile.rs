//! Hostile texts: reading ends, with a bounded list of mistakes that can be displayed.

use crate::text_kinds;
use vramp_plan::catalog::Catalog;
use vramp_plan::{GraphSpec, Mistakes, ParsedGraph, SourceText, is_name, read_text, read_toml, write_text, write_toml};

const TEXTS: [&str; 4] = [
    "pattern kind=ball size=1920x1080 ! blur sigma=2 ! text \"{fps} fps\" ! png path=out-%04d.png",
    "pattern name=cam on-error=skip ! mix !{queue depth=4} null\n# and\ncam. !{latest} mix.b; blur 2 text \"a\\\"b\\n\"",
    "y4m a.y4m ! invert\n ! y4m - ; pattern ! mix.a pattern ! mix.b mix ! null",
    "blur1 k-1=\"\" ! null0. null ; blru 2 3 ! null0.b",
];

const TOMLS: [&str; 2] = [
    "[[handlers]]\nkind = \"pattern\"\nname = \"cam\"\nsettings = { m = [1, 2.5], on = true, n = -3, t = \"a\\nb\" }\n\
     [[handlers]]\nkind = \"null\"\non-error = \"retry\"\n\n[[links]]\nfrom = \"cam\"\nto = \"null0.video\"\n\
     policy = \"queue\"\ndepth = 4\n",
    "handlers = [{ kind = 'a' }, { kind = 'a', settings.x = 0x10 }]\nlinks = [{ from = 'a0', to = 'a1.' }]\n",
];

/// A small random generator that gives the same texts on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

const BITS: [&str; 34] = [
    "!",
    "!{",
    "}",
    "{",
    "\"",
    "\\",
    ";",
    "\n",
    "#",
    "=",
    ".",
    " ",
    "\0",
    "ä",
    "\u{feff}",
    "\u{2028}",
    "null",
    "blur",
    "mix.b",
    "cam.",
    "name=",
    "name=cam",
    "on-error=",
    "depth=",
    "latest",
    "[[",
    "]]",
    "[[handlers]]",
    "'''",
    "kind = ",
    "settings.",
    "99999999999999999999",
    "-",
    "1e9",
];

fn mutated(dice: &mut Dice, texts: &[&str]) -> String {
    let mut bytes = texts[dice.below(texts.len())].as_bytes().to_vec();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(12)).min(bytes.len());
        match dice.below(5) {
            0 => drop(bytes.splice(at..at, BITS[dice.below(BITS.len())].bytes())),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.insert(at, dice.below(256) as u8),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = dice.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            _ => drop(bytes.splice(at..end, BITS[dice.below(BITS.len())].bytes())),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks the properties of every reading. Returns true if the text was valid.
#[track_caller]
fn inspect(text: &str, reading: &ParsedGraph, catalog: &Catalog) -> bool {
    let ParsedGraph { spec, mistakes } = reading;
    assert!(mistakes.len() <= 200, "{} mistakes", mistakes.len());
    assert!(spec.handlers().len() <= GraphSpec::MAX_HANDLERS);
    let starts: Vec<usize> = mistakes.iter().map(|m| m.span.as_ref().map_or(0, |span| span.start)).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    for mistake in mistakes {
        assert!(!mistake.title.is_empty() && mistake.title.len() < 1_000);
        assert!(!mistake.title.contains(char::is_control));
        assert!(mistake.span.clone().is_none_or(|span| text.get(span).is_some()), "{mistake:?} in {text:?}");
    }
    // Kinds that are not words cannot be written in every place; the checker refuses them.
    if mistakes.is_empty() && spec.handlers().iter().all(|handler| is_name(&handler.kind)) {
        assert_eq!(&read_text(&write_text(spec), catalog).spec, spec, "{text:?}");
        assert_eq!(&read_toml(&write_toml(spec)).spec, spec, "{text:?}");
        return true;
    }
    false
}

#[test]
fn mutated_pipelines_are_read_or_answered() {
    let catalog = text_kinds::catalog();
    let (mut dice, mut right, mut wrong) = (Dice(1), 0, 0);
    for round in 0..20_000 {
        let text = mutated(&mut dice, &TEXTS);
        let reading = read_text(&text, &catalog);
        if inspect(&text, &reading, &catalog) {
            right += 1;
        } else {
            wrong += 1;
        }
        if round % 50 == 0 {
            let shown = Mistakes { source: Some(SourceText::new("t", text)), list: reading.mistakes }.to_string();
            assert!(shown.len() < 100_000);
        }
    }
    assert!(right > 1_000 && wrong > 1_000, "the mutations are too wild or too tame: {right} right, {wrong} wrong");
}

#[test]
fn mutated_toml_is_read_or_answered() {
    let catalog = text_kinds::catalog();
    let (mut dice, mut right, mut wrong) = (Dice(2), 0, 0);
    for _ in 0..10_000 {
        let text = mutated(&mut dice, &TOMLS);
        if inspect(&text, &read_toml(&text), &catalog) {
            right += 1;
        } else {
            wrong += 1;
        }
    }
    assert!(right > 100 && wrong > 1_000, "the mutations are too wild or too tame: {right} right, {wrong} wrong");
}

#[test]
fn random_bytes_are_answered() {
    let catalog = text_kinds::catalog();
    let mut dice = Dice(3);
    for _ in 0..5_000 {
        let bytes: Vec<u8> = (0..dice.below(200)).map(|_| dice.below(256) as u8).collect();
        let text = String::from_utf8_lossy(&bytes);
        inspect(&text, &read_text(&text, &catalog), &catalog);
        inspect(&text, &read_toml(&text), &catalog);
    }
}

#[test]
fn megabytes_of_anything_come_to_an_end() {
    let catalog = text_kinds::catalog();
    let bits = [
        "!",
        "! ",
        "!{",
        "!{latest",
        "{",
        "\"",
        "\"\\",
        "\\\"\n",
        "\"\\q",
        "a",
        "a ",
        "null ",
        "null;",
        "a.",
        "a. ",
        "a. ! ",
        "a. ! b.\n",
        "null ! null0. ",
        "=",
        "a=",
        "a= ",
        "a=1 ",
        "a=\"",
        " ",
        "\n",
        "\n#",
        "#",
        ";",
        "\0",
        "ä",
        "1e9,",
        "name=a ",
        "[",
        "[[",
        "[[a]]\n",
        "[[handlers]]\n",
        "a=[",
        "{a=",
        "a.a.",
        "a={",
        "]\n",
        "'",
        "'''",
        "9",
        "[a.b]\n",
        "\"a\".",
    ];
    for bit in bits {
        for head in ["", "null ", "[[handlers]]\nkind="] {
            let text = format!("{head}{}", bit.repeat((1 << 20) / bit.len()));
            inspect(&text, &read_text(&text, &catalog), &catalog);
            inspect(&text, &read_toml(&text), &catalog);
        }
    }
}

#[test]
fn a_text_that_is_too_long_is_refused_unread() {
    let text = "!".repeat((8 << 20) + 1);
    for reading in [read_text(&text, &text_kinds::catalog()), read_toml(&text)] {
        assert_eq!(reading.spec, GraphSpec::new());
        assert_eq!(reading.mistakes.len(), 1);
        assert_eq!(reading.mistakes[0].title, "the text has 8388609 bytes");
    }
}

#[test]
fn the_largest_graph_reads_back_and_one_handler_more_is_refused() {
    let catalog = text_kinds::catalog();
    let text = "blur 2 ! ".repeat(GraphSpec::MAX_HANDLERS - 1) + "null";
    let reading = read_text(&text, &catalog);
    assert_eq!(reading.mistakes, []);
    assert!(inspect(&text, &reading, &catalog));

    for reading in [
        read_text(&format!("{text}; null later="), &catalog),
        read_toml(&(write_toml(&reading.spec) + "[[handlers]]\n")),
    ] {
        assert_eq!(reading.spec.handlers().len(), GraphSpec::MAX_HANDLERS);
        assert!(reading.mistakes.iter().any(|m| m.title == "too many handlers"), "{:?}", reading.mistakes);
    }
}

#[test]
fn more_links_than_inputs_could_take_are_refused() {
    let catalog = text_kinds::catalog();
    let text = "null;".to_owned() + &"null. ! null.\n".repeat(300_000);
    let reading = read_text(&text, &catalog);
    assert_eq!(reading.mistakes.len(), 1);
    assert_eq!(reading.mistakes[0].title, "too many links");
}
