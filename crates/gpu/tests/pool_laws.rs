//! The promises of a pool, under random requests in any order. No device is involved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use vramp_gpu::{LendError, Pool, PoolRules, Pooled, ResourceState, SIZE_CLASS_BYTES, SubmissionProgress};

/// A resource that knows whether it was dropped.
struct Thing {
    size: u64,
    gone: Arc<AtomicBool>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

#[allow(clippy::unnecessary_wraps, reason = "makers may fail, this one does not")]
fn thing(size: u64) -> Result<Thing, &'static str> {
    Ok(Thing { size, gone: Arc::default() })
}

fn owner() -> Arc<str> {
    "tester".into()
}

fn pool(budget_bytes: u64) -> (Pool<Thing>, SubmissionProgress) {
    let progress = SubmissionProgress::default();
    (Pool::new(PoolRules::budget(budget_bytes), progress.clone()), progress)
}

#[derive(Debug, Clone)]
enum Step {
    Lend(u64),
    Share(usize),
    Drop(usize),
    Use(usize),
    Finish,
    Reclaim,
    Trim(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..2000).prop_map(Step::Lend),
        2 => any::<usize>().prop_map(Step::Share),
        4 => any::<usize>().prop_map(Step::Drop),
        2 => any::<usize>().prop_map(Step::Use),
        1 => Just(Step::Finish),
        1 => Just(Step::Reclaim),
        1 => (0_u64..4096).prop_map(Step::Trim),
    ]
}

proptest! {
    #[test]
    fn any_run_keeps_the_promises(
        budget in 512_u64..16_384,
        keep in 0_u64..16_384,
        keep_each in 1_usize..5,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let progress = SubmissionProgress::default();
        let rules = PoolRules { budget_bytes: budget, keep_bytes: keep, keep_each };
        let pool = Pool::new(rules, progress.clone());
        let mut held: Vec<Pooled<Thing>> = Vec::new();
        let mut used_until: BTreeMap<u64, u64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for step in steps {
            let at = |at: usize| if held.is_empty() { None } else { Some(at % held.len()) };
            match step {
                Step::Lend(bytes) => match pool.lend(bytes, &owner(), thing) {
                    Ok(lent) => {
                        prop_assert!(!held.iter().any(|other| other.tag().id == lent.tag().id), "lent twice");
                        let until = used_until.remove(&lent.tag().id).unwrap_or(0);
                        prop_assert!(progress.has_finished(until), "lent while submission {} uses it", until);
                        prop_assert!(seen.insert(lent.tag()), "a tag came twice: {}", lent.tag());
                        prop_assert!(lent.size >= bytes && lent.size % SIZE_CLASS_BYTES == 0);
                        prop_assert!(lent.is_sole());
                        held.push(lent);
                    }
                    Err(LendError::OutOfBudget { needed_bytes, available_bytes, budget_bytes, .. }) => {
                        prop_assert!(needed_bytes > available_bytes && budget_bytes == budget);
                    }
                    Err(other) => prop_assert!(false, "{other}"),
                },
                Step::Share(n) => if let Some(n) = at(n) { held.push(held[n].clone()) },
                Step::Drop(n) => if let Some(n) = at(n) { drop(held.swap_remove(n)) },
                Step::Use(n) => if let Some(n) = at(n) {
                    let submission = progress.submit();
                    held[n].retire(submission);
                    used_until.insert(held[n].tag().id, submission);
                },
                Step::Finish => progress.finish(progress.submitted()),
                Step::Reclaim => pool.reclaim(u64::MAX),
                Step::Trim(bytes) => {
                    pool.trim_to(bytes);
                    prop_assert!(pool.statistics().pooled_bytes <= bytes);
                }
            }
            for lent in &held {
                prop_assert!(!lent.gone.load(Ordering::Relaxed), "{} was dropped while it is held", lent.tag());
            }
            let (now, rows) = (pool.statistics(), pool.ledger());
            prop_assert!(now.held_bytes() <= budget && now.peak_bytes <= budget && now.pooled_bytes <= keep);
            let sum = |place: fn(&ResourceState) -> bool| {
                let those = rows.iter().filter(move |row| place(&row.place));
                (those.clone().count(), those.map(|row| row.bytes).sum::<u64>())
            };
            prop_assert_eq!(sum(|place| *place == ResourceState::Lent), (now.lent, now.lent_bytes));
            prop_assert_eq!(sum(|place| *place == ResourceState::Pooled), (now.pooled, now.pooled_bytes));
            prop_assert_eq!(
                sum(|place| matches!(place, ResourceState::Waiting { .. })), (now.waiting, now.waiting_bytes)
            );
            let handles: usize = rows.iter().filter(|row| row.place == ResourceState::Lent).map(|row| row.holders).sum();
            prop_assert_eq!(handles, held.len());
            prop_assert_eq!(now.misses, now.trimmed + rows.len() as u64, "created = dropped + existing");
        }
        held.clear();
        progress.finish(progress.submitted());
        pool.trim_to(0);
        prop_assert_eq!(pool.ledger(), vec![]);
        prop_assert_eq!(pool.statistics().held_bytes(), 0);
    }

    #[test]
    fn what_returned_last_is_lent_first(drops in prop::collection::vec(any::<usize>(), 1..12)) {
        let (pool, _) = pool(1 << 20);
        let mut held: Vec<_> = (0..drops.len()).map(|_| pool.lend(1000, &owner(), thing).unwrap()).collect();
        let mut returned = Vec::new();
        for at in drops {
            let lent = held.swap_remove(at % held.len());
            returned.push(lent.tag().id);
        }
        let mut lent_again = Vec::new();
        while let Some(id) = returned.pop() {
            let lent = pool.lend(1000, &owner(), thing).unwrap();
            prop_assert_eq!(lent.tag().id, id);
            lent_again.push(lent);
        }
    }
}

#[test]
fn a_resource_lent_again_has_a_new_generation() {
    let (pool, _) = pool(4096);
    let first = pool.lend(100, &owner(), thing).unwrap().tag();
    let second = pool.lend(200, &owner(), thing).unwrap().tag();
    assert_eq!((first.id, first.generation, second.id, second.generation), (1, 1, 1, 2));
    assert_eq!(second.to_string(), "1#2");
    let statistics = pool.statistics();
    assert_eq!((statistics.hits, statistics.misses), (1, 1));
}

#[test]
fn a_shared_handle_returns_with_the_last_holder() {
    let (pool, _) = pool(4096);
    let one = pool.lend(100, &owner(), thing).unwrap();
    let two = one.clone();
    assert!(!one.is_sole());
    drop(one);
    assert_eq!((pool.statistics().lent, two.is_sole()), (1, true));
    drop(two);
    assert_eq!((pool.statistics().lent, pool.statistics().pooled), (0, 1));
}

#[test]
fn what_the_device_uses_waits_for_it() {
    let (pool, progress) = pool(4096);
    let lent = pool.lend(100, &owner(), thing).unwrap();
    let submission = progress.submit();
    lent.retire(submission);
    let id = lent.tag().id;
    drop(lent);
    assert_eq!(pool.ledger()[0].place, ResourceState::Waiting { submission });
    let other = pool.lend(100, &owner(), thing).unwrap();
    assert_ne!(other.tag().id, id);
    progress.finish(submission);
    assert_eq!(pool.lend(100, &owner(), thing).unwrap().tag().id, id);
}

#[test]
fn memory_returns_when_its_frame_is_due_not_when_the_device_happens_to_be_done() {
    let (pool, progress) = pool(1 << 20);
    let lend_used = || {
        let lent = pool.lend(100, &owner(), thing).unwrap();
        lent.retire(progress.submit());
        lent
    };
    let (first, second) = (lend_used(), lend_used());
    drop((first, second));
    progress.finish(2);
    pool.reclaim(1);
    assert_eq!((pool.statistics().pooled, pool.statistics().waiting), (1, 1));
}

#[test]
fn without_room_the_error_says_what_is_needed_and_what_there_is() {
    let (pool, _) = pool(1024);
    let held = pool.lend(600, &owner(), thing).unwrap();
    let error = pool.lend(300, &"blur".into(), thing).unwrap_err();
    assert_eq!(
        error.to_string(),
        "blur needs 512 bytes of memory, but 256 are available: 768 of 1024 are held; raise the budget, or hold fewer \
         frames"
    );
    drop(held);
    assert!(pool.lend(300, &owner(), thing).is_ok(), "free resources were dropped for it");
    assert_eq!(pool.statistics().trimmed, 1);
    let error = pool.lend(0, &"blur".into(), thing).unwrap_err();
    assert_eq!(error.to_string(), "blur requested 0 bytes; request at least 1");
}

#[test]
fn a_maker_that_fails_leaves_nothing_behind() {
    let (pool, _) = pool(1024);
    let error = pool.lend(1000, &owner(), |_| Err("no memory")).unwrap_err();
    assert_eq!(error.to_string(), "tester needs 1024 bytes of memory: no memory");
    assert_eq!(pool.statistics().held_bytes(), 0);
    assert!(pool.lend(1000, &owner(), thing).is_ok());
}

#[test]
fn the_longest_free_is_given_up_first() {
    let progress = SubmissionProgress::default();
    let pool = Pool::new(PoolRules { budget_bytes: 1 << 20, keep_bytes: 1024, keep_each: 10 }, progress);
    let sizes = [256, 512, 768].map(|size| pool.lend(size, &owner(), thing).unwrap());
    let ids = sizes.each_ref().map(|lent| lent.tag().id);
    for lent in sizes {
        drop(lent);
    }
    assert_eq!(pool.living(), [ids[2]], "256 + 512 + 768 are too much; the two that returned first are gone");
    assert_eq!(pool.trimmed(), 2);
}

#[test]
fn no_more_of_one_size_stay_than_the_rules_say() {
    let pool = Pool::new(PoolRules { keep_each: 2, ..PoolRules::budget(1 << 20) }, SubmissionProgress::default());
    let held: Vec<_> = (0..5).map(|_| pool.lend(256, &owner(), thing).unwrap()).collect();
    drop(held);
    assert_eq!(pool.statistics().pooled, 2);
}

#[test]
fn beyond_its_aim_what_lies_free_makes_room_and_what_is_allowed_comes_on_top() {
    let (pool, _) = pool(1 << 20);
    pool.aim(1024);
    for round in 1..=20 {
        drop(pool.lend(256 * (1 + round % 3), &owner(), thing).unwrap());
        assert!(pool.statistics().held_bytes() <= 1024);
    }
    assert!(pool.trimmed() > 0);
    let held: Vec<_> = (0..8).map(|_| pool.lend(256, &owner(), thing).unwrap()).collect();
    assert_eq!(pool.statistics().held_bytes(), 2048, "an aim refuses no request");
    drop(held);
    pool.restart_peak();
    pool.allow(4096);
    drop(pool.lend(1024, &owner(), thing).unwrap());
    assert_eq!((pool.statistics().pooled, pool.statistics().peak_bytes), (9, 3072));
}

#[test]
fn a_note_is_of_one_lending() {
    let (pool, _) = pool(4096);
    let lent = pool.lend(300, &owner(), thing).unwrap();
    lent.note(7);
    assert_eq!(pool.leaks()[0].note, 7);
    drop(lent);
    let _again = pool.lend(300, &owner(), thing).unwrap();
    assert_eq!(pool.leaks()[0].note, 0);
}

#[test]
fn what_is_forgotten_is_named_with_its_owner_and_frame() {
    let (pool, _) = pool(4096);
    pool.frame(7);
    let forgotten = pool.lend(300, &"compositor".into(), thing).unwrap();
    let other = forgotten.clone();
    drop(pool.lend(300, &"blur".into(), thing).unwrap());
    let leaks: Vec<String> = pool.leaks().iter().map(ToString::to_string).collect();
    assert_eq!(leaks, ["1#1 512 bytes: held by compositor since frame 7, 2 handles"]);
    drop((forgotten, other));
    assert_eq!(pool.leaks(), []);
}

#[test]
fn a_handle_outlives_its_pool() {
    let (pool, _) = pool(4096);
    let lent = pool.lend(300, &owner(), thing).unwrap();
    let gone = Arc::clone(&lent.gone);
    drop(pool);
    assert!(!gone.load(Ordering::Relaxed));
    drop(lent);
    assert!(gone.load(Ordering::Relaxed));
}

#[test]
fn threads_that_lend_and_share_never_meet_in_one_resource() {
    let (pool, _) = pool(64 << 10);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2000 {
                    let Ok(lent) = pool
                        .lend(200 + round % 700, &owner(), |size| Ok::<_, ()>(Thing { size, gone: Arc::default() }))
                    else {
                        continue;
                    };
                    // `gone` is used as a claim here: no other thread may have claimed it at the same time.
                    assert!(!lent.gone.swap(true, Ordering::Relaxed), "two threads hold {}", lent.tag());
                    let shared = lent.clone();
                    lent.gone.store(false, Ordering::Relaxed);
                    drop(lent);
                    drop(shared);
                }
            });
        }
    });
    let statistics = pool.statistics();
    assert_eq!((statistics.lent, statistics.waiting), (0, 0));
    assert_eq!(statistics.hits + statistics.misses, 8000);
}
