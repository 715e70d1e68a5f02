//! The list of adapters, kept between runs in the user's cache folder.
//!
//! Querying drivers takes 25 to 250 ms, so the list is kept, together with everything that the list depends on: driver
//! files with size and modification time, environment variables that steer drivers, device nodes and the user's
//! permission to open these nodes, and vramp's version. A list that does not match, or cannot be read, is not used. A
//! cache that cannot be written is not an error. `vramp plan` reads the list and never queries drivers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use vramp_files::{TemporaryFile, read_regular_text};
use vramp_gpu::Adapter;

use super::drivers::Drivers;

/// Version of the file's layout. A file of another version is not used.
const FORM: u64 = 2;

/// Maximum size of a cache file that is read.
const MAX_BYTES: u64 = 8 << 20;

/// Prefixes of environment variables that change which adapters answer.
const STEERING: [&str; 14] = [
    "VK_",
    "WGPU_",
    "MESA_",
    "LIBGL_",
    "GALLIUM_",
    "DRI_PRIME",
    "EGL_",
    "__EGL_",
    "__GLX_",
    "__NV_",
    "NVIDIA_VISIBLE_DEVICES",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "LD_LIBRARY_PATH",
];

/// The kept list; none if the drivers have to be queried.
pub(super) fn known() -> Option<Vec<Adapter>> {
    read(&read_regular_text(&kept_at()?, MAX_BYTES).ok()?, &circumstances())
}

/// The folder for data that is kept between runs; none if the system has no cache folder.
pub(super) fn folder() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = if cfg!(target_os = "windows") {
        var("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        var("HOME").map(|home| home.join("Library/Caches"))
    } else {
        var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))
    };
    Some(caches?.join("vramp"))
}

fn kept_at() -> Option<PathBuf> {
    Some(folder()?.join("adapters.json"))
}

/// Keeps a list for later runs.
pub(super) fn remember(adapters: &[Adapter]) {
    // An empty list is not kept: without drivers, querying is quick, and the user may be about to install a driver.
    let Some(path) = kept_at().filter(|_| !adapters.is_empty()) else { return };
    let text = write(adapters, &circumstances());
    if read_regular_text(&path, MAX_BYTES).is_ok_and(|kept| kept == text) {
        return;
    }
    // Errors are ignored: the next run queries the drivers again.
    put(&path, &text);
}

/// Writes a cache file under a temporary name and renames the file, so that no process reads an incomplete file.
/// Returns whether the file was written.
pub(super) fn put(path: &Path, text: &str) -> bool {
    let Some(folder) = path.parent() else { return false };
    let written = fs::create_dir_all(folder).and_then(|()| {
        let mut file = TemporaryFile::beside(path)?;
        file.write_all(text.as_bytes())?;
        Ok(file.persist(path)?)
    });
    written.is_ok()
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct KeptAdapters {
    form: u64,
    circumstances: Vec<String>,
    adapters: Vec<Adapter>,
}

fn write(adapters: &[Adapter], circumstances: &[String]) -> String {
    let kept = KeptAdapters { form: FORM, circumstances: circumstances.to_vec(), adapters: adapters.to_vec() };
    serde_json::to_string_pretty(&kept).expect("text and numbers can be written as JSON")
}

/// The list, if the text is complete and the circumstances match.
fn read(text: &str, circumstances: &[String]) -> Option<Vec<Adapter>> {
    let kept: KeptAdapters = serde_json::from_str(text).ok()?;
    (kept.form == FORM && kept.circumstances == circumstances).then_some(kept.adapters)
}

// ---- circumstances

/// Everything the list depends on, one fact per line.
fn circumstances() -> Vec<String> {
    let mut facts = vec![format!("vramp {}", env!("CARGO_PKG_VERSION"))];
    let steers = |name: &str| STEERING.iter().any(|begin| name.starts_with(begin));
    let steering: BTreeSet<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| steers(&name.to_string_lossy())).collect();
    facts.extend(steering.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())));
    let files = if cfg!(target_os = "linux") { Drivers::of_this_machine().files() } else { system_files() };
    facts.extend(files.iter().filter_map(|file| stamp(file)));
    if cfg!(target_os = "linux") {
        facts.extend(device_nodes());
        // The right to open a device node decides whether the driver of that node answers.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ids = status.lines().filter(|line| ["Uid:", "Gid:", "Groups:"].iter().any(|key| line.starts_with(key)));
        facts.extend(ids.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    facts
}

/// A file with its size and modification time; none if the file does not exist.
fn stamp(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let changed = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    Some(format!("{} {} {changed}", path.display(), found.len()))
}

/// Files that change when the system or its drivers are updated, on systems other than Linux.
fn system_files() -> Vec<PathBuf> {
    let windows = std::env::var_os("SystemRoot").map_or_else(|| PathBuf::from("C:\\Windows"), PathBuf::from);
    vec![
        PathBuf::from("/System/Library/CoreServices/SystemVersion.plist"),
        windows.join("System32\\DriverStore\\FileRepository"),
        windows.join("System32\\vulkan-1.dll"),
    ]
}

/// The device nodes of graphics hardware.
fn device_nodes() -> BTreeSet<String> {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let others = names("/dev").into_iter().filter(|name| name.starts_with("/dev/nvidia") || name == "/dev/dxg");
    others.chain(names("/dev/dri")).collect()
}

#[cfg(test)]
mod tests {
    use vramp_gpu::{AdapterKind, Backend, DeviceLimits};

    use super::*;

    fn adapter() -> Adapter {
        Adapter {
            index: 0,
            name: "A \"card\" \\ of\nmany, words,".to_owned(),
            backend: Backend::Vulkan,
            kind: AdapterKind::Integrated,
            driver: "driver".to_owned(),
            driver_version: String::new(),
            vendor: 0x8086,
            model: 7,
            pci: Some("0000:00:02.0".to_owned()),
            has_timestamps: true,
            has_mappable_buffers: false,
            limits: DeviceLimits {
                storage_buffers_per_stage: 8,
                binding_bytes: 1 << 40,
                buffer_bytes: u64::MAX,
                params_bytes: 65_536,
                params_alignment: 256,
                workgroups_per_dimension: 65_535,
                invocations_per_workgroup: 256,
                workgroup_bytes: 32_768,
                workgroup_sides: [256, 256, 64],
                storage_alignment: 256,
                texture_side: 8192,
            },
        }
    }

    #[test]
    fn a_list_reads_back_under_the_same_circumstances_only() {
        let facts = vec!["VK_X=a\tb".to_owned(), "/a/b.json 12 34".to_owned()];
        let other = Adapter { index: 1, backend: Backend::Gles, kind: AdapterKind::Software, ..adapter() };
        let list = [adapter(), other];
        let text = write(&list, &facts);
        assert_eq!(read(&text, &facts).as_deref(), Some(&list[..]));
        assert_eq!(read(&text, &facts[..1]), None);
        assert_eq!(read(&text, &[]), None);
        assert_eq!(read(&text.replace(&format!("\"form\": {FORM}"), "\"form\": 0"), &facts), None);
    }

    #[test]
    fn a_broken_list_is_not_read_and_breaks_nothing() {
        let facts = vec!["fact".to_owned()];
        let text = write(&[adapter()], &facts);
        for cut in (0..text.len() - 1).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(read(&text[..cut], &facts), None, "cut at {cut}");
        }
        for strange in ["", "{}", "null", "\u{0}\u{0}", "{\"form\": 1}"] {
            assert_eq!(read(strange, &facts), None);
        }
    }

    #[test]
    fn circumstances_are_the_same_twice() {
        assert_eq!(circumstances(), circumstances());
        assert!(circumstances()[0].starts_with("vramp "));
    }
}
