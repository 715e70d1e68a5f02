//! Elementwise ops: device and host make the same bits, fused or one by one, also for NaN and infinities.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![allow(clippy::cast_possible_wrap, reason = "numbers are small")]
#![allow(clippy::float_cmp, reason = "values that only move stay the same bits")]

use crate::sides::{self, both, on_device};
use half::f16;
use vramp_gpu::{Device, LimitSet};
use vramp_tensor::{Binary, Context, DType, Element, Expr, Tensor, Unary};

/// Values around all special ones, and many others.
fn odd_floats(count: usize) -> Vec<f32> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        88.8,
        -88.8,
        104.0,
        65_504.0,
        65_519.9,
        65_520.0,
        1e-8,
        255.5,
        256.0,
        -128.5,
        127.5,
        2_147_483_648.0,
        -2_147_483_648.0,
        4_294_967_296.0,
        16_777_217.0,
        0.625,
        4.2,
        0.95,
    ];
    let mut state = 1_u32;
    let random = std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 20) as f32 - 8.0
    });
    special.into_iter().chain(random).take(count).collect()
}

/// The first index at which two rows differ by more than this share.
fn differ(one: &[f32], two: &[f32], share: f32) -> Option<usize> {
    let alike = |a: f32, b: f32| {
        // NaN has many bit patterns; a device may flush subnormal numbers to 0.
        let small = a.abs() < f32::MIN_POSITIVE && b.abs() < f32::MIN_POSITIVE;
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || small || (a - b).abs() <= share * a.abs()
    };
    one.iter().zip(two).position(|(a, b)| !alike(*a, *b))
}

/// The tolerance for a device if an op is a series, since shader compilers may reorder sums. In f16 a difference may
/// tip a value to its neighbour.
fn share_of(is_series: bool, dtype: DType) -> f32 {
    match (is_series, dtype) {
        (false, _) => 0.0,
        (true, DType::F16) => 1.0 / 1024.0,
        (true, _) => 1e-6,
    }
}

const BINARY: [Binary; 10] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Div,
    Binary::Min,
    Binary::Max,
    Binary::Pow,
    Binary::Less,
    Binary::Greater,
    Binary::Equal,
];

#[test]
fn one_value_on_the_device_is_the_value_of_the_host() {
    use Unary::{Abs, Floor, Neg, Reciprocal, Relu, Round, Sqrt, Square};
    let (host, device) = (Context::on_host(), on_device());
    let values = odd_floats(1001);
    let run = |context: &Context, op: Unary, dtype: DType| -> Vec<f32> {
        let tensor = context.tensor(&values, &[7, 143]).unwrap().cast(dtype).unwrap();
        tensor.unary(op).unwrap().cast(DType::F32).unwrap().read().unwrap()
    };
    for dtype in [DType::F32, DType::F16] {
        for op in Unary::NAMED {
            let (one, two) = (run(&host, op, dtype), run(&device, op, dtype));
            let is_series = !matches!(op, Abs | Floor | Neg | Reciprocal | Relu | Round | Sqrt | Square);
            if let Some(at) = differ(&one, &two, share_of(is_series, dtype)) {
                panic!("{op} of {:e} as {dtype}: {:e} on the host, {:e} on the device", values[at], one[at], two[at]);
            }
        }
    }
}

#[test]
fn two_values_on_the_device_are_those_of_the_host_however_they_broadcast() {
    let (host, device) = (Context::on_host(), on_device());
    let values = odd_floats(600);
    let shapes: [(&[usize], &[usize]); 7] = [
        (&[5, 6, 7], &[5, 6, 7]),
        (&[5, 6, 7], &[7]),
        (&[5, 6, 7], &[6, 1]),
        (&[5, 1, 7], &[1, 6, 1]),
        (&[3], &[]),
        (&[1], &[2, 3]),
        (&[33, 18], &[33, 1]),
    ];
    let run = |context: &Context, op: Binary, (a, b): (&[usize], &[usize]), dtype: DType| -> Vec<f32> {
        let made = |shape: &[usize], from: usize| {
            let count = shape.iter().product::<usize>();
            context.tensor(&values[from..from + count], shape).unwrap().cast(dtype).unwrap()
        };
        made(a, 0).binary(op, &made(b, 3)).unwrap().cast(DType::F32).unwrap().read().unwrap()
    };
    for dtype in [DType::F32, DType::F16, DType::I32, DType::U32] {
        for op in BINARY {
            for shape in shapes {
                if op == Binary::Pow && !dtype.is_float() {
                    continue;
                }
                let (one, two) = (run(&host, op, shape, dtype), run(&device, op, shape, dtype));
                let share = 10.0 * share_of(op == Binary::Pow, dtype);
                if let Some(at) = differ(&one, &two, share) {
                    panic!("{op} {shape:?} as {dtype}: {:e} on the host, {:e} on the device at {at}", one[at], two[at]);
                }
            }
        }
    }
}

#[test]
fn casts_are_those_of_rust() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(
        side: &str,
        tensor: &Tensor,
        values: &[f32],
        cast: fn(f32) -> T,
    ) {
        let want: Vec<T> = values.iter().map(|value| cast(*value)).collect();
        assert_eq!(tensor.cast(T::DTYPE).unwrap().read::<T>().unwrap(), want, "{side} to {}", T::DTYPE);
    }
    let values = odd_floats(300);
    for (side, context) in both() {
        let tensor = context.tensor(&values, &[300]).unwrap();
        check(side, &tensor, &values, |x| x as i32);
        check(side, &tensor, &values, |x| x as u32);
        check(side, &tensor, &values, |x| x as u8);
        check(side, &tensor, &values, |x| x as i8);
        let halves = tensor.cast(DType::F16).unwrap().read::<f16>().unwrap();
        for (half, value) in halves.iter().zip(&values) {
            let want = f16::from_f32(*value);
            assert!(half.to_bits() == want.to_bits() || half.is_nan() && want.is_nan(), "{side} {value}: {half:?}");
        }
        let ints: Vec<i32> = vec![0, -1, 255, 256, -129, i32::MAX, i32::MIN, 16_777_217];
        let tensor = context.tensor(&ints, &[8]).unwrap();
        let all = |cast: fn(i32) -> i64| ints.iter().map(|int| cast(*int)).collect::<Vec<_>>();
        let wide = |values: Vec<i64>| values;
        let to_u8 = tensor.cast(DType::U8).unwrap().read::<u8>().unwrap();
        assert_eq!(wide(to_u8.into_iter().map(i64::from).collect()), all(|x| i64::from(x as u8)), "{side}");
        let to_i8 = tensor.cast(DType::I8).unwrap().read::<i8>().unwrap();
        assert_eq!(wide(to_i8.into_iter().map(i64::from).collect()), all(|x| i64::from(x as i8)), "{side}");
        let to_u32 = tensor.cast(DType::U32).unwrap().read::<u32>().unwrap();
        assert_eq!(wide(to_u32.into_iter().map(i64::from).collect()), all(|x| i64::from(x as u32)), "{side}");
        let to_f32 = tensor.cast(DType::F32).unwrap().read::<f32>().unwrap();
        assert_eq!(to_f32, ints.iter().map(|x| *x as f32).collect::<Vec<_>>(), "{side}");
    }
}

/// A chain of eight ops.
fn chain(x: &Expr, y: &Tensor) -> Expr {
    x.mul(1.2).add(y).relu().sub(0.3).tanh().mul(0.5).sigmoid().square()
}

#[test]
fn joined_ops_make_the_bits_of_single_ones_in_one_dispatch() {
    for (side, context) in both() {
        for dtype in [DType::F32, DType::F16] {
            let x = context.tensor(&odd_floats(600), &[20, 30]).unwrap().cast(dtype).unwrap();
            let y = context.tensor(&odd_floats(30), &[30]).unwrap().cast(dtype).unwrap();
            let expr = chain(&x.lazy(), &y).cast(DType::F32);
            let one_by_one = expr.run_unfused().unwrap().read::<f32>().unwrap();
            // The first run of a kernel includes a trial on scratch memory.
            expr.run().unwrap();
            context.finish().unwrap();
            let before = context.device().map(|device| device.counters());
            let joined = expr.run().unwrap();
            context.finish().unwrap();
            if let (Some(before), Some(device)) = (before, context.device()) {
                assert_eq!(device.counters().since(&before).dispatches, 1);
            }
            assert_eq!(differ(&joined.read::<f32>().unwrap(), &one_by_one, 0.0), None, "{side} {dtype}");
        }
    }
}

#[test]
fn views_that_begin_anywhere_are_read_where_they_begin() {
    for (side, context) in both() {
        let values: Vec<f32> = (0..64_u8).map(f32::from).collect();
        for dtype in [DType::F32, DType::F16, DType::U8] {
            let whole = context.tensor(&values, &[64]).unwrap().cast(dtype).unwrap();
            for start in 0..6 {
                let view = whole.view(start, 21).unwrap();
                let read = view.cast(DType::F32).unwrap().add(1.0).unwrap().read::<f32>().unwrap();
                let want: Vec<f32> = values[start..start + 21].iter().map(|value| value + 1.0).collect();
                assert_eq!(read, want, "{side} {dtype} from {start}");
            }
        }
    }
}

#[test]
fn the_second_op_of_a_kind_compiles_and_allocates_nothing() {
    let context = on_device();
    let device = context.device().unwrap();
    let run = |lengths: &[usize]| {
        let count = lengths.iter().product();
        let x = context.tensor(&odd_floats(count), lengths).unwrap();
        let expr = chain(&x.lazy(), &x);
        drop(expr.run().unwrap().read::<f32>().unwrap());
        context.finish().unwrap();
    };
    run(&[16, 16]);
    run(&[16, 16]);
    let before = device.counters();
    run(&[16, 16]);
    run(&[8, 32]);
    let since = device.counters().since(&before);
    assert_eq!((since.compiles, since.gpu_allocs, since.dispatches), (0, 0, 2));
}

#[test]
fn a_mistake_in_an_expression_is_reported_when_it_is_run_and_later_ops_work() {
    for (side, context) in both() {
        let x = context.tensor(&[1.0_f32; 6], &[2, 3]).unwrap();
        let other = Context::on_host().tensor(&[1.0_f32; 6], &[2, 3]).unwrap();
        let ints = x.cast(DType::I32).unwrap();
        let before = context.memory();
        let says = |expr: Expr| expr.run().unwrap_err().to_string();
        assert_eq!(
            says(x.lazy().add(&x.reshape(&[3, 2]).unwrap()).relu()),
            "add: dimension mismatch: [2, 3] and [3, 2] do not broadcast: two lengths differ, and neither is 1"
        );
        assert_eq!(says(ints.lazy().tanh()), "tanh: values are i32, expected f32 or f16; `cast` them first");
        assert_eq!(says(x.lazy().add(&ints)), "add: values are i32, expected f32; `cast` them first");
        assert_eq!(says(x.lazy().clamp(2.0, 1.0)), "clamp: low is 2, high is 1; low must not exceed high");
        assert!(says(x.lazy().add(&other)).contains("different contexts"));
        assert_eq!(
            says(ints.lazy().mul(0.5)),
            "mul: 0.5 is not a value of i32; `cast` the tensor first, or use another number"
        );
        assert_eq!(context.memory(), before, "{side}: nothing is left behind");
        assert_eq!(x.add(1.0).unwrap().read::<f32>().unwrap(), [2.0; 6], "{side}");
    }
}

#[test]
fn what_is_used_twice_is_right_also_if_a_reduction_reads_it() {
    for (side, context) in both() {
        let x = context.tensor(&[0.0_f32, 1.0, 2.0, 3.0], &[2, 2]).unwrap();
        let e = x.lazy().exp();
        let shares = e.div(e.reduce_all(vramp_tensor::Reduction::Sum));
        let (joined, alone) = (shares.run().unwrap(), shares.run_unfused().unwrap());
        assert_eq!(joined.read::<f32>().unwrap(), alone.read::<f32>().unwrap(), "{side}");
        let sum: f32 = joined.read::<f32>().unwrap().iter().sum();
        assert!((sum - 1.0).abs() < 1e-6, "{side}: {sum}");
    }
}

#[test]
fn the_debug_callback_reports_devices_compilations_memory_and_ops() {
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = std::sync::Arc::clone(&lines);
    let tell = move |words: &str| heard.lock().unwrap().push(words.to_owned());
    let context = Context::builder().debug(tell).on(&sides::device()).unwrap();
    context.tensor(&[1.0_f32; 4], &[4]).unwrap().relu().unwrap();
    let lines = lines.lock().unwrap();
    for words in ["device: ", "compiling map for relu", "relu -> [4] of f32, 16 bytes in use"] {
        assert!(lines.iter().any(|line| line.starts_with(words)), "`{words}` in {lines:?}");
    }
}

#[test]
fn compilers_of_shaders_neither_join_steps_nor_leave_them_out() {
    let context = on_device();
    let x = context.tensor(&[0.1_f32, f32::NAN, 1.0, -1.0, 7.3, f32::INFINITY, f32::MAX, 1e-40], &[8]).unwrap().lazy();
    let y = context.tensor(&[1e8_f32, 1.0, 0.1, 2.0, 3.0, 4.0, 5.0, 6.0], &[8]).unwrap();
    let exprs = [
        x.add(&y).sub(&y),
        x.add(&y).sub(&x),
        x.sqrt().square(),
        x.reciprocal().reciprocal(),
        x.add(x.neg()),
        x.mul(&y).sub(x.mul(&y)),
        x.sub(&x).div(0.0),
        x.less(&x).mul(&x),
        x.add(&x).sub(&x),
        x.sub(&x),
        x.div(&x),
        x.mul(&y).add(&x),
        x.select(1.0, 2.0),
    ];
    let host = Context::on_host();
    for (at, expr) in exprs.iter().enumerate() {
        let (joined, alone) = (expr.run().unwrap().read::<f32>().unwrap(), expr.run_unfused().unwrap().read().unwrap());
        assert_eq!(differ(&joined, &alone, 0.0), None, "number {at}: {joined:?} and {alone:?}");
    }
    let mask = host.tensor(&[f32::NAN, 0.0, -0.0, 1.0], &[4]).unwrap().select(1.0, 2.0).unwrap();
    assert_eq!(mask.read::<f32>().unwrap(), [1.0, 2.0, 2.0, 1.0]);
    let mask = context.tensor(&[f32::NAN, 0.0, -0.0, 1.0], &[4]).unwrap().select(1.0, 2.0).unwrap();
    assert_eq!(mask.read::<f32>().unwrap(), [1.0, 2.0, 2.0, 1.0]);
}

#[test]
fn long_chains_before_rows_and_after_products_do_not_take_compilers_long() {
    let context = on_device();
    let x = context.tensor(&[0.5_f32; 16], &[4, 4]).unwrap().lazy();
    let chain = (0..120_u8).fold(x.clone(), |expr, at| expr.mul(0.5).add(f32::from(at)));
    for expr in [chain.softmax(-1), chain.sum(0), x.matmul(&x).mul(2.0).add(&chain).sub(&chain).mul(0.5)] {
        let (joined, alone) = (expr.run().unwrap().read::<f32>().unwrap(), expr.run_unfused().unwrap().read().unwrap());
        assert_eq!(differ(&joined, &alone, 0.0), None);
    }
}

#[test]
fn one_memory_that_is_gone_through_in_many_ways_is_bound_as_often() {
    // The limits of the lowest class of devices: four buffers, one of which is the result.
    let device = Device::choose().limits(LimitSet::Downlevel).open().unwrap();
    let context = Context::on(&device).unwrap();
    let memory = context.tensor(&(0..16).map(|x| x as f32).collect::<Vec<_>>(), &[16]).unwrap();
    let walked = |shape: &[usize]| memory.view(0, shape.iter().product()).unwrap().reshape(shape).unwrap().lazy();
    let sum = walked(&[4, 4]).add(walked(&[4])).add(walked(&[4, 1])).add(walked(&[1]));
    let fused = sum.run().unwrap().read::<f32>().unwrap();
    assert_eq!(fused, sum.run_unfused().unwrap().read::<f32>().unwrap());
    assert_eq!(fused[6], 6.0 + 2.0 + 1.0);
}
