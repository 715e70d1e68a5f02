//! Device times are between submit and notice, name what was recorded, grow with the work, and cost no submit, pass or
//! memory.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::room::{PATIENCE, add, lend, open, run, slow};
use vramp_gpu::{Device, PartTime, Player, Recording, StampPlaces, Timed, Timing};

/// The report of one submission.
#[derive(Debug, Clone)]
struct TimeReport {
    submission: u64,
    submitted_ns: u64,
    begin_ns: u64,
    end_ns: u64,
    noticed_ns: u64,
    parts: Vec<PartTime>,
}

fn take(player: &mut Player) -> Vec<TimeReport> {
    let mut reports = Vec::new();
    player.tell_times(&mut |time| {
        reports.push(TimeReport {
            submission: time.submission,
            submitted_ns: time.submitted_ns,
            begin_ns: time.begin_ns,
            end_ns: time.end_ns,
            noticed_ns: time.noticed_ns,
            parts: time.parts.to_vec(),
        });
    });
    reports
}

/// Plays this many recordings of an upload, two dispatches and a download, and returns their reports.
fn play(device: &Device, player: &mut Player, frames: u64) -> Vec<TimeReport> {
    let (add, slow) = (device.prepare(&add()).unwrap(), device.prepare(&slow()).unwrap());
    let (mut recording, mut reports) = (Recording::new(), Vec::new());
    for _ in 0..frames {
        let (one, two, three) = (lend(device, 16_384), lend(device, 16_384), lend(device, 16_384));
        recording.upload(&one, vec![1; 16_384]).unwrap();
        run(&mut recording, device, &add, &one, &two, 1);
        run(&mut recording, device, &slow, &two, &three, 2_000);
        recording.download(&three).unwrap();
        player.play(&mut recording).unwrap();
        drop(player.readbacks().wait(PATIENCE).unwrap().expect("a download is pending"));
        reports.extend(take(player));
    }
    assert!(player.wait(PATIENCE).unwrap());
    reports.extend(take(player));
    reports
}

#[track_caller]
fn is_between_submit_and_notice(report: &TimeReport) {
    let TimeReport { submitted_ns, begin_ns, end_ns, noticed_ns, parts, .. } = report;
    assert!(submitted_ns <= begin_ns && begin_ns <= end_ns && end_ns <= noticed_ns, "{report:?}");
    for part in parts {
        assert!(*begin_ns <= part.begin_ns && part.begin_ns <= part.end_ns && part.end_ns <= *end_ns, "{report:?}");
    }
    assert!(parts.is_sorted_by(|one, next| one.end_ns <= next.begin_ns), "{report:?}");
}

/// The device at hand with its own and with coarser timestamps, and the expected kind of timing.
fn devices() -> Vec<(Device, StampPlaces)> {
    let places = [StampPlaces::Acts, StampPlaces::Passes, StampPlaces::Nowhere];
    places.map(|places| (open(&Device::choose().stamps(places)), places)).into()
}

/// The expected timing of a device with timestamps in these places.
fn expected(device: &Device, places: StampPlaces) -> Timing {
    match places {
        StampPlaces::Nowhere => Timing::Fenced,
        _ if device.adapter().has_timestamps => Timing::Timestamps,
        _ => Timing::Fenced,
    }
}

#[test]
fn every_submission_is_reported_once_in_order_between_submit_and_notice() {
    for (device, places) in devices() {
        let mut player = Player::on(&device).timed(Timed::Each).build().unwrap();
        assert_eq!(player.timing(), Some(expected(&device, places)));
        let reports = play(&device, &mut player, 20);
        assert_eq!(reports.len(), 20, "{places:?}: {reports:?}");
        assert!(reports.is_sorted_by(|one, next| one.submission < next.submission));
        reports.iter().for_each(is_between_submit_and_notice);
        assert!(take(&mut player).is_empty(), "nothing is reported twice");
    }
}

#[test]
fn stamps_name_every_dispatch_and_the_longer_one_takes_longer() {
    for (device, places) in devices() {
        let mut player = Player::on(&device).timed(Timed::Each).build().unwrap();
        let reports = play(&device, &mut player, 10);
        let (mut short_ns, mut long_ns) = (u64::MAX, u64::MAX);
        for one in &reports {
            let of = |act: usize| one.parts.iter().find(|part| part.act == act && part.dispatches == 1);
            match (player.timing(), of(1), of(2)) {
                (Some(Timing::Timestamps), Some(short), Some(long)) => {
                    short_ns = short_ns.min(short.end_ns - short.begin_ns);
                    long_ns = long_ns.min(long.end_ns - long.begin_ns);
                }
                (Some(Timing::Fenced), None, None) => assert!(one.parts.is_empty(), "{one:?}"),
                other => panic!("{places:?}: {other:?} in {one:?}"),
            }
        }
        // 2,000 rounds per pixel against one. A software driver may be interrupted in any of them, but not in all ten.
        if player.timing() == Some(Timing::Timestamps) {
            assert!(long_ns > short_ns, "{places:?}: {reports:?}");
        }
    }
}

#[test]
fn a_sampled_pass_that_is_not_split_is_reported_as_a_whole() {
    let device = open(&Device::choose().stamps(StampPlaces::Passes));
    let mut player = Player::on(&device).timed(Timed::Sampled).build().unwrap();
    let reports = play(&device, &mut player, 18);
    let dispatches: Vec<usize> = reports.iter().flat_map(|one| &one.parts).map(|part| part.dispatches).collect();
    if player.timing() == Some(Timing::Timestamps) {
        assert_eq!(dispatches, [2, 2], "the second and the last of eighteen, one pass of two dispatches each");
    } else {
        assert_eq!((reports.len(), dispatches.len()), (18, 0));
    }
}

#[test]
fn timing_costs_no_submit_and_no_memory_once_the_player_is_there_and_no_pass_unless_each_is_timed_around_passes() {
    for (device, places) in devices() {
        for timed in [Timed::Never, Timed::Sampled, Timed::Each] {
            let mut player = Player::on(&device).timed(timed).build().unwrap();
            play(&device, &mut player, 4);
            let before = device.counters();
            let reports = play(&device, &mut player, 32);
            let after = device.counters();
            let made = (after.gpu_allocs - before.gpu_allocs, after.bind_groups - before.bind_groups);
            let (submits, passes) = (after.submits - before.submits, after.passes - before.passes);
            assert_eq!((submits, made), (32, (0, 0)), "{places:?} {timed:?}");
            let split =
                (timed, places, player.timing()) == (Timed::Each, StampPlaces::Passes, Some(Timing::Timestamps));
            assert!(passes == if split { 64 } else { 32 } || places == StampPlaces::Acts, "{places:?} {timed:?}");
            assert!(timed == Timed::Each || passes == 32, "an ordinary run has one pass per run of dispatches");
            let expected = match (timed, player.timing()) {
                (Timed::Never, timing) => {
                    assert_eq!(timing, None);
                    0
                }
                (Timed::Sampled, Some(Timing::Timestamps)) => 2,
                _ => 32,
            };
            assert_eq!(reports.len(), expected, "{places:?} {timed:?}");
        }
    }
}
