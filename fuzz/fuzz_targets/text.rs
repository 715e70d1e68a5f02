//! Any text is read or refused with mistakes, and every accepted text prints back as the same graph in both forms.

#![no_main]

#[path = "../../crates/plan/tests/text_kinds/mod.rs"]
mod text_kinds;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use vramp_plan::catalog::Catalog;
use vramp_plan::{Mistakes, SourceText, is_name, read_text, read_toml, write_text, write_toml};

static CATALOG: OnceLock<Catalog> = OnceLock::new();

fuzz_target!(|text: &str| {
    let catalog = CATALOG.get_or_init(text_kinds::catalog);
    let reading = read_text(text, catalog);
    assert!(reading.mistakes.len() <= 200);
    if !reading.mistakes.is_empty() {
        let _ = Mistakes { source: Some(SourceText::new("t", text)), list: reading.mistakes }.to_string();
    } else if reading.spec.handlers().iter().all(|handler| is_name(&handler.kind)) {
        assert_eq!(read_text(&write_text(&reading.spec), catalog).spec, reading.spec);
        assert_eq!(read_toml(&write_toml(&reading.spec)).spec, reading.spec);
    }
});
