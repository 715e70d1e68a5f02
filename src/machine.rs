//! The machine: which adapters it has, remembered between runs.
//!
//! Owns the list of adapters that is kept beside other caches, since asking drivers takes 25 to 250 ms, and what it
//! depends on: driver files, the environment that steers drivers, device nodes and who may open them.
//! Does not open an adapter, and does not pick among them beyond taking the best: the device's room does.
//!
//! Always: a list that was made under other circumstances, by another version, or that cannot be read is asked for
//! anew; a cache that cannot be written is no error.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use vramp_gpu::{Adapter, AdapterKind, Choice, Device, OpenError};
use vramp_plan::{Figure, Limits, Origin, Profile};

/// The form of the kept list: another one is not read.
const FORM: u64 = 1;

/// Variables that change which adapters answer, by how their names begin.
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

/// Asks every driver for its adapters, best first, and remembers the answer.
pub fn list_adapters() -> Vec<Adapter> {
    let found = Device::choose().list();
    remember(&found);
    found
}

/// The adapters as they are remembered, best first; none where they would have to be asked for. Nothing is opened or
/// listed.
pub fn known_adapters() -> Option<Vec<Adapter>> {
    read(&fs::read_to_string(kept_at()?).ok()?, &circumstances())
}

/// The adapter that a choice would open, from what is remembered where that is enough.
pub fn adapter(choice: &Choice) -> Result<Adapter, OpenError> {
    let remembered = known_adapters().and_then(|known| choice.of(&known).ok());
    remembered.map_or_else(|| choice.of(&list_adapters()), Ok)
}

/// The figures for an adapter: those of its class, with its own limits. Without one, those of a machine without a
/// device.
pub fn figures_of(adapter: Option<&Adapter>) -> Profile {
    let class = match adapter.map(|adapter| adapter.kind) {
        None => "cpu",
        Some(AdapterKind::Discrete | AdapterKind::Virtual) => "discrete",
        Some(AdapterKind::Integrated | AdapterKind::Other) => "integrated",
        Some(AdapterKind::Software) => "software",
    };
    let mut profile = Profile::shipped(class).expect("every class ships, tests/shipped.rs");
    if let (Some(adapter), Some(gpu)) = (adapter, &mut profile.gpu) {
        let own = |value: u64| Figure { value: value as f64, origin: Origin::From("the adapter".to_owned()) };
        let limits = &adapter.limits;
        gpu.limits = Limits {
            storage_buffers_per_stage: own(limits.storage_buffers_per_stage.into()),
            binding_bytes: own(limits.binding_bytes),
            buffer_bytes: own(limits.buffer_bytes),
            workgroups_per_dimension: own(limits.workgroups_per_dimension.into()),
        };
    }
    profile
}

// ---- where and under which circumstances

fn kept_at() -> Option<PathBuf> {
    Some(cache_folder()?.join("adapters.json"))
}

/// Where what is known of the machine is kept.
pub(crate) fn cache_folder() -> Option<PathBuf> {
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

/// Everything the list depends on, one fact a line.
fn circumstances() -> Vec<String> {
    let mut facts = vec![format!("vramp {}", env!("CARGO_PKG_VERSION"))];
    let steers = |name: &str| STEERING.iter().any(|begin| name.starts_with(begin));
    let steering: BTreeSet<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| steers(&name.to_string_lossy())).collect();
    facts.extend(steering.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())));
    let files = if cfg!(target_os = "linux") { linux_files() } else { system_files() };
    facts.extend(files.iter().filter_map(|file| stamp(file)));
    if cfg!(target_os = "linux") {
        facts.extend(device_nodes());
        // Who may open a device node decides whether its driver answers.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let who = status.lines().filter(|line| ["Uid:", "Gid:", "Groups:"].iter().any(|key| line.starts_with(key)));
        facts.extend(who.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    facts
}

/// A file with its size and its age; none where it is not there.
fn stamp(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let changed = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    Some(format!("{} {} {changed}", path.display(), found.len()))
}

/// Where drivers come with the system, what changes when it or they are updated.
fn system_files() -> Vec<PathBuf> {
    let windows = std::env::var_os("SystemRoot").map_or_else(|| PathBuf::from("C:\\Windows"), PathBuf::from);
    vec![
        PathBuf::from("/System/Library/CoreServices/SystemVersion.plist"),
        windows.join("System32\\DriverStore\\FileRepository"),
        windows.join("System32\\vulkan-1.dll"),
    ]
}

/// The descriptions of drivers, as the Vulkan loader and GLVND look for them, and the libraries that they name.
fn linux_files() -> Vec<PathBuf> {
    let list = |name: &str| -> Vec<PathBuf> {
        std::env::var_os(name).map(|value| std::env::split_paths(&value).collect()).unwrap_or_default()
    };
    let mut folders: Vec<PathBuf> = ["XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"]
        .iter()
        .flat_map(|name| list(name))
        .chain(["/etc/xdg", "/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"].map(PathBuf::from))
        .collect();
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        folders.extend([home.join(".config"), home.join(".local/share")]);
    }
    let mut described: Vec<PathBuf> =
        folders.iter().flat_map(|folder| [folder.join("vulkan/icd.d"), folder.join("glvnd/egl_vendor.d")]).collect();
    for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "__EGL_VENDOR_LIBRARY_FILENAMES"] {
        described.extend(list(name));
    }
    let libraries = library_folders(&list("LD_LIBRARY_PATH"));
    let mut files: BTreeSet<PathBuf> =
        libraries.iter().flat_map(|folder| [folder.join("libvulkan.so.1"), folder.join("libEGL.so.1")]).collect();
    for description in described.iter().flat_map(|place| json_files(place)) {
        let text = fs::read_to_string(&description).unwrap_or_default();
        if let Some(named) = library_path(&text) {
            let beside = description.parent().unwrap_or(Path::new("/"));
            if named.contains('/') {
                files.insert(beside.join(named));
            } else {
                files.extend(libraries.iter().map(|folder| folder.join(&named)));
            }
        }
        files.insert(description);
    }
    files.into_iter().collect()
}

/// A description itself, or all in a folder.
fn json_files(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return vec![place.to_owned()] };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

/// Where a library that is named without a folder is looked for.
fn library_folders(first: &[PathBuf]) -> Vec<PathBuf> {
    let usual = ["/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
    let arch = std::env::consts::ARCH;
    let multiarch = PathBuf::from(format!("/usr/lib/{arch}-linux-gnu"));
    first.iter().cloned().chain([multiarch]).chain(usual).collect()
}

/// The library that a driver's description names.
fn library_path(description: &str) -> Option<String> {
    let described: serde_json::Value = serde_json::from_str(description).ok()?;
    let named = described.as_object()?.values().find_map(|part| part.get("library_path"))?;
    named.as_str().map(str::to_owned)
}

/// The names under which graphics hardware can be opened.
fn device_nodes() -> BTreeSet<String> {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let others = names("/dev").into_iter().filter(|name| name.starts_with("/dev/nvidia") || name == "/dev/dxg");
    others.chain(names("/dev/dri")).collect()
}

// ---- the kept list

fn remember(adapters: &[Adapter]) {
    // A machine without any is not remembered: asking it is quick, and somebody may be about to change that.
    let Some(path) = kept_at().filter(|_| !adapters.is_empty()) else { return };
    let Some(folder) = path.parent() else { return };
    let text = write(adapters, &circumstances());
    if fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
        return;
    }
    // Written beside and renamed, so that nobody ever reads half a list. Without a place to write there is no cache.
    let part = folder.join(format!("adapters.json.{}.part", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::File::create(&part))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&part, &path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
}

/// The list as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    form: u64,
    circumstances: Vec<String>,
    adapters: Vec<Adapter>,
}

fn write(adapters: &[Adapter], circumstances: &[String]) -> String {
    let kept = Kept { form: FORM, circumstances: circumstances.to_vec(), adapters: adapters.to_vec() };
    serde_json::to_string_pretty(&kept).expect("text and numbers can be written as JSON")
}

/// The list, if it was made under these circumstances and is whole.
fn read(text: &str, circumstances: &[String]) -> Option<Vec<Adapter>> {
    let kept: Kept = serde_json::from_str(text).ok()?;
    (kept.form == FORM && kept.circumstances == circumstances).then_some(kept.adapters)
}

#[cfg(test)]
mod tests {
    use vramp_gpu::{Backend, DeviceLimits};

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
        assert_eq!(read(&text.replace("\"form\": 1", "\"form\": 2"), &facts), None);
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
    fn a_driver_description_names_its_library() {
        let text = "{ \"ICD\": { \"api_version\": \"1.1\", \"library_path\" : \"/usr/lib/libx.so\" } }";
        assert_eq!(library_path(text).as_deref(), Some("/usr/lib/libx.so"));
        assert_eq!(library_path("{}"), None);
        assert_eq!(library_path("{ \"ICD\": { \"library_path\": 3 } }"), None);
    }

    #[test]
    fn circumstances_are_the_same_twice() {
        assert_eq!(circumstances(), circumstances());
        assert!(circumstances()[0].starts_with("vramp "));
    }
}
