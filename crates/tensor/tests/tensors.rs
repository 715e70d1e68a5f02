//! Tensors before any op: values, views, reads, scopes and memory.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![allow(clippy::cast_possible_wrap, reason = "numbers are small")]
#![allow(clippy::float_cmp, reason = "values that only move stay the same bits")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Wake, Waker};

use crate::sides::{both, device, on_device};
use half::f16;
use vramp_tensor::{Context, DType, ErrorKind, HostPoolRules, TensorError};

#[test]
fn values_of_every_type_come_back_as_they_were() {
    for (side, context) in both() {
        for count in [1, 2, 3, 4, 5, 63, 64, 65, 1000] {
            let floats: Vec<f32> = (0..count).map(|i| f32::from_bits(0x3f80_0000 + i * 77)).collect();
            let halves: Vec<f16> = (0..count).map(|i| f16::from_bits(i as u16 * 7)).collect();
            let ints: Vec<i32> = (0..count as i32).map(|i| i - (1 << 24) - 1).collect();
            let words: Vec<u32> = (0..count).map(|i| u32::MAX - i).collect();
            let bytes: Vec<u8> = (0..count).map(|i| i as u8).collect();
            let signed: Vec<i8> = (0..count).map(|i| i as u8 as i8).collect();
            macro_rules! comes_back {
                ($($values:ident),*) => {$(
                    let tensor = context.tensor(&$values, &[count as usize]).unwrap();
                    assert_eq!(tensor.read().as_ref(), Ok(&$values), "{side} before it went anywhere");
                    tensor.settle().unwrap();
                    assert_eq!(tensor.read().as_ref(), Ok(&$values), "{side} {count}");
                )*};
            }
            comes_back!(floats, halves, ints, words, bytes, signed);
        }
        assert_eq!(context.memory().tensors, 0, "{side}");
    }
}

#[test]
fn zeros_are_zeros_also_in_memory_that_was_used_before() {
    for (side, context) in both() {
        let ones = context.tensor(&[1.0_f32; 64], &[64]).unwrap();
        ones.settle().unwrap();
        drop(ones);
        context.finish().unwrap();
        let zeros = context.zeros(&[8, 8], DType::F32).unwrap();
        assert_eq!(zeros.read::<f32>().unwrap(), [0.0; 64], "{side}");
        assert_eq!(context.zeros(&[0, 3], DType::U8).unwrap().read::<u8>().unwrap(), [0_u8; 0], "{side}");
    }
}

#[test]
fn a_view_shares_the_memory_and_keeps_it_alive() {
    for (side, context) in both() {
        let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
        let parent = context.tensor(&values, &[4, 6]).unwrap();
        parent.settle().unwrap();
        let view = parent.view(5, 7).unwrap();
        assert_eq!(view.memory_id(), parent.memory_id());
        assert_eq!(context.memory().buffers, 1, "{side}");
        assert_eq!(context.memory().tensors, 2, "{side}");
        assert_eq!(context.memory().bytes(), if side == "host" { 96 } else { 192 }, "{side}: once on each side");

        view.write_at(1, &[-1.0_f32, -2.0]).unwrap();
        assert_eq!(parent.read::<f32>().unwrap()[5..9], [5.0, -1.0, -2.0, 8.0], "{side}: seen through the parent");
        let shaped = parent.reshape(&[6, 4]).unwrap();
        parent.write_at(0, &[9.0_f32]).unwrap();
        assert_eq!(shaped.read::<f32>().unwrap()[0], 9.0, "{side}");
        parent.dispose();
        drop(parent);
        assert_eq!(view.read::<f32>().unwrap(), [5.0, -1.0, -2.0, 8.0, 9.0, 10.0, 11.0], "{side}: it lives on");
        drop((view, shaped));
        let memory = context.memory();
        assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0), "{side}");
    }
}

#[test]
fn a_view_may_begin_anywhere_also_of_packed_types() {
    for (side, context) in both() {
        let bytes: Vec<u8> = (0..23).collect();
        let tensor = context.tensor(&bytes, &[23]).unwrap();
        tensor.settle().unwrap();
        for start in 0..23 {
            for size in 0..=23 - start {
                let view = tensor.view(start, size).unwrap();
                assert_eq!(view.read::<u8>().unwrap(), bytes[start..start + size], "{side} {start} {size}");
            }
        }
        tensor.write_at(3, &[100_u8, 101]).unwrap();
        assert_eq!(tensor.view(2, 4).unwrap().read::<u8>().unwrap(), [2, 100, 101, 5], "{side}: inside words");
        let tail = tensor.view(20, 3).unwrap();
        tail.write(&[7_u8, 8, 9]).unwrap();
        assert_eq!(tensor.read::<u8>().unwrap()[19..], [19, 7, 8, 9], "{side}: the last word");
    }
}

#[test]
fn wrong_calls_say_what_was_expected() {
    for (_, context) in both() {
        let tensor = context.tensor(&[1.0_f32, 2.0, 3.0], &[3]).unwrap();
        let says = |error: TensorError| error.to_string();
        assert_eq!(says(context.tensor(&[1.0_f32], &[2, 2]).unwrap_err()), "[2, 2] needs 4 values, got 1");
        assert_eq!(
            says(tensor.view(2, 2).unwrap_err()),
            "view: values 2 to 4 are out of range for [3]; there are 3 values"
        );
        assert!(tensor.view(usize::MAX, 2).is_err());
        let wrong = tensor.reshape(&[2, 2]).unwrap_err();
        assert_eq!(says(wrong.clone()), "reshape: dimension mismatch: [3] has 3 values, [2, 2] has 4");
        assert_eq!(wrong.kind(), ErrorKind::DimensionMismatch);
        let wrong = tensor.read::<i32>().unwrap_err();
        assert_eq!(says(wrong), "read: values are f32, expected i32; `cast` them first");
        assert!(tensor.write(&[1.0_f32; 4]).is_err());
        assert!(tensor.write_at(3, &[1.0_f32]).is_err());
        assert_eq!(tensor.read::<f32>().unwrap(), [1.0, 2.0, 3.0], "nothing was changed");
    }
}

#[test]
fn a_disposed_tensor_is_an_error_and_disposing_again_has_no_effect() {
    for (side, context) in both() {
        let tensor = context.tensor(&[1.0_f32; 6], &[2, 3]).unwrap();
        tensor.settle().unwrap();
        let same = tensor.clone();
        tensor.dispose();
        same.dispose();
        let error = tensor.read::<f32>().unwrap_err();
        let words = "read: the tensor [2, 3] of f32 was disposed; keep it (`TensorScope::keep`), or create it again";
        assert_eq!(error.to_string(), words, "{side}");
        assert!(tensor.view(0, 1).is_err() && tensor.write_at(0, &[1.0_f32]).is_err() && tensor.settle().is_err());
        let memory = context.memory();
        assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0), "{side}");
    }
}

#[test]
fn a_scope_frees_what_it_made_on_success_on_error_and_on_panic() {
    for (side, context) in both() {
        let outside = context.tensor(&[1.0_f32], &[1]).unwrap();
        let mut leaked = Vec::new();
        let kept = context
            .scope(|scope| {
                let given = context.tensor(&[2.0_f32], &[1])?;
                let kept = context.tensor(&[3.0_f32], &[1])?;
                scope.keep(&kept);
                leaked.extend([context.tensor(&[4.0_f32], &[1])?, kept.clone(), outside.view(0, 1)?]);
                Ok::<_, TensorError>(given)
            })
            .unwrap();
        assert_eq!(kept.read::<f32>().unwrap(), [2.0], "{side}: what is returned lives");
        assert_eq!(leaked[1].read::<f32>().unwrap(), [3.0], "{side}: what is kept lives");
        assert!(leaked[0].is_disposed() && leaked[2].is_disposed(), "{side}");
        assert_eq!(outside.read::<f32>().unwrap(), [1.0], "{side}: what was made outside is not touched");

        let failed = context.scope(|_| {
            leaked.push(context.tensor(&[5.0_f32], &[1])?);
            context.tensor(&[5.0_f32], &[2])
        });
        assert!(failed.is_err() && leaked[3].is_disposed(), "{side}");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = context.scope(|_| -> Result<(), TensorError> {
                leaked.push(context.tensor(&[5.0_f32], &[1])?);
                panic!("on purpose");
            });
        }));
        assert!(panicked.is_err() && leaked[4].is_disposed(), "{side}");
        // The result of an inner scope belongs to the outer one.
        let inner = context.scope(|_| {
            leaked.push(context.scope(|_| context.tensor(&[6.0_f32], &[1]))?);
            Ok::<(), TensorError>(())
        });
        assert!(inner.is_ok() && leaked[5].is_disposed(), "{side}");
        assert_eq!(context.memory().tensors, 3, "{side}: outside, returned and kept");
        let returned = context.scope(|_| {
            context.scope(|_| Ok::<_, TensorError>(outside.clone()))?;
            Ok::<(), TensorError>(())
        });
        assert!(returned.is_ok() && !outside.is_disposed(), "{side}: what was made outside belongs outside");
    }
}

/// Runs a future on this thread. Polls it when it is woken.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Task::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn many_reads_can_be_awaited_in_any_order_and_each_is_counted() {
    for (side, context) in both() {
        let tensors: Vec<_> = (0..20_u8).map(|i| context.tensor(&[f32::from(i); 8], &[8]).unwrap()).collect();
        for tensor in &tensors {
            tensor.settle().unwrap();
        }
        let reads: Vec<_> = tensors.iter().map(|tensor| tensor.read_async::<f32>().unwrap()).collect();
        tensors[3].write(&[-1.0_f32; 8]).unwrap();
        let dropped = tensors[0].read_async::<f32>().unwrap();
        drop(dropped);
        assert_eq!(tensors[4].read::<f32>().unwrap(), [4.0; 8], "{side}: one that is waited for comes in between");
        for (i, read) in reads.into_iter().enumerate().rev() {
            assert_eq!(wait(read).unwrap(), [i as f32; 8], "{side}: the values at the time of the request");
        }
        assert_eq!(context.transfers().async_reads, 21, "{side}");
        assert_eq!(context.transfers().host_reads, 1, "{side}");
        assert_eq!(tensors[3].read::<f32>().unwrap(), [-1.0; 8], "{side}");
    }
}

#[test]
fn without_room_on_the_device_the_error_has_the_numbers_and_later_work_succeeds() {
    let device = vramp_gpu::Device::choose().budget_bytes(1 << 20).open().unwrap();
    let context = Context::on(&device).unwrap();
    let held = context.zeros(&[200_000], DType::F32).unwrap();
    let error = context.zeros(&[100_000], DType::F32).unwrap_err();
    let TensorError::OutOfMemory { required_bytes, available_bytes, place: "device", .. } = error else {
        panic!("{error}");
    };
    assert!(required_bytes >= 400_000 && available_bytes < required_bytes, "{required_bytes} {available_bytes}");
    drop(held);
    let next = context.zeros(&[100_000], DType::F32).unwrap();
    assert_eq!(next.read::<f32>().unwrap().len(), 100_000, "memory that returned is used though the device was busy");
}

#[test]
fn without_room_on_the_host_likewise() {
    let rules = HostPoolRules { budget_bytes: 4096, ..HostPoolRules::default() };
    let context = Context::builder().host_pool(rules).on_host();
    let error = context.zeros(&[4096], DType::F32).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(context.zeros(&[1024], DType::F32).is_ok());
}

#[test]
fn larger_than_a_binding_is_refused_with_the_numbers() {
    let context = on_device();
    let most = context.device().unwrap().limits().binding_bytes;
    let error = context.zeros(&[most as usize / 4 + 64], DType::F32).unwrap_err();
    assert!(matches!(error, TensorError::TooBig { most_bytes, .. } if most_bytes <= most), "{error}");
}

#[test]
fn tensors_move_to_another_device_and_to_the_host_and_back_with_their_values() {
    let context = on_device();
    let values: Vec<f32> = (0..100_u8).map(f32::from).collect();
    let tensor = context.tensor(&values, &[100]).unwrap();
    tensor.settle().unwrap();
    tensor.write_at(7, &[-7.0_f32]).unwrap();
    let view = tensor.view(5, 5).unwrap();
    for device in [None, Some(device()), None, Some(device())] {
        context.move_to(device.as_ref()).unwrap();
        view.settle().unwrap();
        assert_eq!(view.read::<f32>().unwrap(), [5.0, 6.0, -7.0, 8.0, 9.0]);
        assert_eq!(view.location().device, device.is_some());
    }
}

#[test]
fn after_a_device_loss_values_that_only_it_had_are_errors_and_the_others_stay_usable() {
    let context = on_device();
    let only_there = context.zeros(&[4], DType::F32).unwrap();
    let on_both = context.tensor(&[1.0_f32, 2.0], &[2]).unwrap();
    on_both.settle().unwrap();
    context.finish().unwrap();
    context.device().unwrap().destroy();
    let error = only_there.read::<f32>().unwrap_err();
    assert!(matches!(error, TensorError::Lost { .. }), "{error}");
    let moved = context.move_to(Some(&device())).unwrap();
    assert_eq!((moved.kept, moved.gone), (1, 1));
    let error = only_there.read::<f32>().unwrap_err();
    assert!(matches!(error, TensorError::Gone { .. }), "{error}");
    on_both.settle().unwrap();
    assert_eq!(on_both.read::<f32>().unwrap(), [1.0, 2.0]);
    drop((only_there, on_both));
    let memory = context.memory();
    assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0));
}

#[test]
fn memory_of_the_device_is_a_tensor_without_a_copy() {
    let context = on_device();
    let device = context.device().unwrap();
    let buffer = device.lend(64, &"test".into()).unwrap();
    let tensor = context.tensor_over(&buffer, &[4, 4, 4], DType::U8).unwrap();
    tensor.write(&(0..64).collect::<Vec<u8>>()).unwrap();
    let again = context.tensor_over(&tensor.as_buffer().unwrap(), &[64], DType::U8).unwrap();
    assert_eq!(again.read::<u8>().unwrap(), (0..64).collect::<Vec<u8>>());
    let small = context.tensor_over(&buffer, &[17], DType::F32).unwrap_err().to_string();
    assert_eq!(small, "tensor_over: dimension mismatch: [17] of f32 takes 68 bytes, the buffer has 64");
    let foreign = on_device().tensor_over(&buffer, &[16], DType::F32).unwrap_err();
    assert!(matches!(foreign, TensorError::Foreign { .. }));
    assert!(matches!(Context::on_host().tensor_over(&buffer, &[1], DType::U8), Err(TensorError::NoDevice { .. })));
}

#[test]
fn several_tensors_come_down_in_one_submission() {
    for (side, context) in both() {
        let tensors: Vec<_> = (0..5_u8).map(|i| context.tensor(&[f32::from(i); 3], &[3]).unwrap()).collect();
        let made: Vec<_> = tensors.iter().map(|tensor| tensor.add(1.0).unwrap()).collect();
        let before = context.device().map(|device| device.counters());
        let views: Vec<_> = made.iter().map(|tensor| tensor.view(1, 2).unwrap()).chain([tensors[4].clone()]).collect();
        let read = context.read_all::<f32>(&views.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(read.len(), 6);
        for (i, values) in read[..5].iter().enumerate() {
            assert_eq!(*values, [i as f32 + 1.0; 2], "{side}");
        }
        assert_eq!(read[5], [4.0; 3], "{side}: the host had it");
        if let (Some(before), Some(device)) = (before, context.device()) {
            assert_eq!(device.counters().since(&before).submits, 1, "{side}");
        }
        assert_eq!(context.transfers().host_reads, 6, "{side}");
        let none: Vec<Vec<f32>> = context.read_all(&[]).unwrap();
        assert!(none.is_empty());
    }
}

#[test]
fn a_read_inside_a_foreign_recording_is_refused_and_leaves_nothing_there() {
    let context = on_device();
    let tensor = context.zeros(&[4], DType::F32).unwrap();
    let mut recording = vramp_gpu::Recording::new();
    let refused = context.record_into(&mut recording, || tensor.read::<f32>()).unwrap_err().to_string();
    assert!(refused.contains("is recording for another player"), "{refused}");
    assert_eq!(recording.downloads(), 0);
    assert_eq!(tensor.read::<f32>().unwrap(), [0.0; 4]);
}

#[test]
fn memory_that_is_shared_is_taken_in_whole_words_only() {
    let context = on_device();
    let buffer = context.device().unwrap().lend(16, &"test".into()).unwrap();
    let error = context.tensor_over(&buffer, &[5], DType::U8).unwrap_err().to_string();
    assert!(error.contains("ends inside a word"), "{error}");
}
