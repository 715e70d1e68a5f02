//! The folders and variables by which the Vulkan loader and GLVND find drivers on Linux.
//!
//! Only files are inspected; no driver is loaded or queried. The kept list of adapters and `vramp doctor` use the same
//! search. The root of the file tree and the environment are parameters, so that tests can search a tree of their own.
//!
//! Missing folders, unreadable descriptions and missing libraries are results, not errors.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use vramp_files::read_regular_text;

/// Variables that replace the loader's own search; the first variable that is set wins.
const INSTEAD: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];
/// The variable that adds files to the loader's own search.
const ADDED: &str = "VK_ADD_DRIVER_FILES";
/// The variable that names EGL drivers.
const EGL: &str = "__EGL_VENDOR_LIBRARY_FILENAMES";

/// Maximum size of a driver's description that is read.
const MAX_BYTES: u64 = 1 << 20;

/// A file tree and an environment to search for drivers.
#[derive(Debug, Clone)]
pub struct Drivers {
    root: PathBuf,
    vars: BTreeMap<OsString, OsString>,
}

/// A Vulkan driver, according to its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The JSON file that describes the driver.
    pub description: PathBuf,
    /// The library's name or path in the description.
    pub names: String,
    /// The library's file; none if the file is not found.
    pub library: Option<PathBuf>,
}

impl Drivers {
    /// The file tree and the environment variables of this process.
    pub fn of_this_machine() -> Drivers {
        Drivers::rooted_at("/", std::env::vars_os())
    }

    /// The tree below `root`, with these environment variables.
    pub fn rooted_at(root: impl Into<PathBuf>, vars: impl IntoIterator<Item = (OsString, OsString)>) -> Drivers {
        Drivers { root: root.into(), vars: vars.into_iter().collect() }
    }

    /// The place of an absolute path below this tree's root.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        path.strip_prefix("/").map_or_else(|_| path.to_owned(), |below| self.root.join(below))
    }

    /// The value of an environment variable; none if the variable is not set or empty.
    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.vars.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }

    /// The variables that name Vulkan drivers, each with its files or folders.
    pub fn named(&self) -> Vec<(&'static str, Vec<PathBuf>)> {
        let all = INSTEAD.into_iter().chain([ADDED]);
        all.filter(|name| self.var(name).is_some()).map(|name| (name, self.list(name))).collect()
    }

    /// Every Vulkan driver that the loader would consider, except drivers whose word size differs from this program's.
    pub fn vulkan(&self) -> Vec<Driver> {
        let instead = INSTEAD.into_iter().find(|name| self.var(name).is_some());
        let mut places = match instead {
            Some(name) => self.list(name),
            None => self.folders().into_iter().map(|folder| folder.join("vulkan/icd.d")).collect(),
        };
        places.extend(self.list(ADDED));
        let files: BTreeSet<PathBuf> = places.iter().flat_map(|place| descriptions(place)).collect();
        files.into_iter().filter_map(|file| self.driver(file)).collect()
    }

    /// The file of a library that is named without a folder.
    pub fn library(&self, name: &str) -> Option<PathBuf> {
        self.library_folders().into_iter().map(|folder| folder.join(name)).find(|file| file.exists())
    }

    /// The folders to search for libraries that are named without a folder.
    pub fn library_folders(&self) -> Vec<PathBuf> {
        let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let usual = ["/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
        let usual = [multiarch.as_str()].into_iter().chain(usual).map(|folder| self.at(folder));
        self.list("LD_LIBRARY_PATH").into_iter().chain(usual).collect()
    }

    /// Every file that decides which adapters answer, whether the file exists or not.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let in_folders =
            |folder: &PathBuf| [folder.join("vulkan/icd.d"), folder.join("glvnd/egl_vendor.d")].into_iter();
        let mut described: Vec<PathBuf> = self.folders().iter().flat_map(in_folders).collect();
        for name in INSTEAD.into_iter().chain([ADDED, EGL]) {
            described.extend(self.list(name));
        }
        let libraries = self.library_folders();
        let mut files: BTreeSet<PathBuf> =
            libraries.iter().flat_map(|folder| [folder.join("libvulkan.so.1"), folder.join("libEGL.so.1")]).collect();
        for description in described.iter().flat_map(|place| descriptions(place)) {
            if let Some(named) = described_in(&description).and_then(|described| library_path(&described)) {
                if named.contains('/') {
                    files.insert(self.beside(&description, &named));
                } else {
                    files.extend(libraries.iter().map(|folder| folder.join(&named)));
                }
            }
            files.insert(description);
        }
        files.into_iter().collect()
    }

    /// The folders that may contain descriptions.
    fn folders(&self) -> Vec<PathBuf> {
        let named = ["XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"];
        let usual = ["/etc/xdg", "/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"];
        let mut folders: Vec<PathBuf> =
            named.iter().flat_map(|name| self.list(name)).chain(usual.iter().map(|folder| self.at(folder))).collect();
        if let Some(home) = self.var("HOME").map(|home| self.at(home)) {
            folders.extend([home.join(".config"), home.join(".local/share")]);
        }
        folders
    }

    /// The paths in an environment variable that is a list of paths.
    fn list(&self, name: &str) -> Vec<PathBuf> {
        let paths = self.var(name).map(|value| std::env::split_paths(value).collect::<Vec<_>>()).unwrap_or_default();
        paths.iter().filter(|path| !path.as_os_str().is_empty()).map(|path| self.at(path)).collect()
    }

    fn driver(&self, description: PathBuf) -> Option<Driver> {
        let described = described_in(&description)?;
        let bits = if cfg!(target_pointer_width = "64") { "32" } else { "64" };
        if described["ICD"]["library_arch"] == bits {
            return None;
        }
        let names = library_path(&described)?;
        let library = if names.contains('/') {
            Some(self.beside(&description, &names)).filter(|file| file.exists())
        } else {
            self.library(&names)
        };
        Some(Driver { description, names, library })
    }

    /// The path of a library that is named with a folder. An absolute name is taken below the root, and a relative name
    /// beside the description.
    fn beside(&self, description: &Path, named: &str) -> PathBuf {
        let beside = description.parent().unwrap_or(Path::new("/"));
        if Path::new(named).is_absolute() { self.at(named) } else { beside.join(named) }
    }
}

/// The descriptions in the folder `place`, or `place` itself if `place` is not a folder.
fn descriptions(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return vec![place.to_owned()] };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

fn described_in(description: &Path) -> Option<Value> {
    serde_json::from_str(&read_regular_text(description, MAX_BYTES).ok()?).ok()
}

/// The library that a driver's description names.
fn library_path(described: &Value) -> Option<String> {
    let named = described.as_object()?.values().find_map(|part| part.get("library_path"))?;
    named.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::readings::tree::FileTree;
    use super::*;

    fn vars(of: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        of.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_driver_description_names_its_library() {
        let path = |text: &str| library_path(&serde_json::from_str(text).unwrap());
        let text = "{ \"ICD\": { \"api_version\": \"1.1\", \"library_path\" : \"/usr/lib/libx.so\" } }";
        assert_eq!(path(text).as_deref(), Some("/usr/lib/libx.so"));
        assert_eq!(path("{}"), None);
        assert_eq!(path("3"), None);
        assert_eq!(path("{ \"ICD\": { \"library_path\": 3 } }"), None);
    }

    #[test]
    fn drivers_are_found_in_the_loaders_folders_and_missing_libraries_are_reported() {
        let tree = FileTree::new("drivers_are_found");
        tree.file("usr/share/vulkan/icd.d/a.json", "{\"ICD\": {\"library_path\": \"liba.so\"}}");
        tree.file("etc/vulkan/icd.d/b.json", "{\"ICD\": {\"library_path\": \"/opt/libb.so\"}}");
        tree.file("etc/vulkan/icd.d/old.json", "{\"ICD\": {\"library_path\": \"o.so\", \"library_arch\": \"32\"}}");
        tree.file("etc/vulkan/icd.d/broken.json", "{");
        tree.file("lib/liba.so", "");
        let drivers = Drivers::rooted_at(tree.root(), vars(&[]));
        let found = drivers.vulkan();
        let names: Vec<_> = found.iter().map(|driver| (driver.names.as_str(), driver.library.is_some())).collect();
        assert_eq!(names, [("/opt/libb.so", false), ("liba.so", true)]);
        assert_eq!(drivers.library("libvulkan.so.1"), None);
        assert!(drivers.files().contains(&tree.root().join("opt/libb.so")), "creating it would change the adapters");
    }

    #[test]
    fn a_variable_takes_the_place_of_folders() {
        let tree = FileTree::new("a_variable_takes_the_place");
        tree.file("usr/share/vulkan/icd.d/a.json", "{\"ICD\": {\"library_path\": \"liba.so\"}}");
        tree.file("mine.json", "{\"ICD\": {\"library_path\": \"./libmine.so\"}}");
        tree.file("libmine.so", "");
        let with = |of: &[(&str, &str)]| Drivers::rooted_at(tree.root(), vars(of));
        let named = with(&[("VK_ICD_FILENAMES", "/mine.json:/none.json")]);
        assert_eq!(named.vulkan().len(), 1);
        assert!(named.vulkan()[0].library.is_some(), "relative names are beside the description");
        assert_eq!(
            named.named(),
            [("VK_ICD_FILENAMES", vec![tree.root().join("mine.json"), tree.root().join("none.json")])]
        );
        assert_eq!(with(&[("VK_ADD_DRIVER_FILES", "/mine.json")]).vulkan().len(), 2);
        assert_eq!(with(&[("VK_ICD_FILENAMES", "")]).named(), []);
    }
}
