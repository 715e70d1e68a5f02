//! Rules about the repository's text that no compiler checks.
//!
//! Each rule is a function from a path and its text to complaints. Each rule is tested twice: on the repository, where
//! it must find nothing, and on a planted mistake, which it must find.

use std::collections::BTreeSet;
use std::path::Path;

use crate::source::{code, files, is_rust, lines_with, outside_tests, root, walk};

const MOST_LINES: usize = 600;
const MOST_BYTES: u64 = 1_000_000;
const SAY_NOTHING: &[&str] = &["utils", "util", "common", "types", "base", "core", "helpers", "helper", "misc"];

type Rule = fn(&str, &str) -> Vec<String>;

/// The files that may count allocations as foreign (made by a driver, codec or window system), the number of such calls
/// in each file, and what makes the allocations.
const FOREIGN: &[(&str, usize, &str)] = &[
    (
        "crates/runtime/src/device/lane_player.rs",
        7,
        "wgpu: requesting memory, progress and timestamps, submitting, reading mapped memory, releasing, waiting",
    ),
    ("crates/handlers/src/picture_file.rs", 7, "image decoders, and the check that they can get memory"),
    ("crates/handlers/src/sink/jpeg.rs", 1, "the JPEG encoder"),
    ("crates/handlers/src/sink/png.rs", 1, "the PNG encoder"),
    ("crates/window/src/screen.rs", 1, "winit: the queue of its event loop"),
];

// ---- the files that a rule is about

/// Whether a path is code of the product or of xtask, and not a test, a bench or an example.
fn is_source(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    is_rust(path) && matches!(parts[..], ["crates", _, "src", ..] | ["xtask", "src", ..] | ["src", ..])
}

fn text_of(path: &str) -> Option<String> {
    String::from_utf8(std::fs::read(root().join(path)).expect("a listed file can be read")).ok()
}

fn complaints(about: fn(&str) -> bool, rule: Rule) -> Vec<String> {
    let paths = files().into_iter().filter(|path| about(path));
    paths.filter_map(|path| text_of(&path).map(|text| rule(&path, &text))).flatten().collect()
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

// ---- the rules

/// A file starts with a `//!` header whose first paragraph is a sentence.
fn header(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let sentence = paragraph.join(" ");
    let is_sentence = sentence.split_whitespace().count() >= 3 && sentence.ends_with(['.', ':', '?']);
    if is_sentence {
        vec![]
    } else {
        vec![format!("{path}:1: does not start with a `//!` sentence saying what it is for")]
    }
}

/// Files and folders have snake-case names that describe their content.
fn name(path: &str, _: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or(path, |(_, inside)| inside);
    let names = inside.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let snake = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let mut found = Vec::new();
    for name in names {
        if !snake(name) {
            found.push(format!("{path}: `{name}` is not snake_case"));
        }
        if SAY_NOTHING.contains(&name) {
            found.push(format!("{path}: `{name}` does not describe its content"));
        }
    }
    found
}

/// A file has a bounded number of lines; tests at its end do not count.
fn length(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").count();
    if lines <= MOST_LINES {
        return vec![];
    }
    vec![format!("{path}: {lines} lines before its tests exceed the limit of {MOST_LINES}; split it by topic")]
}

/// Words that no Rust file may contain, tests included.
fn words_anywhere(path: &str, text: &str) -> Vec<String> {
    const REFUSED: &[(&str, &str)] = &[
        ("#[ignore", "a test that does not run proves nothing: mend or remove it"),
        ("todo!", "finish it or leave it out"),
        ("unimplemented!", "finish it or leave it out"),
        ("dbg!", "left over from debugging"),
    ];
    refused(path, &code(text), REFUSED)
}

/// Words that make prose hard to read. Words for persons hide which part of the program acts.
fn stilted(path: &str, text: &str) -> Vec<String> {
    const REFUSED: &[(&str, &str)] = &[
        ("whoever", "name the caller, handler or lane"),
        ("nobody", "name the part that does not act"),
        ("somebody", "name the caller, handler or lane"),
        ("anybody", "name the caller, handler or lane"),
        ("everybody", "name the parts that act"),
        ("unless told", "write `defaults to`"),
        ("in front of", "write `before`"),
        ("is said", "write `reports` or `prints`, with a subject"),
    ];
    if path == "tests/tidy.rs" {
        return Vec::new();
    }
    let text = text.to_lowercase();
    let lines = text.lines().enumerate();
    let found =
        lines.flat_map(|(at, line)| REFUSED.iter().filter(|(word, _)| line.contains(word)).map(move |row| (at, row)));
    found.map(|(at, (word, instead))| format!("{path}:{}: `{word}`: {instead}", at + 1)).collect()
}

/// Words that only tests may contain.
fn words_in_sources(path: &str, text: &str) -> Vec<String> {
    const REFUSED: &[(&str, &str)] = &[
        ("#[allow(", "use `#[expect(..., reason = \"...\")]`, which fails once it is not needed"),
        ("#![allow(", "use `#![expect(..., reason = \"...\")]`, which fails once it is not needed"),
        (".unwrap()", "return the error, or `expect` with the reason why there is none"),
        ("mod tests;", "a file of tests is declared under `#[cfg(test)]`"),
    ];
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    if is_test { vec![] } else { refused(path, &outside_tests(&code(text)), REFUSED) }
}

fn refused(path: &str, code: &str, words: &[(&str, &str)]) -> Vec<String> {
    let found = words.iter().flat_map(|(word, why)| {
        lines_with(code, word).into_iter().map(move |line| format!("{path}:{line}: `{word}`: {why}"))
    });
    found.collect()
}

/// Tests may use `allow` with a reason.
fn allowed_without_reason(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let allows = code.match_indices("#[allow(").chain(code.match_indices("#![allow("));
    let bare = allows.filter(|(at, _)| !code[*at..].split(']').next().unwrap_or_default().contains("reason = "));
    let lines = bare.map(|(at, _)| 1 + code[..at].matches('\n').count());
    lines.map(|line| format!("{path}:{line}: an `allow` without `reason = \"...\"`")).collect()
}

/// Only calls into drivers, codecs and window systems are counted as foreign.
fn foreign_calls(path: &str, text: &str) -> Vec<String> {
    let found = outside_tests(&code(text)).matches("foreign(||").count();
    let listed = FOREIGN.iter().find(|(file, ..)| *file == path).map_or(0, |(_, count, _)| *count);
    if found == listed {
        return Vec::new();
    }
    vec![format!("{path}: {found} calls of `foreign`, {listed} are listed in FOREIGN; say whose allocations they are")]
}

/// Public names are re-exported one by one.
fn glob_reexports(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("pub use ").chain(code.match_indices("pub(crate) use ")) {
        let statement = code[at..].split(';').next().unwrap_or_default();
        if statement.contains("::*") || statement.contains("*}") || statement.contains("*,") {
            let line = 1 + code[..at].matches('\n').count();
            found.push(format!("{path}:{line}: a glob re-export hides what is public; list the names"));
        }
    }
    found
}

/// Every shader belongs to a kernel and has its CPU twin beside it, except shaders such as users write.
fn twins(paths: &[String]) -> Vec<String> {
    let known: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    for path in paths {
        let Some(stem) = path.strip_suffix(".wgsl") else { continue };
        if ["examples/shaders/", "docs/cookbook/", "tests/hostile_shaders/"]
            .iter()
            .any(|folder| path.starts_with(folder))
        {
            continue;
        }
        // The twin of a tensor kernel is a loop in `host`. What draws onto a screen has no twin. The Rust file that uses
        // such a shader is beside it.
        let uses = ["crates/tensor/src/", "crates/gpu/src/present/"];
        let in_use = uses.iter().any(|folder| path.starts_with(folder));
        if !path.starts_with("crates/kernels/src/") && !in_use {
            found.push(format!("{path}: shaders live in crates/kernels/src, beside their twins"));
        } else if in_use {
            let folder = stem.rsplit_once('/').map_or("", |(folder, _)| folder);
            let beside = [format!("{stem}.rs"), format!("{folder}/mod.rs")];
            if !beside.iter().any(|file| known.contains(file.as_str())) {
                found.push(format!("{path} has no Rust file beside it that uses it"));
            }
        } else if !known.contains(format!("{stem}.rs").as_str()) {
            found.push(format!("{path} has no twin {stem}.rs"));
        }
    }
    found
}

/// Every pixel kernel is in the list `ALL` of its folder, because the twin tests take their kernels from these lists. A
/// WGSL file without a kernel of its own is part of another kernel's text.
fn unlisted(paths: &[String], text_of: impl Fn(&str) -> String) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, list, kind) in [("pixel", "pixel/mod.rs", "PixelFn"), ("head", "head.rs", "Head")] {
        let (folder, list) = (format!("crates/kernels/src/{folder}/"), format!("crates/kernels/src/{list}"));
        if !paths.contains(&list) {
            continue;
        }
        let listed = code(&text_of(&list));
        let all = listed.split_once("static ALL").map_or("", |(_, all)| all.split(';').next().unwrap_or_default());
        let inside = |path: &&String| path.strip_prefix(&folder).is_some_and(|name| !name.contains('/'));
        let inside: Vec<&String> = paths.iter().filter(inside).collect();
        for path in &inside {
            let stem = path[folder.len()..].split('.').next().unwrap_or_default();
            let is_listed = all.contains(&format!("&{stem}::"));
            let declares = is_rust(path) && code(&text_of(path)).contains(&format!(": {kind} = {kind} {{"));
            let is_shader = Path::new(path).extension().is_some_and(|end| end == "wgsl");
            let included = |other: &&&String| {
                is_rust(other)
                    && !other.starts_with(&format!("{folder}{stem}."))
                    && text_of(other).contains(&format!("include_str!(\"{stem}.wgsl\")"))
            };
            if !is_listed && (declares || (is_shader && !inside.iter().any(|other| included(&other)))) {
                found
                    .push(format!("{path}: {list} does not have `&{stem}::...` in ALL, so no test compares its twins"));
            }
        }
    }
    found
}

/// Every test file is a module of the single test binary of its crate. An undeclared file is never compiled or run.
fn undeclared(paths: &[String], text_of: impl Fn(&str) -> String) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| is_rust(path)) {
        let parts: Vec<&str> = path.split('/').collect();
        let crate_parts = match parts[..] {
            ["crates", _, "tests", ..] => 2,
            ["xtask", "tests", ..] => 1,
            ["tests", ..] => 0,
            _ => continue,
        };
        let inside = |name: &str| [&parts[..crate_parts], &[name]].concat().join("/");
        let stem = |name: &str| name.trim_end_matches(".rs").to_owned();
        let (name, parents) = match &parts[crate_parts + 1..] {
            ["main.rs"] => {
                if !text_of(&inside("Cargo.toml")).contains("path = \"tests/main.rs\"") {
                    found.push(format!("{path} is not a target of {}", inside("Cargo.toml")));
                }
                continue;
            }
            [file] => (stem(file), vec![inside("tests/main.rs")]),
            [folder, "mod.rs"] => ((*folder).to_owned(), vec![inside("tests/main.rs")]),
            [folder, file] => {
                (stem(file), vec![inside(&format!("tests/{folder}/mod.rs")), inside(&format!("tests/{folder}.rs"))])
            }
            _ => (String::new(), vec![]),
        };
        let declares = |parent: &String| {
            paths.contains(parent) && !lines_with(&code(&text_of(parent)), &format!("mod {name};")).is_empty()
        };
        if !parents.iter().any(declares) {
            let where_to = parents.iter().find(|parent| paths.contains(parent)).or(parents.first());
            let where_to = where_to.map_or_else(|| inside("tests"), Clone::clone);
            found.push(format!("{path} does not run: {where_to} does not declare `mod {name};`"));
        }
    }
    found
}

/// No file depends on paths or mirrors of one machine.
fn places(path: &str, text: &str) -> Vec<String> {
    // The paths are written in two halves, so that this file passes its own rule.
    const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    const HOSTS: &[&str] = &[
        concat!("index.", "crates.io"),
        concat!("static.", "crates.io"),
        concat!("registry.", "npmjs.org"),
        concat!("pypi", ".org"),
        concat!("files.", "pythonhosted.org"),
        concat!("deb.", "debian.org"),
    ];
    const LOCKED_TO: &str = "\"registry+https://github.com/rust-lang/crates.io-index\"";
    let mut found = Vec::new();
    for (line, words) in text.lines().enumerate() {
        let line = line + 1;
        let continues = |c: char| c.is_alphanumeric() || "_.-~}/".contains(c);
        let is_absolute =
            |folder: &&&str| words.match_indices(**folder).any(|(at, _)| !words[..at].ends_with(continues));
        if let Some(folder) = FOLDERS.iter().find(is_absolute) {
            found.push(format!("{path}:{line}: names a path under {folder} of one machine"));
        }
        if let Some(host) = HOSTS.iter().find(|host| words.contains(**host)) {
            found.push(format!("{path}:{line}: names the registry host {host}; tools find theirs on their own"));
        }
        let is_lock = Path::new(path).file_name().is_some_and(|name| name == "Cargo.lock");
        if is_lock && words.strip_prefix("source = ").is_some_and(|source| source != LOCKED_TO) {
            found.push(format!("{path}:{line}: {words}: only crates.io is a source"));
        }
    }
    found
}

/// Relative links of a page, with their lines.
fn relative_links(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (line, words) in text.lines().enumerate() {
        if words.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece is between backticks, and is an example rather than a link.
        let prose: String = words.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        for target in inline.chain(definition) {
            let target = target.trim().split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((line + 1, target.to_owned()));
            }
        }
    }
    found
}

/// Every link of a page has a target, according to `exists`.
fn dead_links(path: &str, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let links = relative_links(text).into_iter();
    let dead = links.filter(|(_, target)| !exists(&folder.join(target.trim_start_matches('/'))));
    dead.map(|(line, target)| format!("{path}:{line}: links to {target}, which does not exist")).collect()
}

fn too_big(path: &str, bytes: u64) -> Option<String> {
    (bytes > MOST_BYTES).then(|| format!("{path}: {bytes} bytes exceed the limit of {MOST_BYTES}"))
}

// ---- the repository follows the rules

#[test]
fn every_source_file_introduces_itself() {
    assert_none(&complaints(is_source, header));
}

#[test]
fn files_are_named_for_what_is_in_them() {
    assert_none(&complaints(is_source, name));
}

#[test]
fn no_file_is_too_long_to_read() {
    assert_none(&complaints(is_source, length));
}

#[test]
fn no_rust_file_holds_a_refused_word() {
    assert_none(&complaints(is_rust, words_anywhere));
    assert_none(&complaints(is_source, words_in_sources));
    assert_none(&complaints(is_rust, allowed_without_reason));
}

#[test]
fn prose_names_its_subjects() {
    let is_prose = |path: &str| [".rs", ".md", ".wgsl", ".toml", ".py"].iter().any(|end| path.ends_with(end));
    assert_none(&complaints(is_prose, stilted));
}

#[test]
fn public_names_are_listed_one_by_one() {
    assert_none(&complaints(is_source, glob_reexports));
}

#[test]
fn allocations_of_drivers_and_codecs_only_are_counted_apart() {
    assert_none(&complaints(is_source, foreign_calls));
    assert!(FOREIGN.iter().all(|(file, ..)| root().join(file).is_file()));
}

#[test]
fn every_kernel_has_a_twin() {
    assert_none(&twins(&files()));
}

#[test]
fn every_kernel_is_in_the_list_that_its_tests_go_through() {
    assert_none(&unlisted(&files(), |path| text_of(path).expect("sources are text")));
}

#[test]
fn every_file_of_tests_runs() {
    let files = files();
    assert!(files.iter().any(|path| path == "crates/plan/tests/main.rs"));
    assert_none(&undeclared(&files, |path| text_of(path).expect("sources and manifests are text")));
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    assert_none(&complaints(|_| true, places));
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let is_page = |path: &str| Path::new(path).extension().is_some_and(|end| end == "md");
    assert_none(&complaints(is_page, |path, text| dead_links(path, text, |to| root().join(to).exists())));
}

#[test]
fn no_file_is_big() {
    let size = |path: &str| root().join(path).metadata().expect("a listed file is there").len();
    assert_none(&files().iter().filter_map(|path| too_big(path, size(path))).collect::<Vec<_>>());
}

// ---- the rules find planted mistakes

/// Asserts that a rule finds something in each planted text and nothing in the innocent ones.
#[track_caller]
fn finds(rule: Rule, planted: &[&str], innocent: &[&str]) {
    for text in planted {
        assert_ne!(rule("src/planted.rs", text), [""; 0], "nothing found in {text:?}");
    }
    for text in innocent {
        assert_eq!(rule("src/planted.rs", text), [""; 0], "found in {text:?}");
    }
}

#[test]
fn the_listing_holds_sources_and_tests_and_nothing_built() {
    for listed in [files(), walk(root())] {
        for path in ["Cargo.toml", "src/lib.rs", "crates/plan/src/lib.rs", "xtask/src/main.rs", "tests/tidy.rs"] {
            assert!(listed.iter().any(|file| file == path), "{path} is not listed");
        }
        assert!(!listed.iter().any(|file| file.starts_with("target/") || file.starts_with(".git/")));
    }
    assert!(is_source("crates/plan/src/text/mod.rs") && is_source("src/lib.rs") && is_source("xtask/src/main.rs"));
    assert!(!is_source("crates/plan/tests/depth.rs") && !is_source("src/notes.md"));
}

#[test]
fn code_is_separated_from_comments_strings_and_tests() {
    let masked =
        code("a(\"x\\\"y\"); // c\n/* d /* e */ f */ g('\"', 'h', '\\''); r#\"i\" j\"# k::<'l>(br\"\\\", m)\n");
    for (word, lines) in [("a", 1), ("g", 2), ("k", 2), ("l", 2), ("m", 2)] {
        assert_eq!(lines_with(&masked, word).first().copied().unwrap_or(0), lines, "{word} in {masked}");
    }
    for word in ["c", "d", "e", "f", "h", "i", "j", "x", "y"] {
        assert!(lines_with(&masked, word).is_empty(), "{word} in {masked}");
    }
    let masked = outside_tests("a();\n#[cfg(test)]\nmod tests {\n fn b() { c() }\n}\n#[cfg(test)]\nuse d;\ne();");
    assert_eq!(masked.split_whitespace().collect::<String>(), "a();e();");
    assert_eq!(lines_with(&masked, "e"), [8]);
}

#[test]
fn a_missing_header_is_found() {
    let planted =
        ["", "use a;\n", "// A comment is not a header.\n", "//! vramp.\n", "//! Three words only\n\n//! b.\n"];
    finds(header, &planted, &["//! Lends textures.\n//! Takes them back.\n\nuse a;\n", "//! A long\n//! sentence.\n"]);
}

#[test]
fn a_name_that_says_nothing_is_found() {
    for path in ["src/utils.rs", "crates/plan/src/common/mod.rs", "src/base.rs", "src/DeviceList.rs", "src/a-b.rs"] {
        assert_eq!(name(path, "").len(), 1, "{path}");
    }
    assert_eq!(name("crates/plan/src/words/on_error.rs", ""), [""; 0]);
}

#[test]
fn a_long_file_is_found_and_tests_do_not_count() {
    let (long, short) = ("//!\n".repeat(MOST_LINES + 1), "//!\n".repeat(MOST_LINES));
    finds(length, &[&long], &[&short, &format!("{short}#[cfg(test)]\n{long}")]);
}

#[test]
fn refused_words_are_found_in_code_only() {
    let planted = [
        "#[ignore]",
        "#[ignore = \"slow\"]",
        "todo!()",
        "a(unimplemented!())",
        "dbg!(a)",
        "#[cfg(test)]\nmod tests { #[ignore] fn a() {} }",
    ];
    finds(words_anywhere, &planted, &["// dbg!(a)", "\"todo!\"", "my_todo!()", "#[expect(dead_code)]", "ignore()"]);
    let planted = ["#[allow(dead_code)]", "#![allow(unused, reason = \"a\")]"];
    finds(words_in_sources, &planted, &["#[expect(dead_code)]", "// #[allow(unused)]"]);
    let planted = ["#[allow(dead_code)]", "#![allow(\n    unused,\n)]\n// reason = \"a\""];
    finds(allowed_without_reason, &planted, &["#![allow(\n    unused,\n    reason = \"a\"\n)]", "#[expect(unused)]"]);
    let planted = ["a.unwrap()", "#[cfg(test)]\nmod tests {}\nfn b() { a.unwrap() }", "mod tests;"];
    let innocent =
        ["a.unwrap_or(b)", "/// a.unwrap()\n", "#[cfg(test)]\nmod tests { a.unwrap() }", "#[cfg(test)]\nmod tests;"];
    finds(words_in_sources, &planted, &innocent);
    assert_eq!(words_in_sources("src/words/tests.rs", "a.unwrap()"), [""; 0]);
    assert_eq!(words_in_sources("src/words/tests/trial.rs", "a.unwrap()"), [""; 0]);
}

#[test]
fn a_call_that_is_not_listed_as_foreign_is_found() {
    finds(foreign_calls, &["fn a() { foreign(|| b()); }"], &["// foreign(|| b())", "fn a() { \"foreign(||\"; }"]);
}

#[test]
fn stilted_prose_is_found() {
    let planted =
        ["/// Whoever asks gets it.", "// unless told otherwise", "//! What is said, and\n//! in front of it"];
    finds(stilted, &planted, &["/// The caller gets it.", "// before the head"]);
}

#[test]
fn a_glob_reexport_is_found() {
    let planted =
        ["pub use a::*;", "pub use a::{\n    b::*,\n    c,\n};", "pub(crate) use a::*;", "pub use a::{b, *};"];
    finds(glob_reexports, &planted, &["pub use a::{b, c};", "use super::*;", "// pub use a::*;"]);
}

#[test]
fn a_kernel_without_a_twin_is_found() {
    let paths = |list: &[&str]| list.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let alone = paths(&["crates/kernels/src/blur.wgsl", "crates/kernels/src/mix.rs", "crates/gpu/src/blur.rs"]);
    assert_eq!(twins(&alone), ["crates/kernels/src/blur.wgsl has no twin crates/kernels/src/blur.rs"]);
    let elsewhere = paths(&["crates/kernels/src/a/blur.wgsl", "crates/kernels/tests/blur.rs", "crates/gpu/src/x.wgsl"]);
    assert_eq!(twins(&elsewhere).len(), 2);
    let tensor = paths(&["crates/tensor/src/ops/device/x.wgsl", "crates/tensor/src/ops/device/y.rs"]);
    assert_eq!(twins(&tensor), ["crates/tensor/src/ops/device/x.wgsl has no Rust file beside it that uses it"]);
    assert_eq!(twins(&paths(&["crates/kernels/src/blur.wgsl", "crates/kernels/src/blur.rs"])), [""; 0]);
}

#[test]
fn a_kernel_that_is_not_in_the_list_is_found() {
    let text = |path: &str| {
        let text = match path.trim_start_matches("crates/kernels/src/") {
            "pixel/mod.rs" => "pub mod gray;\npub static ALL: &[&PixelFn] = &[&gray::GRAY];\n",
            "head.rs" => "// &lost::LOST\npub static ALL: &[&Head] = &[&flip::FLIP];\nfn a() { &lost::LOST; }\n",
            "pixel/gray.rs" => "static GRAY: PixelFn = PixelFn { wgsl: concat!(include_str!(\"over.wgsl\")) };",
            "pixel/lost.rs" => "static LOST: PixelFn = PixelFn { wgsl: include_str!(\"lost.wgsl\") };",
            "head/flip.rs" | "head/lost.rs" => "static A: Head = Head { wgsl: include_str!(\"flip.wgsl\") };",
            _ => "fn shared() {}",
        };
        text.to_owned()
    };
    let found = |list: &[&str]| {
        let always = ["pixel/mod.rs", "head.rs", "pixel/gray.rs", "pixel/gray.wgsl", "head/flip.rs", "head/flip.wgsl"];
        let paths = always.iter().chain(list).map(|path| format!("crates/kernels/src/{path}"));
        unlisted(&paths.collect::<Vec<_>>(), text)
    };
    assert_eq!(found(&["pixel/over.rs", "pixel/over.wgsl", "pixel/color.rs", "head/flip/lines.rs"]), [""; 0]);
    let lost = "crates/kernels/src/pixel/mod.rs does not have `&lost::...` in ALL, so no test compares its twins";
    assert_eq!(
        found(&["pixel/lost.rs", "pixel/lost.wgsl"]),
        ["rs", "wgsl"].map(|end| format!("crates/kernels/src/pixel/lost.{end}: {lost}"))
    );
    assert_eq!(found(&["head/lost.rs"]).len(), 1, "a comment or another place does not list it");
    assert_eq!(found(&["pixel/lone.wgsl"]).len(), 1, "part of no kernel");
}

#[test]
fn a_file_of_tests_that_does_not_run_is_found() {
    let declared = |path: &str| {
        let text = match path {
            "crates/a/tests/main.rs" => "mod room;\n#[cfg(unix)]\nmod pipes;\n// mod late;\nmod random;\n",
            "crates/a/tests/room/mod.rs" | "crates/a/tests/random.rs" => "mod shelf;\n",
            "crates/a/Cargo.toml" => "[[test]]\npath = \"tests/main.rs\"\n",
            _ => "",
        };
        text.to_owned()
    };
    let found = |list: &[&str]| {
        let always = ["crates/a/tests/main.rs", "crates/a/tests/room/mod.rs", "crates/a/tests/random.rs"];
        let paths: Vec<String> = always.iter().chain(list).map(|path| (*path).to_owned()).collect();
        undeclared(&paths, declared)
    };
    let innocent = ["pipes.rs", "room/shelf.rs", "random/shelf.rs", "data/words.txt", "reference/made.py"];
    for innocent in innocent.map(|file| format!("crates/a/tests/{file}")) {
        assert_eq!(found(&[&innocent]), [""; 0]);
    }
    for planted in
        ["late.rs", "pip.rs", "room/drawer.rs", "random/pipes.rs", "late/mod.rs", "lost/shelf.rs", "a/b/c.rs"]
    {
        let planted = format!("crates/a/tests/{planted}");
        assert_eq!(found(&[&planted]).len(), 1, "{planted}");
    }
    let alone = "crates/a/tests/late.rs does not run: crates/a/tests/main.rs does not declare `mod late;`";
    assert_eq!(found(&["crates/a/tests/late.rs"]), [alone]);
    assert_eq!(found(&["tests/main.rs"]), ["tests/main.rs is not a target of Cargo.toml"]);
    assert_eq!(found(&["tests/engine.rs", "src/tests/a.rs"]).len(), 1, "there is no tests/main.rs");
}

#[test]
fn a_place_on_one_machine_is_found() {
    let (home, host) = (concat!("/ho", "me/me/a"), concat!("https://index.", "crates.io/"));
    finds(
        places,
        &[home, &format!("path = \"{home}\""), &format!("see {host}")],
        &["crates/root/a", "~/home/a", "https://a.b/work/c", "the root / home", "$HOME/work/a"],
    );
    let lock = |source: &str| places("Cargo.lock", &format!("name = \"a\"\nsource = \"{source}\"\n"));
    assert_eq!(lock("registry+https://mirror.invalid/index").len(), 1);
    assert_eq!(lock("git+https://github.com/a/b#c").len(), 1);
    assert_eq!(lock("registry+https://github.com/rust-lang/crates.io-index"), [""; 0]);
}

#[test]
fn a_dead_link_is_found() {
    let page = "[a](b.md) [c](docs/d.md#e \"title\") [w](https://x.y/z) [t](#top)\n`[no](code.md)`\n```\n[no](x.md)\n```\n[r]: r.md\n";
    let links: Vec<_> = relative_links(page).into_iter().collect();
    assert_eq!(links, [(1, "b.md".into()), (1, "docs/d.md".into()), (6, "r.md".into())]);
    let dead = dead_links("guide/p.md", page, |to| to == Path::new("guide/docs/d.md"));
    assert_eq!(dead.len(), 2, "{dead:?}");
    assert_eq!(dead[0], "guide/p.md:1: links to b.md, which does not exist");
}

#[test]
fn a_big_file_is_found() {
    assert!(too_big("a.png", MOST_BYTES + 1).is_some());
    assert!(too_big("a.png", MOST_BYTES).is_none());
}
