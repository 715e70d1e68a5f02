//! Which crate may use which other crates, and what the planner must not use.
//!
//! Each wall is a function from text or a table to complaints. Each wall is tested twice: on the workspace, where it
//! must find nothing, and on a planted breach, which it must find.

use std::collections::BTreeSet;
use std::process::Command;

use crate::source::{code, files, is_rust, lines_with, outside_tests, root};
use serde_json::Value;

/// One crate of the workspace, the crates that it may use, and why it may use no others.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    because: &'static str,
}

/// Every crate. A new crate needs a row.
const ROOMS: &[Room] = &[
    Room {
        name: "vramp-plan",
        may_use: &[],
        because: "a plan is a pure value: it must be the same on every machine and in a browser",
    },
    Room {
        name: "vramp-files",
        may_use: &[],
        because: "tensors and handlers both write files, and must not use each other for it",
    },
    Room {
        name: "vramp-kernels",
        may_use: &["vramp-plan"],
        because: "a kernel is described by data, so that it runs without a device",
    },
    Room {
        name: "vramp-gpu",
        may_use: &["vramp-plan"],
        because: "the device plays recordings; kernels and the device meet in the planner's types",
    },
    Room {
        name: "vramp-media",
        may_use: &["vramp-plan"],
        because: "ffmpeg is a matter of processes and bytes; frames and handlers use it, not the other way round",
    },
    Room {
        name: "vramp-tensor",
        may_use: &["vramp-files", "vramp-plan", "vramp-kernels", "vramp-gpu"],
        because: "tensors are usable without the streaming runtime",
    },
    Room {
        name: "vramp-model",
        may_use: &["vramp-files", "vramp-plan", "vramp-gpu", "vramp-tensor"],
        because: "models are files that run on tensors, with or without pipelines",
    },
    Room {
        name: "vramp-runtime",
        may_use: &["vramp-plan", "vramp-kernels", "vramp-gpu"],
        because: "the runtime moves frames and does not know which handlers exist",
    },
    Room {
        name: "vramp-report",
        may_use: &["vramp-plan", "vramp-runtime"],
        because: "a report reads plans and what a run has counted, and changes neither",
    },
    Room {
        name: "vramp-handlers",
        may_use: &[
            "vramp-files",
            "vramp-plan",
            "vramp-kernels",
            "vramp-gpu",
            "vramp-media",
            "vramp-tensor",
            "vramp-model",
            "vramp-runtime",
        ],
        because: "handlers are users of everything below the facade",
    },
    Room {
        name: "vramp-machine",
        may_use: &["vramp-files", "vramp-plan", "vramp-gpu"],
        because: "what a machine has is known before a pipeline is built",
    },
    Room {
        name: "vramp-pipeline",
        may_use: &["vramp-files", "vramp-plan", "vramp-gpu", "vramp-runtime", "vramp-handlers", "vramp-machine"],
        because: "running a pipeline never depends on the tools that measure one",
    },
    Room {
        name: "vramp-lab",
        may_use: &[
            "vramp-plan",
            "vramp-gpu",
            "vramp-tensor",
            "vramp-runtime",
            "vramp-handlers",
            "vramp-machine",
            "vramp-model",
            "vramp-pipeline",
        ],
        because: "the tools run pipelines like any program, and reach kernels only through handlers",
    },
    Room {
        name: "vramp-window",
        may_use: &["vramp-files", "vramp-plan", "vramp-gpu", "vramp-runtime", "vramp-handlers", "vramp-pipeline"],
        because: "windows are heavy and optional, so only the facade may need them",
    },
    Room {
        name: "vramp",
        may_use: &[
            "vramp-files",
            "vramp-plan",
            "vramp-kernels",
            "vramp-gpu",
            "vramp-media",
            "vramp-tensor",
            "vramp-model",
            "vramp-runtime",
            "vramp-report",
            "vramp-handlers",
            "vramp-machine",
            "vramp-pipeline",
            "vramp-lab",
            "vramp-window",
        ],
        because: "the facade joins the libraries, so that programs depend on one crate",
    },
    Room {
        name: "vramp-cli",
        may_use: &["vramp"],
        because: "the program is the facade's first user: a feature that it lacks, other programs lack too",
    },
    Room {
        name: "vramp-isa",
        may_use: &["vramp"],
        because: "the tool compiles kernels that programs can reach, and hides naga's writer and Vulkan from them",
    },
    Room {
        name: "vramp-python",
        may_use: &["vramp", "vramp-cli"],
        because: "the package is a user of the facade, and contains the program",
    },
    Room { name: "xtask", may_use: &[], because: "chores must build when nothing else does" },
];

/// Crates that the lessons and tests of a crate may use in addition to those of its room, and why.
const LESSONS_USE: &[(&str, &str, &str)] = &[
    ("vramp", "vramp-cli", "lesson 2 is the whole program with one more handler"),
    ("vramp-pipeline", "vramp", "examples in its documentation are programs, which use the facade"),
    ("vramp-lab", "vramp", "as above"),
    ("vramp-report", "vramp", "as above"),
];

/// The planner's direct and indirect dependencies, and their purpose.
const PLAN_IS_MADE_OF: &[(&str, &str)] = &[
    ("annotate-snippets", "mistakes with a caret under their place in the text"),
    ("anstyle", "annotate-snippets: names of colours"),
    ("memchr", "annotate-snippets, serde_json and winnow: searching in text"),
    ("unicode-width", "annotate-snippets: how wide a character is"),
    ("serde", "plans as JSON, profiles and graphs from TOML"),
    ("serde_core", "serde's traits"),
    ("serde_derive", "serde at compile time"),
    ("serde_json", "plans as JSON"),
    ("itoa", "serde_json: printing integers"),
    ("zmij", "serde_json: printing floats"),
    ("strsim", "the nearest known name to a misspelt one"),
    ("thiserror", "error texts"),
    ("thiserror-impl", "thiserror at compile time"),
    ("toml", "graphs and profiles as TOML"),
    ("toml_datetime", "toml's parts"),
    ("toml_parser", "toml's parts"),
    ("toml_writer", "toml's parts"),
    ("serde_spanned", "toml: the place of a value in the text"),
    ("winnow", "the pipeline grammar, and toml's"),
    ("proc-macro2", "derives, at compile time"),
    ("quote", "derives, at compile time"),
    ("syn", "derives, at compile time"),
    ("unicode-ident", "derives, at compile time"),
];

/// Names that the planner's code must not contain, and the promise that each name would break.
const PLAN_NEVER_NAMES: &[(&str, &str)] = &[
    ("std::fs", "no I/O"),
    ("std::io", "no I/O"),
    ("std::net", "no I/O"),
    ("std::os", "no I/O"),
    ("std::process", "no I/O"),
    ("std::path", "no I/O; a path can check whether it exists"),
    ("std::arch", "no unsafe"),
    ("core::arch", "no unsafe"),
    ("std::env", "a plan depends on the graph and the profile only"),
    ("std::time", "a plan depends on the graph and the profile only"),
    ("Instant", "a plan depends on the graph and the profile only"),
    ("SystemTime", "a plan depends on the graph and the profile only"),
    ("std::thread", "no threads"),
    ("thread_local!", "no threads"),
    ("async", "no async"),
    (".await", "no async"),
    ("unsafe", "no unsafe"),
    ("HashMap", "its order changes from run to run; use BTreeMap"),
    ("HashSet", "its order changes from run to run; use BTreeSet"),
    ("RandomState", "its order changes from run to run"),
    ("print!", "text is returned, not printed"),
    ("println!", "text is returned, not printed"),
    ("eprint!", "text is returned, not printed"),
    ("eprintln!", "text is returned, not printed"),
    ("dbg!", "text is returned, not printed"),
];

/// The files that may contain unsafe code, and why.
const UNSAFE_MAY_STAND: &[(&str, &str)] = &[
    ("crates/kernels/src/simd/mod.rs", "code for detected instructions can only be called this way"),
    ("crates/kernels/src/simd/bilinear.rs", "as above"),
    ("crates/kernels/src/simd/blur.rs", "as above"),
    ("crates/kernels/src/simd/convolve.rs", "as above"),
    ("crates/kernels/src/simd/four.rs", "as above; indices into an image or table are checked many at a time"),
    ("crates/kernels/src/simd/gray.rs", "as above"),
    ("crates/kernels/src/simd/halves.rs", "as above"),
    ("crates/kernels/src/simd/matrix.rs", "as above"),
    ("crates/kernels/src/simd/mix.rs", "as above"),
    ("crates/kernels/src/simd/paint.rs", "as above"),
    ("crates/kernels/src/simd/pick.rs", "as above"),
    ("crates/kernels/src/simd/resample.rs", "as above"),
    ("crates/kernels/src/simd/table.rs", "as above"),
    ("crates/kernels/src/simd/triples.rs", "as above"),
    ("crates/kernels/src/simd/weigh.rs", "as above"),
    ("crates/kernels/src/simd/turn.rs", "as above"),
    ("crates/kernels/src/simd/wide.rs", "intrinsics that read and write memory take pointers"),
    ("crates/isa/src/compiler.rs", "the figures of a pipeline come from Vulkan itself, whose calls are unsafe"),
    ("crates/media/src/process/death.rs", "code that runs in a child process before its program starts"),
    ("crates/media/src/pipe/splice.rs", "the kernel reads memory that is lent to a pipe after the call"),
    ("crates/kernels/tests/steady.rs", "a counting allocator implements an unsafe trait"),
    ("crates/model/tests/heap.rs", "as above"),
    ("crates/tensor/src/network/host/depthwise.rs", "taps are checked many at a time"),
    ("crates/tensor/src/network/host/lanes.rs", "vectors are loaded by the pointers of such loops"),
    ("crates/tensor/src/network/host/tile.rs", "products are checked many at a time"),
    (
        "crates/tensor/src/store/files/mapping.rs",
        "a mapped file could be changed by others; the caller promises that it is not",
    ),
    ("crates/tensor/src/ops/host/matmul.rs", "gemm takes pointers; every length is checked before"),
    ("crates/python/src/buffer.rs", "views of memory are pointers in the interpreter's API"),
    ("crates/python/src/dlpack.rs", "array libraries exchange pointers"),
    ("crates/python/src/frame.rs", "the interpreter asks a frame for a view with a pointer"),
    ("crates/python/src/tensor/mod.rs", "as above, for a tensor"),
    ("crates/python/src/handler/lane.rs", "only the interpreter's API makes thread states"),
    ("crates/runtime/src/leaving.rs", "leaving without exit handlers is a call into the C library"),
    ("crates/runtime/src/memory/heap.rs", "a counting allocator implements an unsafe trait"),
];

/// The modules of crates/tensor, and the modules that each must not name. `classic` uses `store`; `store` and `network` use
/// `ops`. Names that the crate's root re-exports could come from any module, so no module uses the re-exported names.
const TENSOR_MODULES: &[(&str, &[&str])] = &[
    ("crates/tensor/src/ops/", &["network", "store", "classic"]),
    ("crates/tensor/src/network/", &["store", "classic"]),
    ("crates/tensor/src/store/", &["network", "classic"]),
];

// ---- the walls

/// The workspace's crates with the names of their dependencies, including those of tests and build scripts.
fn crates_of(metadata: &Value) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let wanted = |package: &Value| {
        let is_lesson = |wanted: &&Value| {
            let pair = (text(&package["name"]), text(&wanted["name"]));
            wanted["kind"] == "dev"
                && LESSONS_USE.iter().any(|(user, used, _)| pair == (user.to_string(), used.to_string()))
        };
        let list = list(&package["dependencies"]);
        list.iter().filter(|wanted| !is_lesson(wanted)).map(|wanted| text(&wanted["name"])).collect()
    };
    list(&metadata["packages"]).iter().map(|package| (text(&package["name"]), wanted(package))).collect()
}

/// Every crate has a room and uses only what its room may use.
fn breaches(crates: &[(String, Vec<String>)], rooms: &[Room]) -> Vec<String> {
    let is_ours =
        |name: &str| rooms.iter().any(|room| room.name == name) || crates.iter().any(|(ours, _)| ours == name);
    let mut found = Vec::new();
    for (name, wanted) in crates {
        let Some(room) = rooms.iter().find(|room| room.name == name) else {
            found.push(format!("{name} has no row in ROOMS: say what it may use, and why it is a crate at all"));
            continue;
        };
        let outside = wanted.iter().filter(|wanted| is_ours(wanted) && !room.may_use.contains(&wanted.as_str()));
        found.extend(outside.map(|wanted| format!("{name} may not use {wanted}: {}", room.because)));
    }
    found
}

/// Only the GPU crate depends on wgpu or a part of it.
fn wgpu_wanted(crates: &[(String, Vec<String>)]) -> Vec<String> {
    let others = crates.iter().filter(|(name, _)| name != "vramp-gpu");
    let asking = others.filter(|(_, wanted)| wanted.iter().any(|wanted| wanted.starts_with("wgpu")));
    asking
        .map(|(name, _)| format!("{name} depends on wgpu; only vramp-gpu may, and others use it through that"))
        .collect()
}

/// Finds code that names wgpu, also through another crate's re-export.
fn wgpu_named(path: &str, text: &str) -> Vec<String> {
    let lines = lines_with(&code(text), "wgpu");
    lines.into_iter().map(|line| format!("{path}:{line}: names wgpu outside crates/gpu")).collect()
}

/// Finds code that starts processes.
fn starts_processes(path: &str, text: &str) -> Vec<String> {
    let lines = lines_with(&outside_tests(&code(text)), "process::Command");
    let imported = imports(&outside_tests(&code(text))).into_iter().filter(|(_, path)| path == "std::process::Command");
    let lines = lines.into_iter().chain(imported.map(|(line, _)| line)).collect::<BTreeSet<_>>();
    lines.into_iter().map(|line| format!("{path}:{line}: starts a process outside crates/media")).collect()
}

/// A module of crates/tensor names no module above it.
fn tensor_modules(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let rows = TENSOR_MODULES.iter().filter(|(folder, _)| path.starts_with(folder));
    let mut found = Vec::new();
    for module in rows.flat_map(|(_, above)| *above) {
        let is_there = |path: &str| path.split("::").any(|part| part == *module);
        let lines = imports(&code).into_iter().filter(|(_, path)| path.starts_with("crate") && is_there(path));
        let mut lines: Vec<usize> = lines.map(|(line, _)| line).collect();
        for from in ["crate", "super"] {
            lines.extend(lines_with(&code, &format!("{from}::{module}")));
        }
        lines.sort_unstable();
        lines.dedup();
        found.extend(lines.into_iter().map(|line| format!("{path}:{line}: names `{module}`, which uses this module")));
    }
    for (line, import) in imports(&code) {
        if import.strip_prefix("crate::").is_some_and(|name| name.starts_with(char::is_uppercase)) {
            found.push(format!("{path}:{line}: takes a name from the crate's root; name its module"));
        }
    }
    found
}

/// The crate `vramp` is one file of re-exports. All other code is in the crates that it re-exports.
fn in_facade(path: &str, text: &str) -> Vec<String> {
    if path != "src/lib.rs" {
        return vec![format!("{path}: src/ holds lib.rs alone; code lives in a crate below the facade")];
    }
    let code = code(text);
    let items = ["fn", "impl", "struct", "enum", "trait", "static", "const", "macro_rules!"];
    let lines = items.iter().flat_map(|item| lines_with(&code, item).into_iter().map(move |line| (line, item)));
    lines.map(|(line, item)| format!("{path}:{line}: `{item}` in the facade, which only re-exports")).collect()
}

/// The planner's code names nothing that its promises exclude.
fn plan_names(path: &str, text: &str) -> Vec<String> {
    let code = outside_tests(&code(text));
    let mut found = Vec::new();
    for (word, promise) in PLAN_NEVER_NAMES {
        let mut lines = lines_with(&code, word);
        // `use std::{fmt, fs}` names std::fs as well.
        let imported = imports(&code).into_iter().filter(|(_, path)| !lines_with(path, word).is_empty());
        lines.extend(imported.map(|(line, _)| line));
        lines.sort_unstable();
        lines.dedup();
        found.extend(lines.into_iter().map(|line| format!("{path}:{line}: `{word}` in the planner: {promise}")));
    }
    found
}

/// Every path that `use` statements import, written out, with the line of its statement.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let tree: String = code[at + 4..].split(';').next().unwrap_or_default().split_whitespace().collect();
        let line = 1 + code[..at].matches('\n').count();
        found.extend(written_out("", &tree).into_iter().map(|path| (line, path)));
    }
    found
}

fn written_out(before: &str, tree: &str) -> Vec<String> {
    let Some((path, group)) = tree.split_once('{') else { return vec![format!("{before}{tree}")] };
    let before = format!("{before}{path}");
    let group = group.strip_suffix('}').unwrap_or(group);
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(written_out(&before, &group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Whether a crate's manifest, together with that of the workspace, denies unsafe code by default.
fn refuses_unsafe(workspace: &str, manifest: &str) -> bool {
    let parse = |text: &str| text.parse::<toml::Table>().map_or(toml::Value::Boolean(false), toml::Value::Table);
    let at = |value: &toml::Value, keys: &[&str]| keys.iter().try_fold(value.clone(), |v, key| v.get(key).cloned());
    let is_refused = |lint: Option<toml::Value>| {
        lint.is_some_and(|lint| matches!(lint.get("level").unwrap_or(&lint).as_str(), Some("deny" | "forbid")))
    };
    let (workspace, manifest) = (parse(workspace), parse(manifest));
    let shared = at(&manifest, &["lints", "workspace"]) == Some(toml::Value::Boolean(true));
    is_refused(at(&manifest, &["lints", "rust", "unsafe_code"]))
        || shared && is_refused(at(&workspace, &["workspace", "lints", "rust", "unsafe_code"]))
}

/// Unsafe code is only in the named files, and each use gives its reason.
fn unsafe_named(path: &str, text: &str, named: &[(&str, &str)]) -> Vec<String> {
    let blanked = code(text);
    let lines = lines_with(&blanked, "unsafe");
    if !named.iter().any(|(file, _)| *file == path) {
        let found = lines.into_iter();
        return found
            .map(|line| format!("{path}:{line}: unsafe outside the files that UNSAFE_MAY_STAND names"))
            .collect();
    }
    let text: Vec<&str> = text.lines().collect();
    let blanked: Vec<&str> = blanked.lines().collect();
    // `unsafe fn` in the implementation of a trait is not a use: the unsafe block inside the function gives the reason.
    let is_use = |line: &usize| !blanked[line - 1].contains("unsafe fn");
    // The reason is right above, with only attributes and further comment lines in between.
    let has_reason = |line: &usize| {
        let above = text[..line - 1].iter().rev().map(|line| line.trim_start());
        let mut above = above.take_while(|line| line.starts_with("//") || line.starts_with("#["));
        above.any(|line| line.starts_with("// SAFETY: "))
    };
    let bare = lines.into_iter().filter(is_use).filter(|line| !has_reason(line));
    bare.map(|line| format!("{path}:{line}: unsafe without a `// SAFETY: ` line above it")).collect()
}

/// The crates in the output of `cargo tree --prefix none` for the crate `asked`, without that crate itself.
fn built_from(tree: &str, asked: &str) -> BTreeSet<String> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != asked).map(str::to_owned).collect()
}

/// The planner is built only from listed crates.
fn strangers(built_from: &BTreeSet<String>, known: &[(&str, &str)]) -> Vec<String> {
    let strange = built_from.iter().filter(|name| !known.iter().any(|(known, _)| known == name));
    strange
        .map(|name| format!("vramp-plan depends on {name}: state its purpose in PLAN_IS_MADE_OF, or drop it"))
        .collect()
}

// ---- the workspace respects the walls

fn cargo(words: &[&str]) -> String {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(root());
    let answer = command.output().expect("cargo runs these tests, so it can be started");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8(answer.stdout).expect("cargo prints text")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rust_files(keep: fn(&str) -> bool) -> Vec<String> {
    files().into_iter().filter(|path| is_rust(path) && keep(path)).collect()
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn crates_use_only_what_their_room_may_use() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let crates = crates_of(&serde_json::from_str(&metadata).expect("cargo prints JSON"));
    assert!(crates.iter().any(|(name, _)| name == "vramp-plan"), "cargo lists the workspace");
    assert_none(&breaches(&crates, ROOMS));
    assert_none(&wgpu_wanted(&crates));
}

/// Whether a file contains GPU code such as a user writes: a lesson about GPU code, or the test of its interface.
fn is_users_own(path: &str) -> bool {
    path.starts_with("examples/") || path == "crates/tensor/tests/hand_out.rs"
}

#[test]
fn only_the_gpu_crate_names_wgpu() {
    let others = rust_files(|path| !path.starts_with("crates/gpu/") && !is_users_own(path));
    assert_none(&others.iter().flat_map(|path| wgpu_named(path, &read(path))).collect::<Vec<_>>());
}

#[test]
fn only_the_media_crate_starts_processes() {
    // The program starts itself again, with another environment.
    let others = rust_files(|path| {
        let may = ["crates/media/", "crates/cli/src/lib.rs", "xtask/"];
        path.contains("src/") && !may.iter().any(|own| path.starts_with(own))
    });
    assert!(others.len() > 100, "the sources are where they were");
    assert_none(&others.iter().flat_map(|path| starts_processes(path, &read(path))).collect::<Vec<_>>());
}

#[test]
fn modules_of_the_tensor_crate_name_none_above_them() {
    let sources = rust_files(|path| TENSOR_MODULES.iter().any(|(folder, _)| path.starts_with(folder)));
    for (folder, _) in TENSOR_MODULES {
        assert!(sources.iter().any(|path| path.starts_with(folder)), "{folder} is where it was");
    }
    assert_none(&sources.iter().flat_map(|path| tensor_modules(path, &read(path))).collect::<Vec<_>>());
}

#[test]
fn the_facade_only_re_exports() {
    let facade = rust_files(|path| path.starts_with("src/"));
    assert!(!facade.is_empty(), "the facade is where it was");
    assert_none(&facade.iter().flat_map(|path| in_facade(path, &read(path))).collect::<Vec<_>>());
}

#[test]
fn the_planner_names_nothing_that_its_promises_exclude() {
    let sources = rust_files(|path| path.starts_with("crates/plan/src/") && !path.ends_with("/tests.rs"));
    assert!(sources.len() > 10, "the planner's sources are where they were");
    assert_none(&sources.iter().flat_map(|path| plan_names(path, &read(path))).collect::<Vec<_>>());
}

#[test]
fn the_planner_has_no_build_script() {
    assert!(!root().join("crates/plan/build.rs").exists() && !read("crates/plan/Cargo.toml").contains("build ="));
}

#[test]
fn every_crate_refuses_unsafe() {
    let workspace = read("Cargo.toml");
    let manifests: Vec<String> = files()
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml") && !path.starts_with("fuzz/"))
        .filter(|path| read(path).contains("[package]"))
        .collect();
    assert!(manifests.contains(&"crates/plan/Cargo.toml".to_owned()));
    let careless = manifests.iter().filter(|path| !refuses_unsafe(&workspace, &read(path)));
    assert_none(&careless.map(|path| format!("{path} does not refuse unsafe_code")).collect::<Vec<_>>());
}

#[test]
fn unsafe_code_is_only_in_the_files_that_may_have_it() {
    let all = rust_files(|_| true);
    assert_none(&all.iter().flat_map(|path| unsafe_named(path, &read(path), UNSAFE_MAY_STAND)).collect::<Vec<_>>());
}

#[test]
fn the_planner_is_built_from_known_crates_only() {
    // `cargo tree` is used because `cargo metadata` also lists optional dependencies that no feature enables. Two
    // platforms are checked, so that no crate comes in through a `[target.'cfg(...)']` table. With all platforms, cargo
    // would download crates that no build here uses.
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo knows its host");
    let tree = ["tree", "--package", "vramp-plan", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(&[&tree[..], &["--target", host, "--target", "wasm32-unknown-unknown"]].concat());
    let built_from = built_from(&tree, "vramp-plan");
    assert!(built_from.contains("winnow") && built_from.contains("syn"), "cargo's tree was read: {tree}");
    assert_none(&strangers(&built_from, PLAN_IS_MADE_OF));
}

// ---- the walls find planted breaches

#[test]
fn a_started_process_is_found() {
    for planted in ["use std::process::{Child, Command};", "std::process::Command::new(\"ls\");"] {
        assert_eq!(starts_processes("a.rs", planted).len(), 1, "nothing found in {planted}");
    }
    assert!(
        starts_processes("a.rs", "use std::process::ExitCode;\n#[cfg(test)]\nmod tests { use std::process::Command; }")
            .is_empty()
    );
}

fn workspace(crates: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    crates.iter().map(|(name, wanted)| ((*name).to_owned(), owned(wanted))).collect()
}

#[test]
fn a_dependency_through_a_wall_is_found() {
    for (name, wanted) in [
        ("vramp-plan", "vramp-handlers"),
        ("vramp-kernels", "vramp-gpu"),
        ("vramp-gpu", "vramp-kernels"),
        ("vramp-tensor", "vramp-runtime"),
        ("vramp-runtime", "vramp-handlers"),
        ("vramp-handlers", "vramp"),
        ("vramp-machine", "vramp-pipeline"),
        ("vramp-pipeline", "vramp-lab"),
        ("vramp-lab", "vramp"),
        ("vramp-handlers", "vramp-window"),
        ("vramp", "vramp-cli"),
        ("vramp-cli", "vramp-plan"),
        ("xtask", "vramp"),
    ] {
        let found = breaches(&workspace(&[(name, &["serde", wanted])]), ROOMS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{name} may not use {wanted}: ")), "{found:?}");
    }
    let allowed = workspace(&[("vramp-handlers", &["vramp-plan", "glob"]), ("vramp-cli", &["vramp", "clap"])]);
    assert_eq!(breaches(&allowed, ROOMS), [""; 0]);
}

#[test]
fn a_crate_without_a_room_is_found() {
    let found = breaches(&workspace(&[("vramp-cupboard", &[])]), ROOMS);
    assert!(found[0].starts_with("vramp-cupboard has no row in ROOMS"), "{found:?}");
    let found = breaches(&workspace(&[("vramp-cupboard", &[]), ("vramp-plan", &["vramp-cupboard"])]), ROOMS);
    assert_eq!(found.len(), 2, "using it is a breach as well: {found:?}");
}

#[test]
fn wgpu_in_another_crate_is_found() {
    let crates =
        workspace(&[("vramp-gpu", &["wgpu"]), ("vramp-runtime", &["wgpu-types"]), ("vramp-kernels", &["naga"])]);
    let found = wgpu_wanted(&crates);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("vramp-runtime depends on wgpu"), "{found:?}");
    assert_eq!(
        wgpu_named("a.rs", "// wgpu\nlet a = vramp_gpu::wgpu::b(\"wgpu\");"),
        ["a.rs:2: names wgpu outside crates/gpu"]
    );
    assert!(is_users_own("examples/a.rs") && !is_users_own("crates/tensor/src/a.rs") && !is_users_own("src/a.rs"));
}

#[test]
fn a_module_of_the_tensor_crate_that_names_one_above_it_is_found() {
    for planted in [
        "use crate::store::Store;",
        "use crate::{ops::shape::Shape, classic::Monitor};",
        "fn a() { crate::classic::monitor() }",
        "use super::super::store;",
        "use crate::Store;",
        "use crate::{Store, Tensor};",
    ] {
        assert_ne!(tensor_modules("crates/tensor/src/ops/a.rs", planted), [""; 0], "nothing found in {planted}");
    }
    let store = "crates/tensor/src/store/a.rs";
    assert_eq!(tensor_modules(store, "use crate::store::files::TensorFile;\nuse crate::ops::shape::Shape;"), [""; 0]);
    assert_eq!(
        tensor_modules(store, "\nuse crate::classic::Monitor;"),
        [format!("{store}:2: names `classic`, which uses this module")]
    );
    assert_eq!(tensor_modules("crates/tensor/src/classic/a.rs", "use crate::store::Store;"), [""; 0]);
}

#[test]
fn the_crates_of_a_workspace_are_read_with_every_kind_of_dependency() {
    let metadata = serde_json::json!({"packages": [{"name": "a", "dependencies": [
        {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}]}]});
    assert_eq!(crates_of(&metadata), workspace(&[("a", &["b", "c", "d"])]));
}

#[test]
fn code_in_the_facade_is_found() {
    assert_eq!(in_facade("src/machine.rs", "").len(), 1);
    for planted in ["pub fn a() {}", "impl A {}", "pub struct A;", "macro_rules! a { () => {} }"] {
        assert_eq!(in_facade("src/lib.rs", planted).len(), 1, "nothing found in {planted}");
    }
    assert_eq!(
        in_facade("src/lib.rs", "//! fn\npub use a::b;\n/// struct\npub mod prelude { pub use c::d; }"),
        [""; 0]
    );
}

#[test]
fn what_the_planner_may_not_name_is_found() {
    for planted in [
        "use std::fs;",
        "use std::{fmt, fs::File};",
        "use std::{\n    collections::{BTreeMap, HashMap},\n};",
        "fn a() { std::env::var(\"A\"); }",
        "pub(crate) use std::time::Instant;",
        "async fn a() {}",
        "async { b }",
        "a().await",
        "unsafe { a() }",
        "println!(\"a\")",
        "let a: HashSet<u8>;",
        "#[cfg(test)]\nmod tests {}\nuse std::thread;",
    ] {
        assert_ne!(plan_names("a.rs", planted), [""; 0], "nothing found in {planted}");
    }
    for innocent in [
        "//! No unsafe, no std::fs.",
        "use std::{fmt, str::FromStr};",
        "#[error(\"std::io\")]",
        "#[cfg(test)]\nmod tests { use std::collections::HashMap; }",
        "let unsafe_code = Instantaneous;",
    ] {
        assert_eq!(plan_names("a.rs", innocent), [""; 0], "found in {innocent}");
    }
    assert_eq!(plan_names("a.rs", "\nuse std::io;"), ["a.rs:2: `std::io` in the planner: no I/O"]);
}

#[test]
fn a_manifest_that_lets_unsafe_in_is_found() {
    let workspace = "[workspace.lints.rust]\nunsafe_code = \"forbid\"";
    let shared = "[lints]\nworkspace = true";
    assert!(refuses_unsafe(workspace, shared));
    assert!(refuses_unsafe("", "[lints.rust]\nunsafe_code = { level = \"forbid\" }"));
    assert!(refuses_unsafe("[workspace.lints.rust]\nunsafe_code = \"deny\"", shared));
    assert!(!refuses_unsafe(workspace, "[package]\nname = \"a\""));
    assert!(!refuses_unsafe("[workspace.lints.rust]\nunsafe_code = \"warn\"", shared));
    assert!(!refuses_unsafe("", shared));
    assert!(!refuses_unsafe(workspace, "not toml"));
}

#[test]
fn unsafe_elsewhere_or_without_a_reason_is_found() {
    let named = &[("a.rs", "a reason")][..];
    let kept =
        "// SAFETY: kept by b.\nunsafe { b() }\n// SAFETY: kept by c,\n// always.\n#[cfg(d)]\nlet c = unsafe { c() };";
    assert_eq!(unsafe_named("a.rs", kept, named), [""; 0]);
    assert_eq!(unsafe_named("a.rs", "unsafe fn d() {}\n#![expect(unsafe_code)]", named), [""; 0]);
    assert_eq!(
        unsafe_named("e.rs", kept, named),
        [2, 6].map(|line| format!("e.rs:{line}: unsafe outside the files that UNSAFE_MAY_STAND names"))
    );
    let bare = "// SAFETY: of another.\nlet b = 1;\nunsafe { b() }\n// to be done\nunsafe impl B for C {}";
    assert_eq!(
        unsafe_named("a.rs", bare, named),
        [3, 5].map(|line| format!("a.rs:{line}: unsafe without a `// SAFETY: ` line above it"))
    );
}

#[test]
fn a_stranger_far_down_is_found() {
    let tree = "vramp-plan v0.1.0 (crates/plan)\ntoml v1.1.8+spec-1.1.0\ntokio v1.0.0\nsyn v3.0.9 (*)\n\ntoml v1.1.8\n";
    let built_from = built_from(tree, "vramp-plan");
    assert_eq!(built_from, ["syn", "tokio", "toml"].map(str::to_owned).into());
    let found = strangers(&built_from, PLAN_IS_MADE_OF);
    assert_eq!(found, ["vramp-plan depends on tokio: state its purpose in PLAN_IS_MADE_OF, or drop it"]);
}

#[test]
fn rows_are_sound() {
    for room in ROOMS {
        assert!(!room.because.is_empty() && !room.may_use.contains(&room.name), "{}", room.name);
        for used in room.may_use {
            let used = ROOMS.iter().find(|other| other.name == *used).unwrap_or_else(|| panic!("{used} has no row"));
            assert!(!used.may_use.contains(&room.name), "{} and {} use each other", room.name, used.name);
        }
    }
}
