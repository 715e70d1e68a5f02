//! Checks of graphics on directory trees that imitate broken machines.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::ffi::OsString;
use std::fs;

use vramp::gpu::DeviceLimits;

use super::super::CheckState;
use super::*;

/// A directory tree that is removed when dropped.
struct TempTree(PathBuf);

impl TempTree {
    fn new(test: &str) -> TempTree {
        let root = std::env::temp_dir().join(format!("vramp-doctor-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let tree = TempTree(root);
        tree.file("etc/os-release", "ID=debian\n");
        tree
    }

    fn file(&self, path: &str, content: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn driver(&self, name: &str) {
        let text = format!("{{\"ICD\": {{\"library_path\": \"lib{name}.so\"}}}}");
        self.file(&format!("usr/share/vulkan/icd.d/{name}.json"), &text);
    }

    fn with(&self, vars: &[(&str, &str)], may_open: fn(&Path) -> io::Result<()>) -> Surroundings {
        let vars = vars.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Surroundings { drivers: Drivers::rooted_at(&self.0, vars), may_open }
    }
}

impl Drop for TempTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn opens(node: &Path) -> io::Result<()> {
    fs::metadata(node).map(drop)
}

fn denies(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::PermissionDenied.into())
}

fn adapter_of(kind: AdapterKind) -> Adapter {
    Adapter {
        index: 0,
        name: "A card".to_owned(),
        backend: Backend::Vulkan,
        kind,
        driver: "driver".to_owned(),
        driver_version: "1".to_owned(),
        vendor: 0x1002,
        model: 1,
        pci: None,
        has_timestamps: true,
        has_mappable_buffers: false,
        limits: DeviceLimits {
            storage_buffers_per_stage: 8,
            binding_bytes: 1 << 27,
            buffer_bytes: 1 << 28,
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

#[track_caller]
fn one<'c>(checks: &'c [HealthCheck], name: &str) -> &'c HealthCheck {
    let found: Vec<&HealthCheck> = checks.iter().filter(|check| check.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {checks:?}");
    found[0]
}

fn files_of(here: &Surroundings, adapters: &[Adapter]) -> Vec<HealthCheck> {
    files(here, adapters, &Fixes::of(&here.drivers))
}

#[test]
fn without_a_loader_it_says_what_to_install() {
    let tree = TempTree::new("without_a_loader");
    let here = tree.with(&[], opens);
    let checks = files_of(&here, &[]);
    let loader = one(&checks, "loader");
    assert_eq!(loader.state, CheckState::Warning);
    assert!(loader.words.contains("no libvulkan.so.1 in"), "{loader:?}");
    assert_eq!(loader.fix.as_deref(), Some("sudo apt install libvulkan1 mesa-vulkan-drivers"));
    let none = adapter(&here, &[], &Fixes::of(&here.drivers));
    assert_eq!((none.state, none.fix.is_some()), (CheckState::Warning, true));
}

#[test]
fn a_loader_without_drivers_differs_from_no_loader() {
    let tree = TempTree::new("a_loader_without_drivers");
    tree.file("usr/lib/libvulkan.so.1", "");
    let checks = files_of(&tree.with(&[], opens), &[]);
    assert_eq!(one(&checks, "loader").state, CheckState::Ok);
    assert!(one(&checks, "drivers").words.contains("describes no driver"), "{checks:?}");
    assert!(one(&checks, "drivers").fix.is_some());
}

#[test]
fn a_driver_without_its_library_is_a_problem_unless_others_answer() {
    let tree = TempTree::new("a_driver_without");
    tree.driver("gone");
    let here = tree.with(&[], opens);
    let checks = files_of(&here, &[]);
    let gone = one(&checks, "drivers");
    assert_eq!(gone.state, CheckState::Problem);
    assert!(gone.words.contains("gone.json names libgone.so, which does not exist"), "{gone:?}");
    assert!(gone.fix.as_ref().unwrap().contains("--reinstall"), "{gone:?}");
    let checks = files_of(&here, &[adapter_of(AdapterKind::Software)]);
    assert_eq!(one(&checks, "drivers").state, CheckState::Warning);
    tree.file("usr/lib/libgone.so", "");
    assert_eq!(one(&files_of(&here, &[]), "drivers").state, CheckState::Ok);
}

#[test]
fn a_variable_that_names_nothing_is_a_problem_with_what_to_type() {
    let tree = TempTree::new("a_variable_that_names");
    tree.file("there.json", "{}");
    for name in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES"] {
        let checks = variables(&tree.with(&[(name, "/there.json:/gone.json")], opens));
        let check = one(&checks, name);
        assert_eq!(check.state, CheckState::Problem);
        assert!(check.words.contains("gone.json, which does not exist") && !check.words.contains("there.json,"));
        assert_eq!(check.fix, Some(format!("unset {name}")));
        let checks = variables(&tree.with(&[(name, "/there.json")], opens));
        assert_eq!(one(&checks, name).state, CheckState::Ok);
    }
    assert_eq!(variables(&tree.with(&[], opens)), []);
}

#[test]
fn variables_that_vramp_does_not_read_are_reported_with_its_options() {
    let tree = TempTree::new("variables_that");
    let checks = variables(&tree.with(&[("WGPU_BACKEND", "dx13"), ("VK_LOADER_DRIVERS_DISABLE", "*")], opens));
    let check = one(&checks, "WGPU_BACKEND");
    assert_eq!(check.state, CheckState::Warning);
    assert!(check.words.contains("`dx13`") && check.words.contains("--backend"), "{check:?}");
    assert_eq!(one(&checks, "VK_LOADER_DRIVERS_DISABLE").state, CheckState::Warning);
}

#[cfg(unix)]
#[test]
fn a_card_that_may_not_be_opened_names_the_group_to_join() {
    use std::os::unix::fs::MetadataExt as _;
    let tree = TempTree::new("a_card_that_may_not");
    tree.file("dev/dri/renderD128", "");
    tree.file("dev/dri/card0", "");
    let id = fs::metadata(tree.0.join("dev/dri/renderD128")).unwrap().gid();
    tree.file("etc/group", &format!("other:x:98765:\nrender:x:{id}:\n"));
    let checks = files_of(&tree.with(&[], denies), &[adapter_of(AdapterKind::Software)]);
    let check = one(&checks, "permission");
    assert_eq!(check.state, CheckState::Problem);
    assert!(check.words.contains("renderD128") && check.words.contains("group `render`"), "{check:?}");
    assert_eq!(check.fix.as_deref(), Some("sudo usermod -aG render $USER, and log in again"));
    let checks = files_of(&tree.with(&[], denies), &[adapter_of(AdapterKind::Discrete)]);
    assert_eq!(one(&checks, "permission").state, CheckState::Warning, "another way to it is open");
    tree.file("etc/group", "broken\n:::\n");
    let checks = files_of(&tree.with(&[], denies), &[]);
    assert!(one(&checks, "permission").fix.as_ref().unwrap().starts_with("sudo chmod"));
    assert_eq!(one(&files_of(&tree.with(&[], opens), &[]), "permission").state, CheckState::Ok);
}

#[test]
fn only_software_is_a_warning_that_says_whether_hardware_is_seen() {
    let tree = TempTree::new("only_software");
    let here = tree.with(&[], opens);
    let judged = |kind| adapter(&here, &[adapter_of(kind)], &Fixes::of(&here.drivers));
    assert_eq!(judged(AdapterKind::Integrated).state, CheckState::Ok);
    if cfg!(target_os = "linux") {
        let unseen = judged(AdapterKind::Software);
        assert_eq!((unseen.state, &unseen.fix), (CheckState::Warning, &None));
        assert!(unseen.words.contains("has no graphics hardware"), "{unseen:?}");
        tree.file("dev/dri/renderD128", "");
        assert!(judged(AdapterKind::Software).fix.unwrap().contains("mesa-vulkan-drivers"));
    }
}
