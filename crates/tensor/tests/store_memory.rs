//! Memory of a store: how much it uses, when it frees it, and how much sharing saves.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![allow(clippy::float_cmp, reason = "these values are exact")]

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::sides::{both, on_device};
use vramp_gpu::Device;
use vramp_tensor::{Context, DType, Priority, Search, Store, StoreBuilder};

fn over(context: &Context) -> StoreBuilder {
    Store::builder().context(context)
}

/// A tensor of `count` values that only the device has.
fn on_the_device(store: &Store, name: &str, count: usize) {
    let zeros = store.context().unwrap().zeros(&[count], DType::F32).unwrap();
    store.register_tensor(name, &zeros, "m", &["n"]).unwrap();
}

#[test]
fn memory_is_exact_and_counts_once_what_is_shared() {
    let context = on_device();
    let store = over(&context).build().unwrap();
    on_the_device(&store, "a", 100);
    on_the_device(&store, "b", 50);
    store.view(("a", "n"), ("part", "n"), 10, Some(20)).unwrap();
    store.acquire("a", "n").unwrap();
    assert_eq!(store.gpu_memory_bytes().unwrap(), 600);
    assert_eq!(store.gpu_memory_bytes().unwrap(), context.memory().device_bytes, "all of it is the store's");
    assert_eq!(store.gpu_memory_bytes_of_model("m").unwrap(), 600);
    assert_eq!(store.gpu_memory_bytes_of_model("n").unwrap(), 400, "a and its part are one memory");
    assert_eq!(store.gpu_memory_bytes_of_model("stranger").unwrap(), 0);
    let report = store.memory().unwrap();
    assert_eq!((report.memories, report.memory.device_bytes, report.memory.host_bytes), (2, 600, 0));
    let part = report.tensors.iter().find(|one| one.name == "part").unwrap();
    assert_eq!((part.bytes, part.memory.device_bytes, part.holds, part.producer.as_str()), (80, 400, 1, "n"));
    assert_eq!(part.memory_id, report.tensors[0].memory_id);
    assert_eq!((report.saving.shared_bytes, report.saving.separate_bytes), (600, 1000));

    // A copy on the host counts as host memory only.
    store.synchronize("b", "m", vramp_tensor::SyncDirection::GpuToCpu).unwrap();
    let report = store.memory().unwrap();
    assert_eq!((report.memory.device_bytes, report.memory.host_bytes), (600, 200));
    assert_eq!(context.memory().bytes(), 800);
}

#[test]
fn sharing_takes_what_it_says_less_than_models_apart() {
    let weights: Vec<f32> = (0..25_000_u16).map(f32::from).collect();
    // Three models that share an embedding, each with its own head.
    let taken = |shared: bool| {
        let context = on_device();
        let store = over(&context).build().unwrap();
        for (at, model) in ["bert", "vit", "clip"].into_iter().enumerate() {
            on_the_device(&store, &format!("head {model}"), 40_000);
            let name = if shared { "embedding".to_owned() } else { format!("embedding {model}") };
            if !shared || at == 0 {
                store.register(&name, &[25_000], &weights, model, &["vit", "clip"]).unwrap();
                store.synchronize(&name, model, vramp_tensor::SyncDirection::CpuToGpu).unwrap();
            } else {
                store.acquire(&name, model).unwrap();
            }
        }
        (context.memory().device_bytes, store.memory().unwrap().saving, store)
    };
    let (apart_bytes, saving, apart) = taken(false);
    assert_eq!(saving.saved_bytes(), 0);
    let found = apart.opportunities(Search::OnHost).unwrap();
    let (shared_bytes, saving, _) = taken(true);
    assert_eq!((apart_bytes, shared_bytes), (780_000, 580_000), "25.6 % less, as measured on the device");
    assert_eq!(saving.saved_bytes(), apart_bytes - shared_bytes, "and that is what the store says");
    assert_eq!((found.len(), found[0].saves_bytes), (1, 200_000), "which it had promised before");
}

#[test]
fn only_values_that_were_compared_are_called_alike() {
    for (side, context) in both() {
        let store = over(&context).build().unwrap();
        store.register("a", &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0], "m", &[]).unwrap();
        store.register("b", &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0], "n", &[]).unwrap();
        store.register("other shape", &[4], &[1.0_f32, 2.0, 3.0, 4.0], "n", &[]).unwrap();
        store.register("other value", &[2, 2], &[1.0_f32, 2.0, 3.0, 5.0], "n", &[]).unwrap();
        store
            .register("other type", &[2, 2], &[0x3f80_0000_u32, 0x4000_0000, 0x4040_0000, 0x4080_0000], "o", &[])
            .unwrap();
        let found = store.opportunities(Search::OnHost).unwrap();
        assert_eq!(found.len(), 1, "{side}: {found:?}");
        assert_eq!(
            (found[0].keep.as_str(), &found[0].instead_of[..], found[0].saves_bytes),
            ("a", &["b".to_owned()][..], 16)
        );
        let advice = store.recommendations(Search::OnHost).unwrap();
        assert!(advice[0].contains("share `a` with n and save 16 bytes"), "{advice:?}");

        store.tensor("b", "n").unwrap().write_at(0, &[-1.0_f32]).unwrap();
        assert!(store.opportunities(Search::OnHost).unwrap().is_empty(), "{side}: what was alike is not any more");
    }
    let context = on_device();
    let store = over(&context).build().unwrap();
    on_the_device(&store, "a", 4);
    let zeros = context.zeros(&[4], DType::F32).unwrap();
    store.register_tensor("b", &zeros, "other", &[]).unwrap();
    let reads = context.transfers().host_reads;
    assert!(store.opportunities(Search::OnHost).unwrap().is_empty());
    assert_eq!(context.transfers().host_reads, reads, "nothing is read for it");
    assert_eq!(store.opportunities(Search::Everywhere).unwrap()[0].saves_bytes, 16);
}

/// A store with a small, a large, a pinned and a leased tensor on the device, all idle, and one used just now.
fn idle_store(priority: Priority) -> (Context, Store) {
    let context = on_device();
    let time = Arc::new(Mutex::new(Duration::ZERO));
    let clock = Arc::clone(&time);
    let store = over(&context).priority(priority).large_bytes(4000).idle_after(Duration::from_secs(5));
    let store = store.clock(move || *clock.lock().unwrap()).build().unwrap();
    for (name, count) in [("large", 1000), ("leased", 1000), ("pinned", 1000), ("recent", 1000), ("small", 999)] {
        on_the_device(&store, name, count);
    }
    store.tensor("large", "m").unwrap().write_at(3, &[3.0_f32]).unwrap();
    store.pin("pinned").unwrap();
    *time.lock().unwrap() = Duration::from_secs(5);
    drop(store.tensor("recent", "n").unwrap());
    (context, store)
}

fn on_device_names(store: &Store) -> Vec<String> {
    let there = store.memory().unwrap().tensors.into_iter().filter(|one| one.memory.device_bytes > 0);
    there.map(|one| one.name).collect()
}

#[test]
fn for_speed_nothing_leaves_the_device() {
    let (_, store) = idle_store(Priority::Speed);
    let optimised = store.optimise().unwrap();
    assert_eq!((optimised.moved, optimised.kept, optimised.kept_bytes), (0, 5, 19_996));
    assert_eq!(store.gpu_memory_bytes().unwrap(), 19_996);
}

#[test]
fn in_balance_what_is_idle_and_large_goes_to_the_host_and_comes_back_when_it_is_used() {
    let (context, store) = idle_store(Priority::Balanced);
    let lease = store.lease("leased", "m").unwrap();
    let optimised = store.optimise().unwrap();
    assert_eq!((optimised.moved, optimised.moved_bytes), (1, 4000));
    assert_eq!((optimised.kept, optimised.kept_bytes, optimised.exempt), (4, 15_996, 2));
    assert_eq!(on_device_names(&store), ["leased", "pinned", "recent", "small"]);
    assert_eq!(store.gpu_memory_bytes().unwrap(), context.memory().device_bytes);
    drop(lease);

    store.elementwise(("large", "m"), ("used", "m"), Some("square")).unwrap();
    assert!(on_device_names(&store).contains(&"large".to_owned()), "it is back");
    assert_eq!(store.tensor("used", "m").unwrap().read::<f32>().unwrap()[..5], [0.0, 0.0, 0.0, 9.0, 0.0]);
}

#[test]
fn for_memory_all_that_is_idle_goes_and_spare_copies_and_free_memory_too() {
    let (context, store) = idle_store(Priority::Memory);
    let lease = store.lease("leased", "m").unwrap();
    store.synchronize("recent", "m", vramp_tensor::SyncDirection::GpuToCpu).unwrap();
    drop(context.zeros(&[5000], DType::F32).unwrap());
    let optimised = store.optimise().unwrap();
    assert_eq!((optimised.moved, optimised.moved_bytes), (2, 7996));
    assert_eq!(on_device_names(&store), ["leased", "pinned", "recent"]);
    assert_eq!(optimised.spare_bytes, 4000, "the copy of `recent`");
    assert_eq!(context.memory().host_bytes, 7996, "what was moved, and nothing else");
    assert!(optimised.trimmed_bytes >= 20_000, "{optimised}");
    let memory = context.memory();
    assert_eq!((memory.host_pooled_bytes, memory.device_pooled_bytes), (0, 0));
    assert_eq!(store.tensor("large", "m").unwrap().read::<f32>().unwrap()[3], 3.0);
    drop(lease);
}

#[test]
fn a_view_that_is_leased_or_pinned_keeps_the_memory_where_it_is() {
    let (_, store) = idle_store(Priority::Memory);
    store.view(("large", "m"), ("part of large", "m"), 0, Some(1)).unwrap();
    store.view(("small", "m"), ("part of small", "m"), 0, Some(1)).unwrap();
    store.pin("part of small").unwrap();
    let lease = store.lease("part of large", "m").unwrap();
    store.optimise().unwrap();
    assert!(["large", "small"].iter().all(|name| on_device_names(&store).contains(&(*name).to_owned())));
    drop(lease);
}

#[test]
fn over_its_budget_the_least_recently_used_goes_whatever_the_priority() {
    let context = on_device();
    let time = Arc::new(Mutex::new(Duration::ZERO));
    let clock = Arc::clone(&time);
    let store = over(&context).priority(Priority::Speed).budget_bytes(1000);
    let store = store.clock(move || *clock.lock().unwrap()).build().unwrap();
    for (at, name) in ["c", "a", "b"].into_iter().enumerate() {
        *time.lock().unwrap() = Duration::from_secs(at as u64);
        on_the_device(&store, name, 100);
    }
    let optimised = store.optimise().unwrap();
    assert_eq!((optimised.moved_bytes, on_device_names(&store)), (400, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(store.optimise().unwrap().moved, 0, "it fits");
}

#[test]
fn when_the_device_is_full_the_least_recently_used_tensor_makes_room() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let context = Context::on(&device).unwrap();
    let store = over(&context).build().unwrap();
    for at in 0..3 {
        on_the_device(&store, &format!("{at}"), 80_000);
    }
    store.tensor("0", "m").unwrap().write_at(7, &[-7.0_f32]).unwrap();
    store.elementwise(("2", "m"), ("abs", "m"), Some("abs")).unwrap();
    assert!(context.memory().device_bytes <= 1 << 20);
    assert!(!on_device_names(&store).contains(&"1".to_owned()), "{:?}", on_device_names(&store));
    assert_eq!(store.tensor("0", "m").unwrap().read::<f32>().unwrap()[7], -7.0);
    // Leased tensors do not make room; the error has the numbers.
    let leases: Vec<_> = store.names().iter().map(|name| store.lease(name, "m").unwrap()).collect();
    let full = store.compute(&[("2", "m")], ("big", "m"), |of| of[0].broadcast_to(&[3, 80_000])).unwrap_err();
    assert_eq!(full.kind(), vramp_tensor::ErrorKind::OutOfMemory, "{full}");
    drop(leases);
}

#[test]
fn in_the_background_it_is_done_from_time_to_time_and_ends_with_the_store() {
    let (sender, receiver) = mpsc::channel();
    let store = over(&Context::on_host()).optimise_every(Duration::from_millis(1)).debug(move |words| {
        if words.starts_with("optimised") {
            let _ = sender.send(());
        }
    });
    let store = store.build().unwrap();
    for _ in 0..3 {
        receiver.recv_timeout(Duration::from_secs(30)).expect("it optimises in the background");
    }
    // The thread owns the sender, so the channel closes when the thread has ended and the store is dropped.
    drop(store);
    for _ in 0..10_000 {
        if receiver.recv_timeout(Duration::from_secs(30)).is_err() {
            break;
        }
    }
    assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected), "the thread kept the store alive");
}

#[test]
fn a_long_period_does_not_keep_a_store_from_ending() {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let store = over(&Context::on_host()).optimise_every(Duration::from_secs(1_000_000)).build().unwrap();
        store.register("a", &[1], &[1_u8], "m", &[]).unwrap();
        store.dispose();
        drop(over(&Context::on_host()).optimise_every(Duration::from_secs(1_000_000)).build().unwrap());
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("the thread is woken, and its period is not waited for");
}
