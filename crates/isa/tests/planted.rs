//! The check finds what it is for, with the real compiler: a kernel that needs scratch memory, and a count that is not
//! as recorded.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Too many values for registers, at a place that is known at run time only.
const SPILLING: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> made: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var kept: array<u32, 512>;
    for (var at = 0u; at < 512u; at++) { kept[source[at] & 511u] = source[at + id.x]; }
    made[id.x] = kept[source[id.x] & 511u];
}";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// A folder for one test, below the build's folder for tests.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the program with RADV of Mesa 25, which compiles for Navi 31.
fn run(folder: &Path, words: &[&str]) -> Output {
    let libraries = root().join("target/mesa25/usr/lib/x86_64-linux-gnu");
    let library = libraries.join("libvulkan_radeon.so");
    assert!(library.is_file(), "RADV of Mesa 25 is missing: `scripts/lavapipe25.sh target/mesa25` brings it");
    let manifest = folder.join("radeon_icd.json");
    let driver = serde_json::json!({ "api_version": "1.4.0", "library_path": library });
    let text = serde_json::json!({ "ICD": driver, "file_format_version": "1.0.0" });
    std::fs::write(&manifest, text.to_string()).unwrap();
    Command::new(env!("CARGO_BIN_EXE_vramp-isa"))
        .args(words)
        .env("VK_ICD_FILENAMES", manifest)
        .env("LD_LIBRARY_PATH", libraries)
        .env("RADV_FORCE_FAMILY", "navi31")
        .env("MESA_SHADER_CACHE_DISABLE", "true")
        .output()
        .unwrap()
}

/// What the program prints, if it succeeds.
#[track_caller]
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_kernel_that_needs_scratch_memory_is_found() {
    let folder = folder("scratch");
    let [text, table] = ["spilling.wgsl", "table.txt"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    std::fs::write(&text, SPILLING).unwrap();
    std::fs::write(&table, printed(&run(&folder, &["compile", "navi31", &text]))).unwrap();
    let output = run(&folder, &["check", &table, &table]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("spilling on navi31: ") && said.ends_with("1 rows, 1 wrong\n"), "{said}");
    assert!(said.contains("bytes of scratch memory; expected none"), "{said}");
}

#[test]
fn a_count_that_is_not_as_recorded_is_found() {
    let folder = folder("counts");
    let [now, recorded] = ["now.txt", "recorded.txt"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let table = printed(&run(&folder, &["compile", "navi31", "--only", "rgba8-to-gray8"]));
    std::fs::write(&now, &table).unwrap();
    std::fs::write(&recorded, &table).unwrap();
    assert_eq!(printed(&run(&folder, &["check", &recorded, &now])), "1 rows, 0 wrong\n");

    let (head, row) = table.split_once("navi31 rgba8-to-gray8 ").unwrap();
    let (count, rest) = row.split_once(' ').unwrap();
    let fewer = count.parse::<u64>().unwrap() * 9 / 10;
    std::fs::write(&recorded, format!("{head}navi31 rgba8-to-gray8 {fewer} {rest}")).unwrap();
    let output = run(&folder, &["check", &recorded, &now]);
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with(&format!("rgba8-to-gray8 on navi31: {fewer} instructions are recorded, now {count} (+")));
}
