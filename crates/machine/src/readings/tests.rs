//! Readings from file trees as Linux kernels write them, and from broken file trees.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::Arc;

use vramp_gpu::{Backend, DeviceLimits};

use super::tree::FileTree;
use super::*;

const PCI: &str = "0000:03:00.0";
const TICK: Duration = Duration::from_millis(100);

fn adapter(kind: AdapterKind, vendor: u32, model: u32, pci: Option<&str>) -> Adapter {
    Adapter {
        index: 0,
        name: "A card".to_owned(),
        backend: Backend::Vulkan,
        kind,
        driver: String::new(),
        driver_version: String::new(),
        vendor,
        model,
        pci: pci.map(str::to_owned),
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

pub(in super::super) fn an_adapter(kind: AdapterKind) -> Adapter {
    adapter(kind, 0x1002, 1, None)
}

fn card(tree: &FileTree, number: u32, driver: &str, pci: &str, ids: (&str, &str)) {
    let device = format!("sys/class/drm/card{number}/device");
    tree.file(&format!("{device}/uevent"), &format!("DRIVER={driver}\nPCI_CLASS=30000\nPCI_SLOT_NAME={pci}\n"));
    tree.file(&format!("{device}/vendor"), &format!("{}\n", ids.0));
    tree.file(&format!("{device}/device"), &format!("{}\n", ids.1));
}

fn amd(tree: &FileTree, number: u32, pci: &str) {
    card(tree, number, "amdgpu", pci, ("0x1002", "0x73bf"));
    let device = format!("sys/class/drm/card{number}/device");
    tree.file(&format!("{device}/gpu_busy_percent"), "37\n");
    tree.file(&format!("{device}/mem_info_vram_total"), "17163091968\n");
    tree.file(&format!("{device}/mem_info_vram_used"), "1048576\n");
}

/// Reads once, and runs `between` between the two readings of counters.
fn read(tree: &FileTree, adapter: &Adapter, between: impl Fn() + Send + Sync + 'static) -> AdapterReading {
    let wait = move || {
        between();
        TICK
    };
    Readings::rooted_at(tree.root()).waiting(wait).read(adapter)
}

fn why<T: Copy>(known: &Readout<T>) -> &str {
    assert!(known.value().is_none(), "a reason instead of a number");
    known.why().unwrap()
}

#[test]
fn amds_cards_tell_memory_and_load_in_files() {
    let tree = FileTree::new("amds_cards");
    amd(&tree, 0, PCI);
    tree.file("sys/class/drm/card0-HDMI-A-1/status", "connected");
    let found = adapter(AdapterKind::Discrete, 0x1002, 0x73bf, Some(PCI));
    let reading = read(&tree, &found, || panic!("no counter is read twice"));
    assert_eq!(reading.memory_bytes.value(), Some(17_163_091_968));
    assert_eq!(reading.used_bytes.value(), Some(1 << 20));
    assert_eq!(reading.load_percent.value(), Some(37.0));
    assert!(reading.load_percent.from().unwrap().ends_with("card0/device/gpu_busy_percent"), "{reading:?}");
}

#[test]
fn a_chip_of_amd_may_borrow_from_the_host() {
    let tree = FileTree::new("a_chip_of_amd");
    amd(&tree, 0, PCI);
    tree.file("sys/class/drm/card0/device/mem_info_gtt_total", "1000");
    let found = adapter(AdapterKind::Integrated, 0x1002, 0x73bf, Some(PCI));
    let reading = read(&tree, &found, || {});
    assert_eq!(reading.memory_bytes.value(), Some(17_163_092_968));
    assert!(why(&reading.used_bytes).ends_with("mem_info_gtt_used: it does not exist"), "{reading:?}");
}

#[test]
fn what_is_missing_or_garbage_is_a_reason_with_its_file_and_never_a_zero() {
    let tree = FileTree::new("what_is_missing");
    amd(&tree, 0, PCI);
    let device = tree.root().join("sys/class/drm/card0/device");
    let found = adapter(AdapterKind::Discrete, 0x1002, 0x73bf, Some(PCI));
    for (content, problem) in [
        ("", "`` is not a number"),
        ("busy\n", "`busy` is not a number"),
        ("-3", "`-3` is not a number"),
        ("101", "101 is not a percentage"),
        ("99999999999999999999999", "is not a number"),
        ("\u{1}\u{2}", "is not a number"),
    ] {
        tree.file("sys/class/drm/card0/device/gpu_busy_percent", content);
        let reading = read(&tree, &found, || {});
        let why = why(&reading.load_percent);
        assert!(why.contains("gpu_busy_percent: ") && why.contains(problem), "{content:?}: {why}");
        assert!(reading.memory_bytes.value().is_some(), "one bad file costs one number");
    }
    std::fs::remove_file(device.join("gpu_busy_percent")).unwrap();
    assert!(why(&read(&tree, &found, || {}).load_percent).ends_with("gpu_busy_percent: it does not exist"));
    std::fs::create_dir(device.join("gpu_busy_percent")).unwrap();
    assert!(why(&read(&tree, &found, || {}).load_percent).contains("gpu_busy_percent: "));
}

#[test]
fn a_card_is_found_by_its_address_or_else_by_its_numbers_if_only_one_has_them() {
    let tree = FileTree::new("a_card_is_found");
    amd(&tree, 0, PCI);
    card(&tree, 1, "amdgpu", "0000:04:00.0", ("0x1002", "0x1234"));
    let by = |model: u32, pci: Option<&str>| read(&tree, &adapter(AdapterKind::Discrete, 0x1002, model, pci), || {});
    assert!(by(0, Some(PCI)).load_percent.value().is_some());
    assert!(by(0x73bf, None).load_percent.value().is_some());
    assert!(why(&by(0, Some("0000:09:00.0")).memory_bytes).contains("at the PCI address 0000:09:00.0"));
    assert!(why(&by(0, None).memory_bytes).contains("several cards"), "both are AMD's");
    assert!(why(&by(0x9999, None).memory_bytes).contains("is 1002:9999"));
}

#[test]
fn without_any_card_the_reason_is_the_folder() {
    let tree = FileTree::new("without_any_card");
    let reading = read(&tree, &adapter(AdapterKind::Discrete, 0x1002, 1, Some(PCI)), || {});
    for why in [why(&reading.memory_bytes), why(&reading.used_bytes), why(&reading.load_percent)] {
        assert!(why.contains("sys/class/drm: it does not exist"), "{why}");
    }
}

#[test]
fn nvidias_cards_tell_nothing_in_files() {
    let tree = FileTree::new("nvidias_cards");
    card(&tree, 0, "nvidia", PCI, ("0x10de", "0x2684"));
    let reading = read(&tree, &adapter(AdapterKind::Discrete, NVIDIA, 0x2684, Some(PCI)), || {});
    assert!(why(&reading.memory_bytes).contains("library"), "{reading:?}");
}

#[test]
fn this_machine_answers_for_an_nvidia_card_that_is_not_there_with_a_reason() {
    let card = adapter(AdapterKind::Discrete, NVIDIA, 0xffff, Some("00ff:1f:1f.7"));
    assert!(!why(&Readings::of_this_machine().read(&card).load_percent).is_empty());
}

#[test]
fn software_has_the_hosts_memory_and_the_cpus_load() {
    let tree = FileTree::new("software_has_the_hosts");
    tree.file("proc/meminfo", "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n");
    tree.file("proc/stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n");
    let root = tree.root().to_owned();
    let between = move || std::fs::write(root.join("proc/stat"), "cpu  110 0 115 770 105 0 0 0 0 0\n").unwrap();
    let reading = read(&tree, &adapter(AdapterKind::Software, 0x10005, 0, None), between);
    assert_eq!(reading.memory_bytes.value(), Some(1_024_000));
    assert_eq!(reading.used_bytes.value(), Some(600 * 1024));
    assert_eq!(reading.load_percent.value(), Some(25.0));
    assert!(reading.memory_bytes.from().unwrap().contains("the host's"), "{reading:?}");
    assert!(reading.load_percent.from().unwrap().contains("the CPU's load over 0.1 s"), "{reading:?}");
}

#[test]
fn a_host_that_reports_nothing_is_not_an_idle_host() {
    let tree = FileTree::new("a_host_that_tells_nothing");
    let software = adapter(AdapterKind::Software, 0, 0, None);
    let reading = read(&tree, &software, || {});
    assert!(why(&reading.load_percent).contains("proc/stat: it does not exist"));
    assert!(why(&reading.memory_bytes).contains("proc/meminfo: it does not exist"));
    tree.file("proc/stat", "cpu  1 2 x\n");
    tree.file("proc/meminfo", "MemTotal: many kB\n");
    let reading = read(&tree, &software, || {});
    assert!(why(&reading.load_percent).contains("no `cpu` line with four numbers"));
    assert!(why(&reading.memory_bytes).contains("no `MemTotal` with a number"));
    tree.file("proc/stat", "cpu  1 2 3 4\n");
    assert!(why(&read(&tree, &software, || {}).load_percent).contains("did not change"));
}

#[cfg(unix)]
mod counted {
    use super::*;

    fn i915(id: u32, render_ns: u64, video_ns: u64) -> String {
        format!(
            "pos:\t0\ndrm-driver:\ti915\ndrm-client-id:\t{id}\ndrm-pdev:\t{PCI}\ndrm-resident-local0:\t2 MiB\n\
             drm-engine-render:\t{render_ns} ns\ndrm-engine-video:\t{video_ns} ns\ndrm-engine-capacity-video:\t2\n"
        )
    }

    fn intel(kind: AdapterKind) -> Adapter {
        adapter(kind, 0x8086, 0x56a0, Some(PCI))
    }

    fn with_card(test: &str, driver: &str) -> Arc<FileTree> {
        let tree = FileTree::new(test);
        card(&tree, 0, driver, PCI, ("0x8086", "0x56a0"));
        tree.file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1000 kB\n");
        Arc::new(tree)
    }

    #[test]
    fn load_is_the_busiest_engines_share_of_the_time_and_shared_files_count_once() {
        let tree = with_card("load_is_the_busiest", "i915");
        tree.client(10, &i915(1, 5_000_000, 0));
        tree.client(11, &i915(1, 5_000_000, 0));
        tree.client(12, &i915(2, 0, 0));
        let later = Arc::clone(&tree);
        let between = move || {
            later.client(10, &i915(1, 35_000_000, 40_000_000));
            later.client(11, &i915(1, 35_000_000, 40_000_000));
            later.client(12, &i915(2, 10_000_000, 0));
        };
        let reading = read(&tree, &intel(AdapterKind::Discrete), between);
        assert_eq!(reading.load_percent.value().map(f32::round), Some(40.0), "{reading:?}");
        assert!(reading.load_percent.from().unwrap().contains("engine `render`"));
        assert_eq!(reading.load_percent.why(), None, "every process could be inspected");
        assert_eq!(reading.used_bytes.value(), Some(4 << 20));
        assert!(why(&reading.memory_bytes).contains("i915 does not report the size of the card's memory in any file"));
    }

    #[test]
    fn cycles_are_shares_of_all_cycles() {
        let tree = with_card("cycles_are_shares", "xe");
        tree.file("sys/class/drm/card0/device/tile0/physical_vram_size_bytes", "0x400000000\n");
        let xe = |busy: u64, all: u64| {
            format!(
                "drm-driver: xe\ndrm-client-id: 3\ndrm-pdev: {PCI}\ndrm-cycles-ccs: {busy}\ndrm-total-cycles-ccs: {all}\n"
            )
        };
        tree.client(10, &xe(1_000, 900_000));
        let later = Arc::clone(&tree);
        let reading = read(&tree, &intel(AdapterKind::Discrete), move || later.client(10, &xe(1_500, 901_000)));
        assert_eq!(reading.load_percent.value(), Some(50.0), "{reading:?}");
        assert_eq!(reading.memory_bytes.value(), Some(16 << 30));
        assert!(why(&reading.used_bytes).contains("does not report the use of the card's own memory"));
    }

    #[test]
    fn local_memory_is_told_by_older_kernels_too() {
        let tree = with_card("local_memory", "i915");
        tree.file("sys/class/drm/card0/lmem_total_bytes", "1000");
        tree.file("sys/class/drm/card0/lmem_avail_bytes", "600");
        let reading = read(&tree, &intel(AdapterKind::Discrete), || {});
        assert_eq!((reading.memory_bytes.value(), reading.used_bytes.value()), (Some(1000), Some(400)));
    }

    #[test]
    fn a_chip_that_shares_memory_has_the_hosts() {
        let tree = with_card("a_chip_that_shares", "i915");
        let reading = read(&tree, &intel(AdapterKind::Integrated), || {});
        assert_eq!(reading.memory_bytes.value(), Some(1_024_000));
        assert!(reading.memory_bytes.from().unwrap().contains("shares the host's memory"));
    }

    #[test]
    fn an_idle_card_is_a_true_zero_only_if_every_process_was_seen() {
        let tree = with_card("idle_card", "i915");
        let reading = read(&tree, &intel(AdapterKind::Discrete), || {});
        assert_eq!(reading.load_percent.value(), Some(0.0));
        assert!(reading.load_percent.from().unwrap().contains("no process has the card open"));
        tree.client(10, "pos: 0\nflags: 02\n");
        let reading = read(&tree, &intel(AdapterKind::Discrete), || {});
        assert!(why(&reading.load_percent).contains("i915 does not report the card's load"), "{reading:?}");
        tree.client(10, &format!("drm-driver: i915\ndrm-pdev: {PCI}\ndrm-engine-render: lots\nnonsense\ndrm-\n"));
        let reading = read(&tree, &intel(AdapterKind::Discrete), || {});
        assert!(why(&reading.load_percent).contains("reports no engine times"), "{reading:?}");
    }

    #[test]
    fn another_cards_processes_do_not_count() {
        let tree = with_card("another_cards", "i915");
        tree.client(10, &i915(1, 0, 0).replace(PCI, "0000:00:02.0"));
        let later = Arc::clone(&tree);
        let between = move || later.client(10, &i915(1, 90_000_000, 0).replace(PCI, "0000:00:02.0"));
        assert_eq!(read(&tree, &intel(AdapterKind::Discrete), between).load_percent.value(), Some(0.0));
    }
}
