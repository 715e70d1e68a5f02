//! Profiles of ops on both sides.

use crate::sides::{both, on_device};
use vramp_gpu::{Device, StampPlaces};
use vramp_tensor::{Context, DType, RanOn, TensorError};

#[test]
fn each_op_is_listed_with_shapes_bytes_side_and_times() {
    for (side, context) in both() {
        let a = context.tensor(&[1.0_f32; 64 * 32], &[64, 32]).unwrap();
        let b = context.tensor(&[2.0_f32; 32 * 16], &[32, 16]).unwrap();
        let bias = context.tensor(&[-65.0_f32; 16], &[16]).unwrap();
        let (made, profile) = context
            .profile(|| {
                let made = a.lazy().matmul(&b).add(&bias).relu().run()?;
                let sum = made.sum(1)?;
                assert_eq!(sum.read::<f32>()?, [0.0; 64]);
                Ok::<_, TensorError>(made)
            })
            .unwrap();
        assert_eq!(made.unwrap().shape().lengths(), [64, 16], "{side}");
        let listed: Vec<_> = profile.ops.iter().map(|op| (op.op.as_str(), op.output.lengths())).collect();
        assert_eq!(listed, [("matmul+add+relu", &[64, 16][..]), ("sum", &[64][..])], "{side}");
        let product = &profile.ops[0];
        let shapes: Vec<_> = product.inputs.iter().map(|(shape, _)| shape.lengths().to_vec()).collect();
        assert_eq!(shapes, [vec![64, 32], vec![32, 16], vec![16]], "{side}: in the order in which they are read");
        assert_eq!(product.read_bytes, 4 * (64 * 32 + 32 * 16 + 16), "{side}");
        assert_eq!((product.written_bytes, product.dtype), (4 * 64 * 16, DType::F32), "{side}");
        assert!(profile.ops.iter().all(|op| op.host_ns > 0 && !op.has_failed), "{side}");
        if side == "host" {
            assert!(profile.ops.iter().all(|op| op.side == RanOn::Host && op.dispatches == 0));
            assert_eq!(product.device_ns.why(), Some("the op ran on the host"), "a reason, and no 0");
            assert_eq!(profile.device_ns.why(), Some("nothing ran on a device"));
        } else {
            assert!(profile.ops.iter().all(|op| op.side == RanOn::Device && op.dispatches > 0), "{profile}");
            let kernels_ns: u64 = profile.ops.iter().filter_map(|op| op.device_ns.value()).sum();
            assert!(profile.ops.iter().all(|op| op.device_ns.value().is_some()), "{profile:#?}");
            assert!(kernels_ns > 0 && kernels_ns <= profile.device_ns.value().unwrap(), "{profile:#?}");
            assert!(profile.device_ns.value().unwrap() <= profile.elapsed_ns, "{profile:#?}");
            assert_eq!(profile.moved.uploads, 3);
        }
        assert_eq!(profile.moved.host_reads, 1, "{side}");
    }
}

#[test]
fn new_and_peak_bytes_are_those_of_the_work_and_the_peak_of_the_context_stays() {
    for (side, context) in both() {
        drop(context.zeros(&[5000], DType::F32).unwrap());
        let held = context.zeros(&[10], DType::F32).unwrap();
        let (kept, profile) = context
            .profile(|| {
                drop(context.zeros(&[1000], DType::F32).unwrap());
                context.zeros(&[100], DType::F32).unwrap()
            })
            .unwrap();
        assert_eq!((profile.new_tensors, profile.new_bytes, profile.peak_bytes), (1, 400, 4040), "{side}");
        assert_eq!(context.memory().peak_bytes, 20_000, "{side}: that of before is not forgotten");
        let ((), profile) = context.profile(|| drop((kept, held))).unwrap();
        assert_eq!((profile.new_tensors, profile.new_bytes), (-2, -440), "{side}");
    }
}

#[test]
fn an_op_that_is_made_of_others_is_listed_once_with_all_of_its_kernels() {
    let context = on_device();
    // A long inner axis is split, and a second op adds up the parts.
    let a = context.tensor(&vec![1.0_f32; 4 * 20_000], &[4, 20_000]).unwrap();
    let b = context.tensor(&vec![1.0_f32; 20_000 * 4], &[20_000, 4]).unwrap();
    let (product, profile) = context.profile(|| a.matmul(&b).unwrap()).unwrap();
    assert_eq!(product.read::<f32>().unwrap(), [20_000.0; 16]);
    let names: Vec<_> = profile.ops.iter().map(|op| op.op.as_str()).collect();
    assert_eq!(names, ["matmul"]);
    assert!(profile.ops[0].dispatches > 1, "{profile}");
    assert!(profile.ops[0].device_ns.value().is_some(), "{profile:#?}");
}

#[test]
fn many_ops_are_all_timed_though_one_submission_has_few_stamps() {
    let context = on_device();
    let mut x = context.tensor(&[1.0_f32; 256], &[256]).unwrap();
    let (values, profile) = context
        .profile(|| {
            for _ in 0..300 {
                x = x.add(1.0_f32).unwrap();
            }
            x.read::<f32>().unwrap()
        })
        .unwrap();
    assert_eq!(values, [301.0; 256]);
    assert_eq!(profile.ops.len(), 300);
    let missing = profile.ops.iter().filter(|op| op.device_ns.value().is_none()).count();
    assert_eq!(missing, 0, "{}", profile.ops.iter().find_map(|op| op.device_ns.why()).unwrap_or_default());
}

#[test]
fn without_a_clock_on_the_device_the_reason_is_given_and_only_the_total_is_known() {
    let device = Device::choose().stamps(StampPlaces::Nowhere).open().unwrap();
    let context = Context::on(&device).unwrap();
    let x = context.tensor(&[1.0_f32; 8], &[8]).unwrap();
    let (_, profile) = context.profile(|| x.exp().unwrap()).unwrap();
    assert_eq!(profile.ops[0].dispatches, 1);
    let why = profile.ops[0].device_ns.why().unwrap();
    assert_eq!(why, "this device has no timestamps; only whole submissions can be timed");
    assert!(profile.device_ns.value().is_some_and(|ns| ns > 0), "{profile:#?}");
    assert!(profile.to_string().contains("by the host's clock"), "{profile}");
}

#[test]
fn a_failed_op_is_reported_as_failed_and_leaves_nothing() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let rules = vramp_tensor::HostPoolRules { budget_bytes: 1 << 20, ..Default::default() };
    for context in [Context::on(&device).unwrap(), Context::builder().host_pool(rules).on_host()] {
        let x = context.zeros(&[150_000], DType::F32).unwrap();
        let before = context.memory();
        let (failed, profile) = context.profile(|| x.exp()).unwrap();
        assert!(matches!(failed, Err(TensorError::OutOfMemory { .. })), "{failed:?}");
        assert!(profile.ops.len() == 1 && profile.ops[0].has_failed, "{profile}");
        assert!(profile.to_string().contains("exp (failed)"), "{profile}");
        assert_eq!((profile.new_bytes, profile.new_tensors), (0, 0));
        assert_eq!(context.memory().bytes(), before.bytes());
        drop(x);
        let ((), after) = context.profile(|| drop(context.zeros(&[4], DType::F32).unwrap().exp().unwrap())).unwrap();
        assert!(!after.ops[0].has_failed, "the next one works");
    }
}

#[test]
fn one_profile_at_a_time_and_none_is_left_on_after_a_panic() {
    for (side, context) in both() {
        let (inner, outer) = context.profile(|| context.profile(|| ())).unwrap();
        let refused = inner.unwrap_err().to_string();
        assert_eq!(refused, "profile: this context is being profiled already; end that profile first", "{side}");
        assert!(outer.ops.is_empty(), "{side}");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = context.profile(|| panic!("on purpose"));
        }));
        assert!(panicked.is_err());
        let x = context.tensor(&[1.0_f32, 4.0], &[2]).unwrap();
        let (root, profile) = context.profile(|| x.sqrt().unwrap()).unwrap();
        assert_eq!(root.read::<f32>().unwrap(), [1.0, 2.0], "{side}");
        assert_eq!(profile.ops.len(), 1, "{side}");
    }
}

#[test]
fn reads_that_were_requested_before_arrive_during_and_after_a_profile() {
    let context = on_device();
    let x = context.tensor(&[3.0_f32; 16], &[16]).unwrap();
    x.settle().unwrap();
    let mut before = Box::pin(x.read_async::<f32>().unwrap());
    let (during, _) = context.profile(|| Box::pin(x.square().unwrap().read_async::<f32>().unwrap())).unwrap();
    let after = x.add(1.0_f32).unwrap().read::<f32>().unwrap();
    let mut during = during;
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    let mut wait = |future: &mut (dyn Future<Output = Result<Vec<f32>, TensorError>> + Unpin)| loop {
        if let std::task::Poll::Ready(answer) = std::pin::Pin::new(&mut *future).poll(&mut task) {
            return answer.unwrap();
        }
        std::thread::yield_now();
    };
    assert_eq!(wait(&mut before), [3.0; 16]);
    assert_eq!(wait(&mut during), [9.0; 16]);
    assert_eq!(after, [4.0; 16]);
}

#[test]
fn ops_of_other_threads_are_listed_and_never_mixed_up() {
    let context = on_device();
    let ((), profile) = context
        .profile(|| {
            std::thread::scope(|threads| {
                for length in [8, 16, 32] {
                    let context = &context;
                    threads.spawn(move || {
                        let x = context.zeros(&[length], DType::F32).unwrap();
                        (0..20).for_each(|_| drop(x.exp().unwrap()));
                    });
                }
            });
        })
        .unwrap();
    assert_eq!(profile.ops.len(), 60);
    for op in &profile.ops {
        assert_eq!((op.dispatches, op.inputs[0].0.lengths()), (1, op.output.lengths()));
        assert!(op.device_ns.value().is_some(), "{:?}", op.device_ns);
    }
}
