//! Rings and pools compared with simple models, under random operations.

use std::collections::VecDeque;

use proptest::prelude::*;
use vramp_plan::{Format, Policy, Size};
use vramp_runtime::internals::{SendResult, SlotRing, StreamSlot, WakeSignal, link};
use vramp_runtime::observe::DropReason;
use vramp_runtime::{FramePool, Meta};

#[derive(Debug, Clone)]
enum Act {
    Send,
    SendEmpty,
    Take,
    TakeUpTo(i64),
    Watermark,
    Drain,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => Just(Act::Send),
        2 => Just(Act::SendEmpty),
        4 => Just(Act::Take),
        1 => (0i64..60).prop_map(Act::TakeUpTo),
        1 => Just(Act::Watermark),
        1 => Just(Act::Drain),
    ];
    prop::collection::vec(act, 0..80)
}

/// One entry per slot of the stream: its time, and its frame if it still has one.
type Model = VecDeque<(i64, Option<u64>)>;

fn frames_in(model: &Model) -> usize {
    model.iter().filter(|(_, frame)| frame.is_some()).count()
}

proptest! {
    #[test]
    fn a_ring_does_what_a_list_of_slots_does(
        policy in prop::sample::select(&Policy::ALL[..]), depth in 1usize..5, acts in acts()
    ) {
        let mut ring: SlotRing<u64> = SlotRing::new(policy, depth);
        let mut model = Model::new();
        let (mut time, mut number, mut certain) = (0i64, 0u64, None);
        for act in acts {
            match act {
                Act::Send => {
                    let room = policy != Policy::Lossless || frames_in(&model) < depth;
                    prop_assert_eq!(ring.has_room(), room);
                    let sent = ring.send(StreamSlot::Frame { pts_ns: time, frame: number });
                    if room {
                        prop_assert_eq!(sent, SendResult::Taken);
                        if frames_in(&model) == depth {
                            model.iter_mut().find(|(_, f)| f.is_some()).unwrap().1 = None;
                        }
                        model.push_back((time, Some(number)));
                        certain = Some(time);
                        number += 1;
                        time += 1;
                    } else {
                        prop_assert_eq!(sent, SendResult::Full(StreamSlot::Frame { pts_ns: time, frame: number }));
                    }
                }
                Act::SendEmpty => {
                    prop_assert_eq!(ring.send(StreamSlot::empty(time)), SendResult::Taken);
                    model.push_back((time, None));
                    certain = Some(time);
                    time += 1;
                }
                Act::Take => match ring.take() {
                    None => prop_assert!(model.is_empty()),
                    Some(StreamSlot::Frame { pts_ns, frame }) => {
                        prop_assert_eq!(model.pop_front(), Some((pts_ns, Some(frame))));
                    }
                    Some(StreamSlot::Empty { count, first_ns, last_ns, .. }) => {
                        prop_assert_eq!(model.front(), Some(&(first_ns, None)));
                        for left in (0..count).rev() {
                            let (at, frame) = model.pop_front().unwrap();
                            prop_assert_eq!(frame, None);
                            prop_assert!(left > 0 || at == last_ns);
                        }
                    }
                },
                Act::TakeUpTo(limit) => {
                    let mut newest = None;
                    while model.front().is_some_and(|(at, _)| *at <= limit) {
                        // A run of empty slots leaves as one: none of them can become a frame again.
                        let (_, frame) = model.pop_front().unwrap();
                        newest = frame.or(newest);
                        while frame.is_none() && model.front().is_some_and(|(_, f)| f.is_none()) {
                            model.pop_front();
                        }
                    }
                    prop_assert_eq!(ring.take_up_to(limit), (newest, false));
                }
                Act::Watermark => {
                    ring.watermark(time - 1, time - 1);
                    certain = certain.max(Some(time - 1));
                }
                Act::Drain => {
                    ring.drain(DropReason::Stopped);
                    model.clear();
                }
            }
            let counts = ring.counts();
            prop_assert!(counts.is_conserved(), "{counts:?}");
            prop_assert_eq!(counts.queued as usize, frames_in(&model));
            prop_assert_eq!(counts.sent, number);
            let newest = model.iter().rev().find_map(|(_, f)| *f);
            prop_assert_eq!(ring.latest().copied(), newest);
            prop_assert_eq!(ring.latest().copied(), newest, "looking does not take");
            prop_assert_eq!(ring.certain_ns(), certain);
        }
    }

    #[test]
    fn a_pool_never_lends_twice_and_never_exceeds_its_budget(
        acts in prop::collection::vec((0u8..4, 0usize..8, 1u32..4), 0..120)
    ) {
        let budget = 40 * 64;
        let pool = FramePool::new(budget);
        let meta = |side: u32| Meta::new(Format::Rgba8, Size::new(4 * side, 4).unwrap());
        let mut held: Vec<(vramp_runtime::Frame, u8)> = Vec::new();
        for (step, (act, pick, side)) in acts.into_iter().enumerate() {
            let mark = step as u8;
            match act {
                0 | 1 => match pool.lend(meta(side)) {
                    Ok(mut frame) => {
                        frame.fill().expect("just lent").fill(mark);
                        held.push((frame, mark));
                    }
                    Err(vramp_runtime::PoolError::OverBudget { needed, available, lent: frames, .. }) => {
                        let lent: u64 = held.iter().map(|(f, _)| f.bytes().len() as u64).sum();
                        prop_assert!(needed > available, "{needed} of {available}");
                        prop_assert!(lent + needed > budget || frames > 0, "{needed} with {frames} held");
                    }
                    Err(error) => prop_assert!(false, "{error}"),
                },
                2 if !held.is_empty() => {
                    held.swap_remove(pick % held.len());
                }
                3 if !held.is_empty() => {
                    let (frame, mark) = held[pick % held.len()].clone();
                    held.push((frame, mark));
                }
                _ => {}
            }
            // Every holder sees the bytes it wrote: the memory was not lent twice.
            for (frame, mark) in &held {
                prop_assert!(frame.bytes().iter().all(|b| b == mark));
            }
            let stats = pool.stats();
            prop_assert!(stats.lent_bytes + stats.pooled_bytes <= budget, "{stats:?}");
            prop_assert!(stats.peak_bytes <= budget);
        }
        held.clear();
        prop_assert_eq!(pool.stats().lent_bytes, 0);
        pool.clear();
        prop_assert_eq!(pool.stats().pooled_bytes, 0);
    }
}

fn meta(number: u64) -> Meta {
    Meta { number, ..Meta::new(Format::Gray8, Size { width: 16, height: 16 }) }
}

#[test]
fn a_closed_ring_takes_everything_and_counts_it_as_late() {
    let mut ring: SlotRing<u64> = SlotRing::new(Policy::Lossless, 1);
    assert_eq!(ring.send(StreamSlot::Frame { pts_ns: 0, frame: 0 }), SendResult::Taken);
    assert!(!ring.has_room());
    ring.close();
    for number in 1..5 {
        assert!(ring.has_room());
        assert_eq!(ring.send(StreamSlot::Frame { pts_ns: number, frame: 0 }), SendResult::Taken);
    }
    let counts = ring.counts();
    assert_eq!((counts.sent, counts.dropped[DropReason::Late as usize], counts.queued), (5, 5, 0));
    assert!(counts.is_conserved());
}

#[test]
fn a_sole_holder_edits_in_place_and_a_shared_frame_is_copied_and_counted() {
    let pool = FramePool::new(1 << 20);
    let mut frame = pool.lend(meta(1)).unwrap();
    frame.fill().unwrap().fill(7);
    let before = frame.generation();
    frame.edit(&pool).unwrap()[0] = 8;
    assert_eq!((frame.generation(), pool.stats().copies), (before, 0));
    let reader = frame.clone();
    frame.edit(&pool).unwrap()[0] = 9;
    assert_eq!((reader.bytes()[0], frame.bytes()[0], pool.stats().copies), (8, 9, 1));
    assert!(!frame.is_same(&reader));
    drop(reader);
    frame.edit(&pool).unwrap()[0] = 10;
    assert_eq!(pool.stats().copies, 1);
}

#[test]
fn what_was_returned_last_is_lent_first_and_steady_use_makes_nothing_new() {
    let pool = FramePool::new(1 << 20);
    let (a, b) = (pool.lend(meta(0)).unwrap(), pool.lend(meta(1)).unwrap());
    let address = |frame: &vramp_runtime::Frame| frame.bytes().as_ptr() as usize;
    let (at_a, at_b) = (address(&a), address(&b));
    drop(a);
    drop(b);
    let again = pool.lend(meta(2)).unwrap();
    assert_eq!(address(&again), at_b);
    drop(again);
    for number in 0..1000 {
        let frame = pool.lend(meta(number)).unwrap();
        assert!([at_a, at_b].contains(&address(&frame)));
    }
    assert_eq!(pool.stats().misses, 2);
}

#[test]
fn of_one_size_ten_stay_free_or_as_many_as_were_reserved() {
    let pool = FramePool::new(1 << 20);
    let bytes = Format::Gray8.frame_bytes(meta(0).picture().size);
    let free = |count: u64| {
        drop((0..count).map(|number| pool.lend(meta(number)).unwrap()).collect::<Vec<_>>());
        pool.stats().pooled_bytes / bytes
    };
    assert_eq!((free(9), free(30), pool.stats().trimmed), (9, 10, 20));
    pool.reserve(bytes, 25);
    assert_eq!((pool.stats().pooled_bytes / bytes, free(30)), (25, 25));
}

#[test]
fn sizes_that_are_no_longer_requested_make_room_the_longest_unused_first() {
    let pool = FramePool::new(1 << 20);
    let sized = |side: u32| Meta::new(Format::Rgba8, Size { width: side, height: side });
    pool.aim(10_000);
    for side in 10..40 {
        drop(pool.lend(sized(side)).unwrap());
        drop(pool.lend(sized(10)).unwrap());
        let stats = pool.stats();
        assert!(stats.pooled_bytes <= 10_000, "{stats:?}");
    }
    let stats = pool.stats();
    assert_eq!((stats.hits, stats.misses), (30, 30), "the size that is always requested stays: {stats:?}");
    assert_eq!(stats.peak_bytes, stats.peak_bytes.min(10_000));
}

#[test]
fn the_ledger_names_the_holder_of_each_frame() {
    let pool = FramePool::new(1 << 20);
    let kept = pool.lend(meta(3)).unwrap();
    let held = pool.held();
    assert_eq!((held.len(), held[0].bytes, &*held[0].owner), (1, 256, "unknown"));
    drop(kept);
    assert_eq!(pool.held(), []);
}

#[test]
fn a_pool_that_is_gone_leaves_its_frames_alone() {
    let pool = FramePool::new(1 << 20);
    let mut frame = pool.lend(meta(0)).unwrap();
    frame.fill().unwrap().fill(3);
    drop(pool);
    assert!(frame.bytes().iter().all(|b| *b == 3));
}

#[test]
fn frames_cross_threads_without_loss_in_order() {
    let (producer, consumer) =
        (vramp_runtime::internals::WakeSignal::new(), vramp_runtime::internals::WakeSignal::new());
    let (output, input) = vramp_runtime::internals::link(Policy::Lossless, 3, &producer, &consumer);
    let pool = FramePool::new(1 << 20);
    let far = std::time::Duration::from_secs(60);
    let total = 20_000u64;
    let sender = std::thread::spawn(move || {
        for number in 0..total {
            let mut frame = pool.lend(meta(number)).unwrap();
            frame.fill().unwrap()[..8].copy_from_slice(&number.to_le_bytes());
            let mut slot = StreamSlot::Frame { pts_ns: number.cast_signed(), frame };
            while let SendResult::Full(back) = output.send(slot) {
                assert!(producer.wait(far), "the producer was never woken");
                slot = back;
            }
        }
        output.end(total.cast_signed() - 1);
        (output, pool)
    });
    let mut next = 0u64;
    while !input.look(vramp_runtime::internals::SlotRing::is_over) {
        match input.take() {
            Some(StreamSlot::Frame { frame, .. }) => {
                assert_eq!(frame.bytes()[..8], next.to_le_bytes());
                next += 1;
            }
            Some(StreamSlot::Empty { .. }) => panic!("nothing was dropped"),
            None => {
                consumer.wait(far);
            }
        }
    }
    let (output, pool) = sender.join().unwrap();
    assert_eq!((next, output.counts().taken), (total, total));
    assert!(pool.stats().misses <= 6, "{:?}", pool.stats());
}

#[test]
fn the_latest_frame_of_a_link_is_the_very_one_that_was_sent_and_stays_there() {
    let (pool, signal) = (FramePool::new(1 << 20), WakeSignal::new());
    let (output, input) = link(Policy::Latest, 3, &signal, &signal);
    assert!(input.latest().is_none(), "nothing was sent");
    let meta = Meta::new(Format::Rgba8, Size { width: 4, height: 4 });
    let frames: Vec<_> = (0..5).map(|_| pool.lend(meta).expect("there is room")).collect();
    for (pts_ns, frame) in (0..).zip(&frames) {
        assert!(matches!(output.send(StreamSlot::Frame { pts_ns, frame: frame.clone() }), SendResult::Taken));
        assert!(input.latest().is_some_and(|latest| latest.is_same(frame)));
        assert!(input.latest().is_some_and(|latest| latest.is_same(frame)), "looking does not take");
    }
    let counts = output.counts();
    assert_eq!((counts.sent, counts.taken, counts.queued, counts.dropped.iter().sum::<u64>()), (5, 0, 3, 2));
}

#[test]
fn a_frame_that_was_lost_is_not_replaced_by_an_older_one() {
    let mut ring: SlotRing<u64> = SlotRing::new(Policy::Lossless, 4);
    for frame in 0..4_u64 {
        ring.send(StreamSlot::Frame { pts_ns: frame.cast_signed(), frame });
    }
    assert_eq!(ring.lose(DropReason::DeviceLost, |frame| *frame == 1 || *frame == 2), 2);
    assert_eq!(ring.take_up_to(0), (Some(0), false));
    assert_eq!(ring.take_up_to(2), (None, true), "both slots are empty and marked as lost");
    assert_eq!(ring.take_up_to(3), (Some(3), false), "another frame has come since");
    assert!(ring.counts().is_conserved());
    assert_eq!(ring.counts().dropped[DropReason::DeviceLost as usize], 2);
}
