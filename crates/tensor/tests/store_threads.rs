//! Many threads on one store: nothing is lost, nothing is left over, and no thread waits for ever.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![allow(clippy::float_cmp, reason = "these values are exact")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::sides::{device, on_device};
use vramp_tensor::{Context, LedgerError, Priority, Search, Store, StoreError, SyncDirection};

const THREADS: u64 = 8;

/// Rounds per thread, and the time limit. The long run stops after a minute.
fn rounds() -> (u64, Duration) {
    if std::env::var_os("VRAMP_LONG").is_some() {
        (u64::MAX, Duration::from_secs(60))
    } else {
        (300, Duration::from_secs(20))
    }
}

/// Runs a closure that must return within a limit. This is how deadlocks are detected.
fn within(limit: Duration, act: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        act();
        let _ = sender.send(());
    });
    match receiver.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("after {} s threads still wait for one another", limit.as_secs())
        }
        _ => thread.join().unwrap(),
    }
}

fn value(of: &Store, name: &str, model: &str) -> Result<f32, StoreError> {
    let tensor = of.tensor(name, model)?;
    Ok(tensor.read::<f32>().map_err(StoreError::from)?[0])
}

/// One round of a thread: its own tensors, some shared ones, and the memory of the whole store.
fn round(store: &Store, thread: u64, round: u64) -> Result<(), StoreError> {
    let model = format!("model {thread}");
    let other = format!("model {}", (thread + 1) % THREADS);
    let name = |what: &str| format!("{what} {thread}");
    let number = (thread * 1000 + round % 1000) as f32;
    let count = 64 + (round % 5) as usize * 300;
    store.register(&name("a"), &[count], &vec![number; count], &model, &[&other])?;
    store.compute(&[(&name("a"), &model), ("shared", &model)], (&name("b"), &model), |of| {
        of[0].add(of[1].slice(0, 0, 1))
    })?;
    store.share(&name("b"), &model, &[&other])?;
    let lease = store.lease(&name("b"), &model)?;
    lease.settle().map_err(StoreError::from)?;
    let on_device = lease.location().device;
    store.view((&name("a"), &model), (&name("v"), &model), 3, Some(4))?;
    match (thread + round) % 4 {
        0 => drop(store.optimise()?),
        1 => drop(store.synchronize(&name("b"), &model, SyncDirection::Both)?),
        2 => drop(store.memory()?),
        _ => drop(store.opportunities(Search::OnHost)?),
    }
    // The tensor of the neighbour may or may not exist; if it does, it has one of the neighbour's values.
    let neighbour = (thread + THREADS - 1) % THREADS;
    match value(store, &format!("a {neighbour}"), &model) {
        Ok(read) => assert_eq!((read / 1000.0).floor() as u64, neighbour, "{read}"),
        Err(StoreError::Books(LedgerError::Unknown { .. })) => {}
        Err(other) => return Err(other),
    }
    store.acquire("shared", &model)?;
    assert_eq!(lease.read::<f32>().map_err(StoreError::from)?[0], number + 0.5);
    assert_eq!(lease.location().device, on_device, "what is leased stays where it is");
    drop(lease);
    store.tensor(&name("v"), &model)?.write(&[number + 1.0; 4]).map_err(StoreError::from)?;
    let seen = store.tensor(&name("a"), &model)?.read::<f32>().map_err(StoreError::from)?;
    assert_eq!(seen[2..8], [[number; 1].as_slice(), &[number + 1.0; 4], &[number; 1]].concat());
    store.release("shared", &model)?;
    store.release(&name("a"), &model)?;
    store.release(&name("v"), &model)?;
    store.unregister(&name("b"), &model)
}

fn hammer(context: &Context, priority: Priority) -> Store {
    let store = Store::builder().context(context).priority(priority).idle_after(Duration::ZERO).large_bytes(1000);
    let store = store.optimise_every(Duration::from_millis(3)).build().unwrap();
    let models: Vec<String> = (0..THREADS).map(|thread| format!("model {thread}")).collect();
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    store.register("shared", &[1000], &[0.5_f32; 1000], "owner", &models).unwrap();
    let (rounds, limit) = rounds();
    let (begin, done) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, done) = (store.clone(), &done);
            scope.spawn(move || {
                for at in 0..rounds {
                    if at > 0 && begin.elapsed() > limit {
                        break;
                    }
                    round(&store, thread, at).unwrap_or_else(|error| panic!("thread {thread}, round {at}: {error}"));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(done.load(Ordering::Relaxed) >= THREADS);
    assert_eq!(store.names(), ["shared"], "everything else was given back");
    let report = store.memory().unwrap();
    assert_eq!((report.tensors[0].holds, report.tensors[0].leases), (1, 0), "counts are balanced");
    assert_eq!(store.tensor("shared", "owner").unwrap().read::<f32>().unwrap(), [0.5; 1000]);
    store
}

fn nothing_is_left(context: &Context) {
    let memory = context.memory();
    assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0));
}

#[test]
fn eight_threads_on_the_device_leave_nothing_behind_whatever_is_moved_meanwhile() {
    within(Duration::from_secs(180), || {
        let device = device();
        let context = Context::on(&device).unwrap();
        hammer(&context, Priority::Memory).dispose();
        context.finish().unwrap();
        nothing_is_left(&context);
        assert_eq!(device.pool().leaks(), []);
        context.trim();
        assert_eq!(device.pool().statistics().held_bytes(), 0);
        assert_eq!(context.host_pool().lent_bytes, 0);
    });
}

#[test]
fn eight_threads_on_the_host_likewise() {
    within(Duration::from_secs(180), || {
        let context = Context::on_host();
        hammer(&context, Priority::Balanced).dispose();
        nothing_is_left(&context);
        assert_eq!(context.host_pool().lent_bytes, 0);
    });
}

#[test]
fn a_store_that_is_disposed_of_amid_work_ends_it_with_one_error_and_keeps_nothing() {
    within(Duration::from_secs(120), || {
        let context = on_device();
        for _ in 0..10 {
            let store = Store::builder().context(&context).optimise_every(Duration::from_millis(1)).build().unwrap();
            std::thread::scope(|scope| {
                for thread in 0..4_u64 {
                    let store = store.clone();
                    scope.spawn(move || {
                        let model = format!("model {thread}");
                        let error = (0_u64..).find_map(|at| {
                            let name = format!("{thread} {at}");
                            let made = store.register(&name, &[100], &[1.0_f32; 100], &model, &[]);
                            let made = made
                                .and_then(|()| store.elementwise((&name, &model), (&format!("r{name}"), &model), None));
                            made.and_then(|_| store.release_model(&model)).err()
                        });
                        assert_eq!(error, Some(StoreError::Disposed));
                    });
                }
                while store.names().is_empty() {
                    std::thread::yield_now();
                }
                store.dispose();
            });
            nothing_is_left(&context);
        }
    });
}
