//! Adopted buffers are used like lent ones, and never lent or destroyed.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Device, Player, Pool, PoolRules, Recording, SubmissionProgress, wgpu};

#[test]
fn a_guest_of_a_pool_takes_no_budget_and_is_let_go_with_its_last_handle() {
    let (pool, owner): (Pool<Arc<()>>, Arc<str>) =
        (Pool::new(PoolRules::budget(256), SubmissionProgress::default()), "guest".into());
    let value = Arc::new(());
    let guest = pool.adopt(Arc::clone(&value), 4096, &owner);
    let lent = pool.lend(256, &owner, |_| Ok::<_, ()>(Arc::default())).unwrap();
    assert_ne!(guest.tag().id, lent.tag().id);
    assert_eq!((pool.statistics().lent, pool.statistics().held_bytes()), (2, 256));
    let row = pool.leaks().into_iter().find(|row| row.tag == guest.tag()).unwrap();
    assert_eq!((row.bytes, row.holders), (4096, 1));
    // It leaves the pool at once: its owner keeps it for as long as a device uses it.
    guest.retire(7);
    let other = guest.clone();
    drop(guest);
    assert_eq!(Arc::strong_count(&value), 2);
    let trimmed = pool.trimmed();
    drop(other);
    assert_eq!(Arc::strong_count(&value), 1);
    assert_eq!(pool.trimmed(), trimmed + 1, "so that caches of its number drop it");
    assert_eq!((pool.statistics().lent, pool.statistics().pooled, pool.living().len()), (1, 0, 1));
}

#[test]
fn a_buffer_of_ones_own_is_copied_from_and_to_and_not_destroyed() {
    let device = Device::choose().open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"));
    let raw = device.raw().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 64,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut player = Player::on(&device).build().unwrap();
    let owner: Arc<str> = "tester".into();
    for round in 1..=2_u8 {
        let adopted = device.adopt_buffer(&raw, &owner).unwrap();
        assert!(device.owns(&adopted));
        let mut recording = Recording::new();
        recording.upload_at(&adopted, 32, vec![round; 32]).unwrap();
        recording.download(&adopted).unwrap();
        drop(adopted);
        player.play(&mut recording).unwrap();
        recording.clear();
        let arrived = player.readbacks().wait(Duration::from_secs(60)).unwrap().expect("a download is pending");
        assert_eq!(arrived.bytes(0), [[0; 32], [round; 32]].concat());
        drop(arrived);
        assert!(device.pool().leaks().is_empty());
    }
    assert!(device.take_events().0.is_empty());
}
