//! The store: names, rights, counts, ops, and both sides.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::sides::{self, both, device, on_device};
use vramp_tensor::{
    Context, DType, ErrorKind, LedgerError, Store, StoreError, SyncDirection, Synced, TensorError, Unary,
};

fn over(context: &Context) -> Store {
    Store::builder().context(context).build().unwrap()
}

fn is_empty(context: &Context) -> bool {
    let memory = context.memory();
    (memory.tensors, memory.buffers, memory.bytes()) == (0, 0, 0)
}

#[test]
fn initialize_returns_whether_there_is_a_device_each_time() {
    for (side, context) in both() {
        let store = over(&context);
        assert_eq!([store.initialize(), store.initialize()], [Ok(side == "device"), Ok(side == "device")]);
    }
    // Without a context the first use opens one.
    let store = Store::builder().build().unwrap();
    store.register("a", &[2], &[1.0_f32, 2.0], "m", &[]).unwrap();
    assert_eq!(store.initialize(), Ok(true), "these tests need an adapter");
    let own = store.context().unwrap();
    store.register_tensor("b", &own.tensor(&[1_u8], &[1]).unwrap(), "m", &[]).unwrap();
}

#[test]
fn a_tensor_is_available_to_its_producer_and_its_consumers_only() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0], "bert", &["clip"]).unwrap();
        for model in ["bert", "clip"] {
            let tensor = store.tensor("a", model).unwrap();
            assert_eq!(tensor.read::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0], "{side} {model}");
            assert_eq!(tensor.shape().lengths(), [2, 2]);
        }
        let refused = store.tensor("a", "vit").unwrap_err();
        assert!(matches!(&refused, StoreError::Books(LedgerError::NotShared { .. })), "{refused}");
        assert_eq!(refused.kind(), ErrorKind::Other);
        let unknown = store.tensor("b", "bert").unwrap_err().to_string();
        assert_eq!(unknown, "there is no tensor `b`; 1 are registered");

        let again = store.register("a", &[1], &[0_u8], "vit", &[]).unwrap_err().to_string();
        assert!(again.starts_with("`a` is already a tensor of bert"), "{again}");
        let short = store.register("c", &[3], &[0_u8], "vit", &[]).unwrap_err();
        assert_eq!(short.to_string(), "`c`: [3] needs 3 values, got 1");
        assert_eq!(short.kind(), ErrorKind::DimensionMismatch);
        assert_eq!(store.names(), ["a"], "{side}: mistakes leave nothing");
        store.dispose();
        assert!(is_empty(&context), "{side}");
    }
}

#[test]
fn sharing_copies_nothing_and_only_models_that_may_use_it_may_share_it() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[4], &[1.0_f32; 4], "bert", &[]).unwrap();
        let before = context.memory();
        assert_eq!(store.share("a", "bert", &["clip", "vit", "clip"]).unwrap(), 2);
        assert!(store.share("a", "stranger", &["stranger"]).is_err());
        assert!(store.share("b", "bert", &["clip"]).is_err());
        assert_eq!(context.memory(), before, "{side}: nothing was made");
        let (one, two) = (store.tensor("a", "bert").unwrap(), store.tensor("a", "clip").unwrap());
        assert_eq!(one.memory_id(), two.memory_id());
        one.write_at(1, &[7.0_f32]).unwrap();
        assert_eq!(two.read::<f32>().unwrap(), [1.0, 7.0, 1.0, 1.0], "{side}");
    }
}

#[test]
fn a_tensor_is_named_without_a_copy_and_neither_scope_nor_dispose_takes_it_from_the_name() {
    for (side, context) in both() {
        let store = over(&context);
        let tensor = context.tensor(&[1.0_f32, 2.0], &[2]).unwrap();
        store.register_tensor("a", &tensor, "m", &[]).unwrap();
        assert_eq!(store.tensor("a", "m").unwrap().memory_id(), tensor.memory_id());
        assert_eq!(context.transfers().copies, 0);
        tensor.dispose();
        store.tensor("a", "m").unwrap().dispose();
        context
            .scope(|_| {
                store.register("b", &[1], &[5_i32], "m", &[])?;
                store.elementwise(("a", "m"), ("c", "m"), None)?;
                store.tensor("a", "m").map(drop)
            })
            .unwrap();
        assert_eq!(store.tensor("a", "m").unwrap().read::<f32>().unwrap(), [1.0, 2.0], "{side}");
        assert_eq!(store.tensor("b", "m").unwrap().read::<i32>().unwrap(), [5], "{side}");
        assert_eq!(store.tensor("c", "m").unwrap().read::<f32>().unwrap(), [1.0, 2.0], "{side}");
        let foreign = Context::on_host().tensor(&[1_u8], &[1]).unwrap();
        let refused = store.register_tensor("d", &foreign, "m", &[]).unwrap_err();
        assert!(matches!(&refused, StoreError::Of { problem, .. } if matches!(**problem, TensorError::Foreign { .. })));
        assert!(matches!(store.register_tensor("d", &tensor, "m", &[]), Err(StoreError::Of { .. })), "disposed of");
        assert_eq!(store.names(), ["a", "b", "c"]);
    }
}

#[test]
fn a_tensor_is_freed_when_every_acquire_is_released_and_not_before() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[8], &[1.0_f32; 8], "m", &["n"]).unwrap();
        assert_eq!([store.acquire("a", "n"), store.acquire("a", "n")], [Ok(1), Ok(2)]);
        assert_eq!(store.release("a", "m"), Ok(0), "registering is the producer's first");
        assert_eq!(store.release("a", "n"), Ok(1));
        assert_eq!(store.held("a", "n"), Ok(1), "taken twice, given back once");
        assert!(store.release("a", "m").is_err(), "more often than it was taken");
        assert_eq!(store.names(), ["a"], "{side}");
        assert_eq!(store.release("a", "n"), Ok(0));
        assert_eq!(store.names(), [""; 0], "{side}");
        assert!(is_empty(&context), "{side}");

        store.register("b", &[1], &[1_u8], "m", &[]).unwrap();
        store.pin("b").unwrap();
        store.release("b", "m").unwrap();
        assert_eq!(store.names(), ["b"], "{side}: pinned");
        store.unpin("b").unwrap();
        assert!(is_empty(&context), "{side}");
    }
}

#[test]
fn grace_keeps_unheld_tensors_for_a_while_and_use_renews_it() {
    let time = Arc::new(Mutex::new(Duration::ZERO));
    let clock = Arc::clone(&time);
    let store = Store::builder().context(&Context::on_host()).grace(Duration::from_secs(10));
    let store = store.clock(move || *clock.lock().unwrap()).build().unwrap();
    store.register("a", &[1], &[1_u8], "m", &[]).unwrap();
    store.release("a", "m").unwrap();
    *time.lock().unwrap() = Duration::from_secs(9);
    assert_eq!(store.optimise().unwrap().freed, 0);
    drop(store.tensor("a", "m").unwrap());
    *time.lock().unwrap() = Duration::from_secs(18);
    assert_eq!(store.optimise().unwrap().freed, 0, "used 9 s ago");
    *time.lock().unwrap() = Duration::from_secs(19);
    let optimised = store.optimise().unwrap();
    assert_eq!((optimised.freed, optimised.freed_bytes), (1, 1));
    assert_eq!(store.names(), [""; 0]);
}

#[test]
fn a_lease_keeps_a_tensor_beyond_its_last_holder_and_then_frees_it() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[2], &[1.0_f32, 2.0], "m", &[]).unwrap();
        let lease = store.lease("a", "m").unwrap();
        assert!(store.lease("a", "n").is_err());
        assert_eq!(store.release_model("m").unwrap().tensors, 1);
        assert_eq!((store.optimise().unwrap().freed, store.names()), (0, vec!["a".to_owned()]), "{side}");
        let refused = store.unregister("a", "m").unwrap_err().to_string();
        assert_eq!(refused, "`a` is leased 1 times; drop its leases first");
        assert_eq!(lease.read::<f32>().unwrap(), [1.0, 2.0]);
        drop(lease);
        assert!(store.names().is_empty() && is_empty(&context), "{side}");
    }
}

#[test]
fn a_model_gives_back_all_that_it_holds_and_may_use_nothing_of_others_any_more() {
    let context = Context::on_host();
    let store = over(&context);
    store.register("own", &[4], &[1_u8; 4], "m", &[]).unwrap();
    store.register("shared", &[4], &[1_u8; 4], "n", &["m"]).unwrap();
    store.acquire("shared", "m").unwrap();
    store.acquire("own", "m").unwrap();
    let released = store.release_model("m").unwrap();
    assert_eq!((released.tensors, released.holds, released.idle_bytes), (2, 3, 4));
    assert_eq!(store.names(), ["shared"], "tensors without other holders are freed");
    assert!(store.tensor("shared", "m").is_err());
}

#[test]
fn a_view_is_a_name_in_the_same_memory_and_outlives_its_parent() {
    for (side, context) in both() {
        let store = over(&context);
        let values: Vec<f32> = (0..10_u8).map(f32::from).collect();
        store.register("a", &[2, 5], &values, "m", &[]).unwrap();
        assert_eq!(store.view(("a", "m"), ("tail", "n"), 6, None).unwrap(), "tail");
        store.view(("a", "m"), ("two", "n"), 1, Some(2)).unwrap();
        assert_eq!(context.memory().buffers, 1, "{side}");
        store.tensor("two", "n").unwrap().write(&[-1.0_f32, -2.0]).unwrap();
        assert_eq!(store.tensor("a", "m").unwrap().read::<f32>().unwrap()[..4], [0.0, -1.0, -2.0, 3.0], "{side}");
        let beyond = store.view(("a", "m"), ("more", "n"), 9, Some(2)).unwrap_err().to_string();
        assert_eq!(beyond, "`more`: view: values 9 to 11 are out of range for [2, 5]; there are 10 values");
        assert!(store.view(("a", "n"), ("more", "n"), 0, None).is_err(), "not its own");
        store.unregister("a", "m").unwrap();
        assert_eq!(store.tensor("tail", "n").unwrap().read::<f32>().unwrap(), [6.0, 7.0, 8.0, 9.0], "{side}");
        store.release_model("n").unwrap();
        assert!(is_empty(&context), "{side}");
    }
}

#[test]
fn other_values_under_a_name_are_its_producers_to_give() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[2], &[1.0_f32, 2.0], "m", &["n"]).unwrap();
        let old = store.tensor("a", "n").unwrap();
        let new = context.tensor(&[3_u8, 4, 5], &[3]).unwrap();
        assert!(store.replace("a", "n", &new).is_err());
        store.replace("a", "m", &new).unwrap();
        assert_eq!(store.tensor("a", "n").unwrap().read::<u8>().unwrap(), [3, 4, 5], "{side}");
        assert_eq!(old.read::<f32>().unwrap(), [1.0, 2.0], "{side}: an old handle keeps the old values");
        assert_eq!(store.held("a", "m"), Ok(1));
        assert!(store.unregister("a", "n").is_err(), "only its producer may");
        store.acquire("a", "n").unwrap();
        assert!(matches!(store.unregister("a", "m"), Err(StoreError::Books(LedgerError::InUse { .. }))));
        store.release("a", "n").unwrap();
        store.unregister("a", "m").unwrap();
        drop((old, new));
        assert!(is_empty(&context), "{side}");
    }
}

#[test]
fn ops_take_names_and_give_names_and_their_results_stay_where_they_were_computed() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], "m", &["clip"]).unwrap();
        store.register("b", &[2, 3], &[1.0_f32, 0.0, -1.0, 2.0, 1.0, 0.0], "n", &["clip"]).unwrap();
        let reads = context.transfers().host_reads;
        assert_eq!(store.matmul(("a", "clip"), ("b", "clip"), ("ab", "clip"), (false, true)).unwrap(), "ab");
        store.elementwise(("ab", "clip"), ("r", "clip"), None).unwrap();
        store.elementwise(("ab", "clip"), ("s", "clip"), Some("sigmoid")).unwrap();
        store.softmax(("a", "m"), ("p", "m"), -1).unwrap();
        assert_eq!(store.quantize(("a", "m"), ("q", "m")).unwrap(), ("q".to_owned(), "q_scale".to_owned()));
        store.dequantize(("q", "m"), ("q_scale", "m"), ("d", "m")).unwrap();
        store.compute(&[("a", "clip"), ("b", "clip")], ("e", "clip"), |of| of[0].mul(&of[1]).add(1.0_f32)).unwrap();
        assert_eq!(context.transfers().host_reads, reads, "{side}: nothing was read back");
        let location = store.tensor("e", "clip").unwrap().location();
        assert_eq!((location.device, location.host), (side == "device", side == "host"), "{side}");

        let read = |name: &str, model: &str| store.tensor(name, model).unwrap().read::<f32>().unwrap();
        assert_eq!(read("ab", "clip"), [-2.0, 4.0, -2.0, 13.0], "{side}");
        assert_eq!(read("r", "clip"), [0.0, 4.0, 0.0, 13.0], "{side}: defaults to relu");
        assert!((read("s", "clip")[1] - 0.982_014).abs() < 1e-5, "{side}");
        let shares = read("p", "m");
        assert!(shares.chunks(3).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5), "{side}: {shares:?}");
        assert_eq!(read("e", "clip"), [2.0, 1.0, -2.0, 9.0, 6.0, 1.0], "{side}");
        let (quantised, scale) = (store.tensor("q", "m").unwrap(), store.tensor("q_scale", "m").unwrap());
        assert_eq!((quantised.dtype(), scale.shape().lengths()), (DType::I8, &[1][..]));
        assert_eq!(quantised.bytes() * 4, store.tensor("a", "m").unwrap().bytes(), "a quarter");
        let step = scale.read::<f32>().unwrap()[0];
        let off = read("d", "m").iter().zip(read("a", "m")).map(|(d, a)| (d - a).abs()).fold(0.0, f32::max);
        assert!(off <= step / 2.0 * 1.000_01, "{side}: {off} of {step}");
        assert!(store.tensor("ab", "m").is_err(), "a result is its model's until it is shared");
        store.share("ab", "clip", &["m"]).unwrap();
        store.tensor("ab", "m").unwrap();
        store.dispose();
        drop((quantised, scale));
        assert!(is_empty(&context), "{side}");
    }
}

#[test]
fn mistakes_of_ops_have_distinct_errors_and_leave_nothing_registered() {
    for (side, context) in both() {
        let store = over(&context);
        store.register("a", &[2, 3], &[1.0_f32; 6], "m", &[]).unwrap();
        store.register("x_scale", &[1], &[1.0_f32], "m", &[]).unwrap();
        let before = context.memory();
        let mismatch = store.matmul(("a", "m"), ("a", "m"), ("o", "m"), (false, false)).unwrap_err();
        assert!(mismatch.to_string().contains("dimension mismatch"), "{side}: {mismatch}");
        assert!(mismatch.to_string().starts_with("`o`: matmul"), "{mismatch}");
        assert_eq!(mismatch.kind(), ErrorKind::DimensionMismatch);
        let unknown = store.elementwise(("a", "m"), ("o", "m"), Some("swish")).unwrap_err();
        assert!(Unary::NAMED.iter().all(|op| unknown.to_string().contains(op.name())), "{unknown}");
        assert_eq!(unknown.kind(), ErrorKind::Other);
        assert!(store.softmax(("a", "m"), ("o", "m"), 2).is_err());
        assert!(store.softmax(("a", "n"), ("o", "m"), 0).is_err(), "not its own");
        assert!(store.softmax(("a", "m"), ("a", "m"), 0).is_err(), "taken");
        assert!(store.softmax(("a", "m"), ("o", ""), 0).is_err(), "no model");
        assert!(store.quantize(("a", "m"), ("x", "m")).is_err(), "the name of the scale is taken");
        assert_eq!(store.names(), ["a", "x_scale"], "{side}");
        let after = context.memory();
        assert_eq!(
            (after.tensors, after.buffers, after.host_bytes),
            (before.tensors, before.buffers, before.host_bytes)
        );
        store.softmax(("a", "m"), ("o", "m"), 0).unwrap();
    }
}

#[test]
fn a_second_op_of_the_same_kind_compiles_nothing() {
    let (device, context) = {
        let device = device();
        let context = Context::on(&device).unwrap();
        (device, context)
    };
    let store = over(&context);
    store.register("a", &[3, 3], &[1.0_f32; 9], "m", &[]).unwrap();
    let all = |round: u8| {
        store.matmul(("a", "m"), ("a", "m"), (&format!("p{round}"), "m"), (false, true)).unwrap();
        store.softmax(("a", "m"), (&format!("s{round}"), "m"), 1).unwrap();
        store.elementwise(("a", "m"), (&format!("e{round}"), "m"), Some("tanh")).unwrap();
    };
    all(0);
    context.finish().unwrap();
    let kernels = device.kernels();
    all(1);
    context.finish().unwrap();
    assert_eq!(device.kernels(), kernels);
}

#[test]
fn whichever_side_was_written_last_wins_and_a_second_time_moves_nothing() {
    let context = on_device();
    let store = over(&context);
    store.register("a", &[4], &[1.0_f32, 2.0, 3.0, 4.0], "m", &[]).unwrap();
    let sync = |direction| store.synchronize("a", "m", direction).unwrap();
    let moved = |uploaded_bytes, downloaded_bytes| Synced { uploaded_bytes, downloaded_bytes };
    assert_eq!(sync(SyncDirection::GpuToCpu), moved(0, 0), "the host has the newest");
    assert_eq!(sync(SyncDirection::CpuToGpu), moved(16, 0));
    assert_eq!(sync(SyncDirection::CpuToGpu), moved(0, 0));
    let tensor = store.tensor("a", "m").unwrap();
    tensor.write_at(0, &[9.0_f32]).unwrap();
    assert!(tensor.location().device && !tensor.location().host, "written on the device");
    assert_eq!(sync(SyncDirection::CpuToGpu), moved(0, 0), "older values do not overwrite newer ones");
    assert_eq!(sync(SyncDirection::Both), moved(0, 16));
    assert_eq!(sync(SyncDirection::Both), moved(0, 0));
    assert_eq!(tensor.read::<f32>().unwrap(), [9.0, 2.0, 3.0, 4.0]);

    // Three bytes are not a whole word, so they are written on the host.
    store.register("b", &[5], &[1_u8, 2, 3, 4, 5], "m", &[]).unwrap();
    store.synchronize("b", "m", SyncDirection::CpuToGpu).unwrap();
    let bytes = store.tensor("b", "m").unwrap();
    bytes.write_at(1, &[7_u8, 8]).unwrap();
    assert!(bytes.location().host && !bytes.location().device);
    assert_eq!(store.synchronize("b", "m", SyncDirection::GpuToCpu).unwrap(), moved(0, 0));
    assert_eq!(store.synchronize("b", "m", SyncDirection::Both).unwrap(), moved(5, 0));
    assert_eq!(store.synchronize("b", "m", SyncDirection::Both).unwrap(), moved(0, 0));
    assert_eq!(bytes.view(0, 5).unwrap().cast(DType::I32).unwrap().read::<i32>().unwrap(), [1, 7, 8, 4, 5]);
    assert!(store.synchronize("a", "n", SyncDirection::Both).is_err());

    let store = over(&Context::on_host());
    store.register("a", &[1], &[1_u8], "m", &[]).unwrap();
    assert_eq!(
        store.synchronize("a", "m", SyncDirection::Both).unwrap(),
        moved(0, 0),
        "without a device nothing moves"
    );
}

#[test]
fn device_memory_that_was_written_there_is_marked_through_the_lease() {
    let context = on_device();
    let store = Store::builder().context(&context).priority(vramp_tensor::Priority::Memory);
    let store = store.idle_after(Duration::ZERO).build().unwrap();
    store.register("a", &[4], &[1.0_f32; 4], "m", &[]).unwrap();
    let lease = store.lease("a", "m").unwrap();
    let buffer = lease.as_buffer().unwrap();
    assert_eq!(store.optimise().unwrap().moved, 0, "leased memory stays in place");
    let same = context.tensor_over(&buffer, &[4], DType::F32).unwrap();
    same.write(&[5.0_f32; 4]).unwrap();
    lease.was_written();
    drop(lease);
    assert_eq!(store.optimise().unwrap().moved, 1);
    store.tensor("a", "m").unwrap().was_written();
    assert_eq!(store.tensor("a", "m").unwrap().read::<f32>().unwrap(), [5.0; 4], "and is not lost when it leaves");
}

#[test]
fn after_it_was_disposed_of_nothing_is_left_and_every_call_is_an_error() {
    for (side, context) in both() {
        let store = Store::builder().context(&context).optimise_in_background().build().unwrap();
        store.register("a", &[4], &[1.0_f32; 4], "m", &[]).unwrap();
        store.register("b", &[4], &[2.0_f32; 4], "m", &[]).unwrap();
        store.elementwise(("a", "m"), ("c", "m"), None).unwrap();
        let lease = store.lease("b", "m").unwrap();
        store.clone().dispose();
        store.dispose();
        assert_eq!(lease.read::<f32>().unwrap(), [2.0; 4], "{side}: what is leased ends with the lease");
        drop(lease);
        assert!(is_empty(&context), "{side}");
        assert_eq!(store.initialize(), Err(StoreError::Disposed));
        assert_eq!(store.register("a", &[1], &[1_u8], "m", &[]), Err(StoreError::Disposed));
        assert_eq!(store.tensor("a", "m").unwrap_err().kind(), ErrorKind::Gone);
        assert_eq!(store.optimise().unwrap_err(), StoreError::Disposed);
        assert_eq!(store.gpu_memory_bytes(), Err(StoreError::Disposed));
        assert!(store.acquire("a", "m").is_err() && store.release("a", "m").is_err() && store.names().is_empty());
    }
}

#[test]
fn the_debug_callback_reports_the_device_names_ops_and_memory() {
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let heard = Arc::clone(&lines);
    let store = Store::builder().debug(move |words| heard.lock().unwrap().push(words.to_owned())).build().unwrap();
    store.register("a", &[4], &[1.0_f32; 4], "m", &[]).unwrap();
    store.softmax(("a", "m"), ("b", "m"), 0).unwrap();
    store.synchronize("b", "m", SyncDirection::GpuToCpu).unwrap();
    store.release("b", "m").unwrap();
    store.optimise().unwrap();
    store.dispose();
    let lines = lines.lock().unwrap();
    let begins = [
        "opened: ",
        "`a` is [4] of f32, by m",
        "`b` is [4] of f32",
        "softmax of ",
        "`b` is synchronized",
        "`b` is freed",
        "optimised: ",
        "disposed of 1",
    ];
    for words in begins {
        assert!(lines.iter().any(|one| one.starts_with(words)), "{words} is not among {lines:?}");
    }
}

#[test]
fn shaders_run_by_name_over_named_tensors_and_their_results_have_names() {
    const COSINE: &str = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> cosine: array<f32>;
@group(0) @binding(3) var<storage, read_write> dot: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var ab = 0.0;
    var aa = 0.0;
    var bb = 0.0;
    for (var i = 0u; i < arrayLength(&a); i++) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    dot[0] = ab;
    cosine[0] = ab / sqrt(aa * bb);
}";
    let f32 = vramp_tensor::DType::F32;
    let context = sides::on_device();
    let store = Store::builder().context(&context).build().unwrap();
    store.register("text", &[3], &[3.0_f32, 0.0, 4.0], "bert", &["clip"]).unwrap();
    store.register("picture", &[3], &[4.0_f32, 0.0, 3.0], "vit", &["clip"]).unwrap();
    store.register_shader("cosine", COSINE, &[("a", f32), ("b", f32)], &[("cosine", f32), ("dot", f32)]).unwrap();
    let run = vramp_tensor::ShaderRun {
        inputs: &[("b", ("picture", "clip")), ("a", ("text", "clip"))],
        outputs: &[("dot", "product", &[1]), ("cosine", "similarity", &[1])],
        ..Default::default()
    };
    let names = store.run_shader("cosine", "clip", run).unwrap();
    assert_eq!(names, ["similarity", "product"], "as they were declared");
    assert_eq!(context.transfers().host_reads, 0);
    let read = |name: &str| store.tensor(name, "clip").unwrap().read::<f32>().unwrap()[0];
    assert!((read("similarity") - 0.96).abs() < 1e-6 && (read("product") - 24.0).abs() < 1e-6);

    let says = |error: vramp_tensor::StoreError| error.to_string();
    assert_eq!(
        says(store.run_shader("sine", "clip", run).unwrap_err()),
        "there is no shader `sine`; registered: cosine"
    );
    assert!(says(store.run_shader("cosine", "clip", run).unwrap_err()).contains("similarity"), "names are taken");
    let again = store.register_shader("cosine", COSINE, &[("a", f32), ("b", f32)], &[("cosine", f32), ("dot", f32)]);
    assert_eq!(says(again.unwrap_err()), "a shader `cosine` is already registered; choose another name");
    assert!(store.register_shader("broken", "fn main() {}", &[], &[("x", f32)]).is_err());
    assert_eq!(store.shaders(), ["cosine"]);
    store.dispose();
    drop(store);
    let memory = context.memory();
    assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0));
}
