//! Recordings are data: they are written, ordered, refused and printed without a device.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::Arc;

use vramp_gpu::{DeviceKernel, Pool, PoolRules, Pooled, Recording, SubmissionProgress};
use vramp_plan::{Binding, Shader};

type Memory = Pooled<()>;
type Plain = Recording<Memory, Vec<u8>>;

fn lend<const N: usize>(bytes: u64) -> [Memory; N] {
    let pool = Pool::new(PoolRules::budget(1 << 20), SubmissionProgress::default());
    let owner: Arc<str> = "tester".into();
    std::array::from_fn(|_| pool.lend(bytes, &owner, |_| Ok::<_, ()>(())).unwrap())
}

fn kernel(name: &str, bindings: &[Binding]) -> DeviceKernel {
    let bindings = bindings.to_vec();
    DeviceKernel::described(&Shader { name: name.into(), wgsl: String::new(), bindings, per_workgroup: 256 })
}

fn invert() -> DeviceKernel {
    kernel("invert", &[Binding::Read, Binding::Write, Binding::Params { bytes: 16 }])
}

#[test]
fn a_recording_prints_as_it_is_played() {
    let [a, b, c] = lend(1000);
    let mut recording = Plain::default();
    recording.dispatch(&invert(), &[&a, &b], &[0; 16], [1, 1, 1]).unwrap();
    recording.download(&b).unwrap();
    recording.upload(&c, vec![7; 1000]).unwrap();
    recording.dispatch(&kernel("add", &[Binding::Read, Binding::Write]), &[&b, &c], &[], [2, 3, 1]).unwrap();
    recording.download_part(&c, 4, 5).unwrap();
    let text = "\
recording: 5 commands, 1 passes
  upload   1000 bytes to 3#1 at 0
  dispatch invert over 1x1x1 reads 1#1 writes 2#1 with 16 bytes
  dispatch add over 2x3x1 reads 2#1 writes 3#1
  download 1000 bytes of 2#1 at 0
  download 5 bytes of 3#1 at 4";
    assert_eq!(format!("{recording:?}"), text);
}

#[test]
fn transfers_that_depend_on_a_dispatch_stay_where_they_are() {
    let [a, b] = lend(1000);
    let mut recording = Plain::default();
    recording.dispatch(&invert(), &[&a, &b], &[0; 16], [1, 1, 1]).unwrap();
    recording.upload(&a, vec![7; 1000]).unwrap();
    recording.download(&b).unwrap();
    recording.zero(&b);
    recording.dispatch(&invert(), &[&a, &b], &[0; 16], [1, 1, 1]).unwrap();
    recording.copy(&b, &a).unwrap();
    let text = "\
recording: 6 commands, 2 passes
  dispatch invert over 1x1x1 reads 1#1 writes 2#1 with 16 bytes
  upload   1000 bytes to 1#1 at 0
  download 1000 bytes of 2#1 at 0
  zero     1000 bytes of 2#1
  dispatch invert over 1x1x1 reads 1#1 writes 2#1 with 16 bytes
  copy     1000 bytes of 2#1 at 0 to 1#1 at 0";
    assert_eq!(format!("{recording:?}"), text);
}

#[test]
fn two_uploads_to_one_buffer_keep_their_order() {
    let [a, b] = lend(8);
    let mut recording = Plain::default();
    recording.zero(&a);
    recording.upload(&a, vec![1; 8]).unwrap();
    recording.dispatch(&invert(), &[&a, &b], &[0; 16], [1, 1, 1]).unwrap();
    recording.upload(&b, vec![2; 8]).unwrap();
    recording.upload_at(&b, 4, vec![3; 4]).unwrap();
    let text = "\
recording: 5 commands, 1 passes
  zero     8 bytes of 1#1
  upload   8 bytes to 1#1 at 0
  dispatch invert over 1x1x1 reads 1#1 writes 2#1 with 16 bytes
  upload   8 bytes to 2#1 at 0
  upload   4 bytes to 2#1 at 4";
    assert_eq!(format!("{recording:?}"), text);
}

#[test]
fn a_recording_holds_its_memory_until_it_is_cleared() {
    let [a, b] = lend(1000);
    let mut recording = Plain::default();
    recording.dispatch(&invert(), &[&a, &b], &[0; 16], [1, 1, 1]).unwrap();
    recording.download(&b).unwrap();
    assert_eq!((a.holders(), b.holders()), (2, 3));
    recording.clear();
    assert!(a.is_sole() && b.is_sole() && recording.is_empty());
}

#[test]
fn what_does_not_fit_is_refused_with_numbers_and_not_recorded() {
    let [a, b] = lend(10);
    let mut recording = Plain::default();
    let mut said = Vec::new();
    let mut refused = |answer: Result<(), vramp_gpu::RecordError>| said.push(answer.unwrap_err().to_string());
    refused(recording.upload(&a, vec![0; 11]));
    refused(recording.upload(&a, vec![]));
    refused(recording.upload_at(&a, 2, vec![0; 4]));
    refused(recording.upload_at(&a, 0, vec![0; 3]));
    refused(recording.download_part(&a, 8, 3));
    refused(recording.download_part(&a, 1, 3));
    refused(recording.download_part(&a, u64::MAX, 3));
    refused(recording.copy(&a, &a));
    refused(recording.dispatch(&invert(), &[&a], &[0; 16], [1, 1, 1]));
    refused(recording.dispatch(&invert(), &[&a, &b], &[0; 12], [1, 1, 1]));
    refused(recording.dispatch(&invert(), &[&a, &a], &[0; 16], [1, 1, 1]));
    refused(recording.dispatch(&invert(), &[&a, &b], &[0; 16], [1, 0, 1]));
    let expected = [
        "an upload of 11 bytes at 0 does not fit into 1#1, which has 10 bytes",
        "an upload of 0 bytes of 1#1; leave it out",
        "an upload of 4 bytes at 2 of 1#1 is not aligned; start at a multiple of 4, and end at a multiple of \
         4 or at the end of the memory",
        "an upload of 3 bytes at 0 of 1#1 is not aligned; start at a multiple of 4, and end at a multiple of \
         4 or at the end of the memory",
        "a download of 3 bytes at 8 does not fit into 1#1, which has 10 bytes",
        "a download of 4 bytes at 1 of 1#1 is not aligned; start at a multiple of 4, and end at a multiple of \
         4 or at the end of the memory",
        "a download of 3 bytes at 18446744073709551615 does not fit into 1#1, which has 10 bytes",
        "a copy from 1#1 to itself; devices refuse such a copy, so copy through another buffer",
        "invert binds 2 buffers and was given 1",
        "invert takes 16 bytes of parameters and was given 12",
        "invert writes 1#1 and binds it twice; devices refuse that, so use another buffer",
        "invert was dispatched over [1, 0, 1] workgroups; leave the dispatch out",
    ];
    assert_eq!(said, expected);
    assert!(recording.is_empty() && a.is_sole());
}

#[test]
fn reading_one_buffer_twice_is_no_mistake() {
    let [a, b] = lend(16);
    let mix = kernel("mix", &[Binding::Read, Binding::Read, Binding::Write]);
    assert_eq!(Plain::default().dispatch(&mix, &[&a, &a, &b], &[], [1, 1, 1]), Ok(()));
}
