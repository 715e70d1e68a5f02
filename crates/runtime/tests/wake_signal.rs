//! Wake signals on real threads: a notification is noticed once, at once, and never lost.

use std::time::Duration;

use vramp_runtime::internals::WakeSignal;

#[test]
fn a_notification_before_the_wait_ends_it() {
    let signal = WakeSignal::new();
    signal.notify();
    assert!(signal.wait(Duration::ZERO));
    assert!(!signal.wait(Duration::ZERO));
}

#[test]
fn no_notification_is_lost_between_two_threads() {
    let (there, back) = (WakeSignal::new(), WakeSignal::new());
    let echo = std::thread::spawn({
        let (there, back) = (there.clone(), back.clone());
        move || {
            for _ in 0..20_000 {
                // A minute is far more than this takes: a lost notification fails here instead of hanging.
                assert!(there.wait(Duration::from_secs(60)));
                back.notify();
            }
        }
    });
    for _ in 0..20_000 {
        there.notify();
        assert!(back.wait(Duration::from_secs(60)));
    }
    echo.join().unwrap();
}
