//! Reads docs/cookbook.md: its recipes, their commands, files, outputs and pictures.

use std::path::PathBuf;

/// The text of the page.
pub(super) fn text() -> String {
    std::fs::read_to_string(folder().with_extension("md")).unwrap()
}

/// The folder with the pictures and files of the page.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cookbook"))
}

/// A block between two lines of three backticks.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    pub(super) language: String,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) fences: Vec<Fence>,
    /// The names of its pictures, without the folder.
    pub(super) pictures: Vec<String>,
}

/// The recipes: every part of the page under a heading of the third level.
pub(super) fn sections() -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut fence: Option<Fence> = None;
    for line in text().lines() {
        if let Some(mut open) = fence.take() {
            if line == "```" {
                found.last_mut().expect("blocks are in recipes").fences.push(open);
            } else {
                open.text += line;
                open.text.push('\n');
                fence = Some(open);
            }
        } else if let Some(language) = line.strip_prefix("```") {
            fence = Some(Fence { language: language.to_owned(), text: String::new() });
        } else if let Some(title) = line.strip_prefix("### ") {
            found.push(Section { title: title.to_owned(), fences: Vec::new(), pictures: Vec::new() });
        } else if let (Some((_, picture)), Some(section)) = (line.split_once("](cookbook/"), found.last_mut())
            && line.starts_with("![")
        {
            section.pictures.push(picture.trim_end_matches(')').to_owned());
        }
    }
    assert!(fence.is_none(), "the last block does not end");
    found
}

/// The anchor that a heading gets.
pub(super) fn anchor(title: &str) -> String {
    let kept = title.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect()
}
