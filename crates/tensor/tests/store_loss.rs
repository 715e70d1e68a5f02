//! Persisting tensors in a folder, and a store that loses its device and continues.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sides::{both, device, on_device};
use vramp_gpu::Device;
use vramp_tensor::{
    Context, DType, ErrorKind, FileError, Store, StoreBuilder, StoreError, SyncDirection, TensorFile, TensorRecovery,
};

/// A folder for one test, removed afterwards.
struct Room(PathBuf);

impl Room {
    fn new() -> Room {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("vramp-store-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Room(path)
    }

    fn store(&self, context: &Context) -> StoreBuilder {
        Store::builder().context(context).folder(&self.0, 1 << 20)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_gone(store: &Store, name: &str) -> bool {
    let error = store.tensor(name, "m").unwrap_err();
    assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
    store.elementwise((name, "m"), ("never", "m"), None).unwrap_err() == error
}

#[test]
fn what_is_persisted_survives_a_restart_on_either_side() {
    let room = Room::new();
    for (side, context) in both() {
        let store = room.store(&context).build().unwrap();
        store.register("odd", &[7], &[1_i8, -2, 3, -4, 5, -6, 7], "m", &[]).unwrap();
        store.register("a/b .. \u{e4}", &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0], "m", &[]).unwrap();
        store.elementwise(("a/b .. \u{e4}", "m"), ("made", "m"), Some("square")).unwrap();
        store.view(("made", "m"), ("part", "m"), 1, Some(2)).unwrap();
        let persisted = store.persist_all().unwrap();
        assert_eq!((persisted.tensors, persisted.evicted.len()), (4, 0), "{side}");
        store.register("later", &[1], &[1_u8], "m", &[]).unwrap();
        store.persist("later").unwrap();
        drop(store);

        for (other, context) in both() {
            let store = room.store(&context).build().unwrap();
            let restored = store.restore("n").unwrap();
            assert_eq!((restored.tensors.len(), restored.bytes, restored.failed.len()), (5, 48, 0));
            let read = |name: &str| store.tensor(name, "n").unwrap();
            assert_eq!(read("odd").read::<i8>().unwrap(), [1, -2, 3, -4, 5, -6, 7], "{side} {other}");
            assert_eq!(read("made").read::<f32>().unwrap(), [1.0, 4.0, 9.0, 16.0], "{side} {other}");
            assert_eq!(read("part").read::<f32>().unwrap(), [4.0, 9.0], "{side} {other}");
            let location = read("made").location();
            let there = other == "device";
            assert_eq!((location.device, location.host), (there, !there), "{side} {other}: no copy on the host");
            store.elementwise(("made", "n"), ("root", "n"), Some("sqrt")).unwrap();
            assert_eq!(read("root").read::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0], "{side} {other}");
            let again = store.restore("n").unwrap();
            assert_eq!((again.tensors.len(), again.failed.len()), (0, 5), "names that are taken are reported");
        }
    }
}

#[test]
fn a_tensor_of_many_parts_comes_from_its_file_whole() {
    let room = Room::new();
    let count = (70 << 20) / 4 + 3;
    let context = on_device();
    let builder = || Store::builder().context(&context).folder(&room.0, 1 << 30);
    let values: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let store = builder().build().unwrap();
    store.register("big", &[count], &values, "m", &[]).unwrap();
    store.persist("big").unwrap();
    drop(store);
    context.restart_peak();
    let store = builder().build().unwrap();
    store.load("big", "m").unwrap();
    assert_eq!(context.memory().peak_bytes, count as u64 * 4, "once, on the device");
    assert!(store.tensor("big", "m").unwrap().read::<u32>().unwrap() == values);
}

#[test]
fn loading_says_what_is_missing_and_the_quota_is_kept_by_the_least_recently_used() {
    let room = Room::new();
    let context = Context::on_host();
    let store = Store::builder().context(&context).folder(&room.0, 4096).build().unwrap();
    for name in ["a", "b", "c"] {
        store.register(name, &[1000], &[7_u8; 1000], "m", &[]).unwrap();
        store.persist(name).unwrap();
    }
    store.persist("a").unwrap();
    store.register("d", &[1000], &[8_u8; 1000], "m", &[]).unwrap();
    assert_eq!(store.persist("d").unwrap().evicted, ["b"]);
    for name in ["a", "b"] {
        store.unregister(name, "m").unwrap();
    }
    store.load("a", "n").unwrap();
    assert_eq!(store.tensor("a", "n").unwrap().read::<u8>().unwrap(), [7; 1000]);
    let missing = store.load("b", "m").unwrap_err();
    assert!(missing.to_string().starts_with("there is no `b` in the folder"), "{missing}");
    assert!(matches!(store.load("a", "m"), Err(StoreError::Books(_))), "the name is taken");
    assert!(matches!(store.persist("b"), Err(StoreError::Books(_))), "there is no such tensor");
    store.register("huge", &[5000], &[1_u8; 5000], "m", &[]).unwrap();
    assert!(matches!(store.persist("huge"), Err(StoreError::File(FileError::OverQuota { .. }))));
    let without = Store::builder().context(&context).build().unwrap();
    let refused = without.persist("a").unwrap_err().to_string();
    assert_eq!(refused, "persist: this store has no folder; give it one (`StoreBuilder::folder`)");
}

#[test]
fn a_broken_file_keeps_nothing_else_from_being_restored() {
    let room = Room::new();
    let context = Context::on_host();
    let store = room.store(&context).build().unwrap();
    store.register("a", &[4], &[1_u8; 4], "m", &[]).unwrap();
    store.register("b", &[4], &[2_u8; 4], "m", &[]).unwrap();
    store.persist_all().unwrap();
    store.dispose();
    let files = std::fs::read_dir(&room.0).unwrap().map(|file| file.unwrap().path());
    let is_a = |path: &PathBuf| TensorFile::open(path).is_ok_and(|file| file.names().next() == Some("a"));
    let broken = files.into_iter().find(is_a).unwrap();
    std::fs::write(broken, b"not a tensor").unwrap();
    let store = room.store(&context).build().unwrap();
    let restored = store.restore("m").unwrap();
    assert_eq!(restored.tensors, ["b"]);
    assert_eq!(restored.failed[0].0, "a");
    assert!(matches!(restored.failed[0].1, StoreError::File(FileError::Malformed { .. })));
}

#[test]
fn values_go_to_another_device_and_to_the_host_and_back() {
    let context = on_device();
    let store = Store::builder().context(&context).build().unwrap();
    store.register("a", &[3], &[1.0_f32, 2.0, 3.0], "m", &[]).unwrap();
    store.elementwise(("a", "m"), ("0", "m"), Some("square")).unwrap();
    let mut last = "0".to_owned();
    for (at, device) in [None, Some(device()), None, Some(device())].iter().enumerate() {
        let recovered = store.recover(device.as_ref()).unwrap();
        assert_eq!(recovered.tensors.len(), at + 2);
        assert!(recovered.tensors.values().all(|recovery| *recovery == TensorRecovery::Kept), "{recovered:?}");
        assert_eq!(store.initialize(), Ok(device.is_some()));
        let next = format!("{}", at + 1);
        store.compute(&[(&last, "m"), ("a", "m")], (&next, "m"), |of| of[0].add(&of[1])).unwrap();
        assert_eq!(store.tensor(&next, "m").unwrap().location().device, device.is_some());
        last = next;
    }
    assert_eq!(store.tensor(&last, "m").unwrap().read::<f32>().unwrap(), [5.0, 12.0, 21.0]);
}

#[test]
fn when_the_device_is_lost_files_bring_back_what_they_have_and_the_rest_is_gone_by_name() {
    let room = Room::new();
    let context = on_device();
    let store = room.store(&context).build().unwrap();
    let zeros = |name: &str, count: usize| {
        let tensor = context.zeros(&[count], DType::F32).unwrap();
        tensor.write_at(0, &[count as f32]).unwrap();
        store.register_tensor(name, &tensor, "m", &[]).unwrap();
    };
    store.register("on the host too", &[2], &[1.0_f32, 2.0], "m", &[]).unwrap();
    store.synchronize("on the host too", "m", SyncDirection::CpuToGpu).unwrap();
    zeros("kept", 4);
    store.view(("kept", "m"), ("part of kept", "m"), 0, Some(2)).unwrap();
    store.persist("kept").unwrap();
    zeros("gone", 5);
    store.view(("gone", "m"), ("part of gone", "m"), 0, Some(2)).unwrap();
    store.persist("part of gone").unwrap();
    zeros("other shape", 6);
    store.persist("other shape").unwrap();
    store.replace("other shape", "m", &context.zeros(&[7], DType::F32).unwrap()).unwrap();
    let had = store.tensor("kept", "m").unwrap();
    context.finish().unwrap();

    context.device().unwrap().destroy();
    assert_eq!(store.initialize(), Ok(false), "no usable device");
    let lost = store.elementwise(("kept", "m"), ("never", "m"), None).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Gone, "{lost}");
    let failed = store.optimise().unwrap();
    assert_eq!((failed.moved, failed.freed), (0, 0));

    let recovered = store.recover(Some(&device())).unwrap();
    let gone = || TensorRecovery::Gone { reason: "it was destroyed".to_owned() };
    let wants = [
        ("gone", gone()),
        ("kept", TensorRecovery::FromFile),
        ("on the host too", TensorRecovery::Kept),
        ("other shape", gone()),
        ("part of gone", TensorRecovery::FromFile),
        ("part of kept", TensorRecovery::FromFile),
    ];
    assert_eq!(recovered.tensors, wants.map(|(name, recovery)| (name.to_owned(), recovery)).into());

    let read = |name: &str| store.tensor(name, "m").unwrap().read::<f32>().unwrap();
    assert_eq!(read("on the host too"), [1.0, 2.0]);
    assert_eq!((read("kept"), read("part of kept")), (vec![4.0, 0.0, 0.0, 0.0], vec![4.0, 0.0]));
    assert_eq!(had.read::<f32>().unwrap(), [4.0, 0.0, 0.0, 0.0], "an old handle works again");
    assert_eq!(read("part of gone"), [5.0, 0.0], "in a memory of its own");
    assert!(is_gone(&store, "gone") && is_gone(&store, "other shape"));
    assert!(matches!(store.tensor("gone", "m"), Err(StoreError::Gone { .. })));
    assert!(store.lease("gone", "m").is_err() && store.persist("gone").is_err());
    store.elementwise(("kept", "m"), ("next", "m"), Some("sqrt")).unwrap();
    assert_eq!(read("next"), [2.0, 0.0, 0.0, 0.0], "the others still work");

    store.replace("gone", "m", &context.tensor(&[1_u8], &[1]).unwrap()).unwrap();
    assert_eq!(store.tensor("gone", "m").unwrap().read::<u8>().unwrap(), [1], "and so does a name with other values");
    store.unregister("other shape", "m").unwrap();
    store.dispose();
    drop(had);
    let memory = context.memory();
    assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0));
}

#[test]
fn without_another_device_the_store_continues_on_the_host() {
    let device = Device::choose().open().unwrap();
    let context = Context::on(&device).unwrap();
    let store = Store::builder().context(&context).build().unwrap();
    store.register("a", &[2], &[1.0_f32, 2.0], "m", &[]).unwrap();
    store.elementwise(("a", "m"), ("b", "m"), None).unwrap();
    context.finish().unwrap();
    device.destroy();
    let recovered = store.recover(None).unwrap();
    assert_eq!((recovered.current().count(), recovered.gone().count()), (1, 1));
    store.elementwise(("a", "m"), ("c", "m"), None).unwrap();
    assert_eq!(store.tensor("c", "m").unwrap().read::<f32>().unwrap(), [1.0, 2.0]);
    assert!(is_gone(&store, "b"));
}

#[test]
fn what_comes_back_from_a_file_says_whether_something_was_written_since() {
    let room = Room::new();
    let context = on_device();
    let store = room.store(&context).build().unwrap();
    let zeros = |name: &str| {
        store.register_tensor(name, &context.zeros(&[4], DType::F32).unwrap(), "m", &[]).unwrap();
        store.tensor(name, "m").unwrap()
    };
    zeros("current");
    let (older, marked) = (zeros("older"), zeros("marked"));
    zeros("shared");
    store.view(("shared", "m"), ("view", "m"), 2, Some(2)).unwrap();
    store.persist_all().unwrap();
    older.write_at(0, &[1.0_f32]).unwrap();
    older.write_at(1, &[1.0_f32]).unwrap();
    store.tensor("view", "m").unwrap().write(&[3.0_f32, 3.0]).unwrap();
    marked.was_written();
    // The name now refers to another tensor; the folder has an older one.
    zeros("replaced");
    store.persist("replaced").unwrap();
    store.replace("replaced", "m", &context.zeros(&[4], DType::F32).unwrap()).unwrap();
    // Written, and persisted again.
    let again = zeros("again");
    store.persist("again").unwrap();
    again.write_at(0, &[7.0_f32]).unwrap();
    store.persist("again").unwrap();
    // Another process put a different file there.
    zeros("others");
    store.persist("others").unwrap();
    let other = room.store(&Context::on_host()).build().unwrap();
    other.register("others", &[4], &[9.0_f32; 4], "m", &[]).unwrap();
    other.persist("others").unwrap();
    context.finish().unwrap();
    context.device().unwrap().destroy();

    let recovered = store.recover(Some(&device())).unwrap();
    let older_by = |writes_since| TensorRecovery::FromOlderFile { writes_since };
    let wants = [
        ("again", TensorRecovery::FromFile),
        ("current", TensorRecovery::FromFile),
        ("older", older_by(Some(2))),
        ("others", older_by(None)),
        ("replaced", older_by(None)),
        ("shared", older_by(Some(1))),
        ("marked", older_by(Some(1))),
        ("view", older_by(Some(1))),
    ];
    assert_eq!(recovered.tensors, wants.map(|(name, recovery)| (name.to_owned(), recovery)).into());
    assert_eq!(recovered.current().collect::<Vec<_>>(), ["again", "current"]);
    assert_eq!((recovered.older().count(), recovered.gone().count()), (6, 0));
    assert_eq!(store.tensor("again", "m").unwrap().read::<f32>().unwrap(), [7.0, 0.0, 0.0, 0.0]);
    assert_eq!(older.read::<f32>().unwrap(), [0.0; 4]);
}

#[test]
fn what_was_loaded_and_not_written_is_current_after_every_loss() {
    let room = Room::new();
    let store = room.store(&Context::on_host()).build().unwrap();
    store.register("weights", &[4], &[1.0_f32, 2.0, 3.0, 4.0], "m", &[]).unwrap();
    store.persist("weights").unwrap();
    drop(store);
    let context = on_device();
    let store = room.store(&context).priority(vramp_tensor::Priority::Memory).build().unwrap();
    store.load("weights", "m").unwrap();
    for round in 0..3 {
        store.tensor("weights", "m").unwrap().settle().unwrap();
        // Drops the host copy, so that the file has the only values.
        store.optimise().unwrap();
        assert!(!store.tensor("weights", "m").unwrap().location().host);
        context.finish().unwrap();
        context.device().unwrap().destroy();
        let recovered = store.recover(Some(&device())).unwrap();
        assert_eq!(recovered.tensors["weights"], TensorRecovery::FromFile, "{round}");
    }
    assert_eq!(store.tensor("weights", "m").unwrap().read::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_file_with_the_values_of_another_part_of_the_memory_is_not_called_current() {
    let room = Room::new();
    let context = on_device();
    let store = room.store(&context).build().unwrap();
    let memory = context.zeros(&[8], DType::F32).unwrap();
    memory.write(&[1.0_f32, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]).unwrap();
    let (first, second) = (memory.view(0, 4).unwrap(), memory.view(4, 4).unwrap());
    for name in ["replaced", "registered again", "same"] {
        store.register_tensor(name, &first, "m", &[]).unwrap();
    }
    store.persist_all().unwrap();
    store.replace("replaced", "m", &second).unwrap();
    store.unregister("registered again", "m").unwrap();
    store.register_tensor("registered again", &second, "m", &[]).unwrap();
    context.finish().unwrap();
    context.device().unwrap().destroy();
    let recovered = store.recover(Some(&device())).unwrap();
    for name in ["replaced", "registered again"] {
        assert_eq!(recovered.tensors[name], TensorRecovery::FromOlderFile { writes_since: None }, "{name}");
    }
    assert_eq!(recovered.tensors["same"], TensorRecovery::FromFile);
}

#[test]
fn a_part_whose_own_file_is_newer_than_that_of_the_whole_has_its_newest_values_after_every_loss() {
    let room = Room::new();
    let context = on_device();
    let store = room.store(&context).build().unwrap();
    store.register_tensor("whole", &context.zeros(&[6], DType::F32).unwrap(), "m", &[]).unwrap();
    for (name, start, count) in [("older", 0, 3), ("newest", 2, 2), ("inside", 3, 1), ("rest", 4, 2)] {
        store.view(("whole", "m"), (name, "m"), start, Some(count)).unwrap();
    }
    let tensor = |name: &str| store.tensor(name, "m").unwrap();
    store.persist("whole").unwrap();
    store.persist("rest").unwrap();
    tensor("older").write(&[5.0_f32; 3]).unwrap();
    store.persist("older").unwrap();
    tensor("newest").write(&[7.0_f32; 2]).unwrap();
    store.persist("newest").unwrap();
    context.finish().unwrap();
    context.device().unwrap().destroy();
    let recovered = store.recover(Some(&device())).unwrap();
    let older_by = |writes| TensorRecovery::FromOlderFile { writes_since: Some(writes) };
    let wants = [
        ("inside", TensorRecovery::FromFile),
        ("newest", TensorRecovery::FromFile),
        ("older", older_by(1)),
        ("rest", older_by(2)),
        ("whole", older_by(2)),
    ];
    assert_eq!(recovered.tensors, wants.map(|(name, recovery)| (name.to_owned(), recovery)).into());
    let values = [5.0, 5.0, 7.0, 7.0, 0.0, 0.0];
    assert_eq!(tensor("whole").read::<f32>().unwrap(), values, "and all are in one memory still");

    // Again, but now only the part has a file without a later write.
    tensor("whole").settle().unwrap();
    tensor("whole").was_written();
    store.persist("newest").unwrap();
    context.finish().unwrap();
    context.device().unwrap().destroy();
    let again = store.recover(Some(&device())).unwrap();
    assert_eq!(again.current().collect::<Vec<_>>(), ["inside", "newest"]);
    assert_eq!(tensor("whole").read::<f32>().unwrap(), values);
    let persisted = store.persist_all().unwrap();
    assert_eq!((persisted.tensors, persisted.failed.len()), (5, 0));
    let other = room.store(&Context::on_host()).build().unwrap();
    other.load("newest", "m").unwrap();
    assert_eq!(other.tensor("newest", "m").unwrap().read::<f32>().unwrap(), [7.0; 2], "persisting destroys none of it");
}
