//! Programs on the host against plain loops, with blocks, lines and threads split at many places.

use crate::ops::context::Context;
use crate::ops::dtype::DType;
use crate::ops::tensor::Tensor;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919 + seed * 31) % 1013) as f32 - 500.0).collect()
}

/// The value at index `at` of a tensor that is broadcast from the shape `of` to `shape`.
fn repeated(values: &[f32], of: &[usize], shape: &[usize], at: usize) -> f32 {
    let (mut rest, mut place, mut stride) = (at, 0, 1);
    let missing = shape.len() - of.len();
    for axis in (0..shape.len()).rev() {
        let here = rest % shape[axis];
        rest /= shape[axis];
        if axis >= missing {
            place += if of[axis - missing] == 1 { 0 } else { here * stride };
            stride *= of[axis - missing];
        }
    }
    values[place]
}

/// A tensor at an odd offset in its memory.
fn tensor(context: &Context, values: &[f32], shape: &[usize], dtype: DType) -> Tensor {
    let gap = 3;
    let all: Vec<f32> = [0.0; 3].iter().chain(values).copied().collect();
    let all = context.tensor(&all, &[all.len()]).unwrap().cast(dtype).unwrap();
    all.view(gap, values.len()).unwrap().reshape(shape).unwrap()
}

#[test]
fn whatever_is_repeated_along_whichever_axis_is_that_of_a_plain_loop() {
    // Lines shorter than the minimum, about as long as a block, and longer; and repeats along several axes.
    let cases: [(&[usize], &[usize]); 12] = [
        (&[700, 3], &[3]),
        (&[700, 3], &[700, 1]),
        (&[9, 127], &[127]),
        (&[9, 128], &[128]),
        (&[9, 128], &[9, 1]),
        (&[5, 1025], &[1025]),
        (&[5, 1025], &[5, 1]),
        (&[3, 40_000], &[40_000]),
        (&[4, 3, 300], &[4, 1, 300]),
        (&[4, 3, 300], &[3, 1]),
        (&[4, 150, 2], &[4, 1, 2]),
        (&[2, 3, 4, 50], &[3, 1, 50]),
    ];
    for threads in [1, 3] {
        let context = Context::builder().threads(threads).on_host();
        for (shape, part) in cases {
            let (count, few) = (shape.iter().product(), part.iter().product());
            let (all, some) = (numbers(count, 1), numbers(few, 2));
            for dtype in [DType::F32, DType::F16, DType::I32] {
                let x = tensor(&context, &all, shape, dtype);
                let y = tensor(&context, &some, part, dtype);
                let what = format!("{shape:?} by {part:?} of {dtype} on {threads}");
                let sum = x.add(&y).unwrap().cast(DType::F32).unwrap().read::<f32>().unwrap();
                // These sums are exact as f16, because they are below 2048.
                let want: Vec<f32> = (0..count).map(|at| all[at] + repeated(&some, part, shape, at)).collect();
                assert_eq!(sum, want, "{what}");
                let chain = y.lazy().sub(&x).neg().add(&y).add(&y).cast(DType::F32);
                assert_eq!(chain.run().unwrap().read::<f32>().unwrap(), want, "{what}, in a chain");
                let largest = chain.max(-1).run().unwrap().read::<f32>().unwrap();
                let rows = want.chunks(shape[shape.len() - 1]);
                let rows: Vec<f32> = rows.map(|row| row.iter().copied().fold(f32::MIN, f32::max)).collect();
                assert_eq!(largest, rows, "{what}, row by row");
            }
        }
    }
}

#[test]
fn casts_at_either_end_are_those_of_rust() {
    let context = Context::on_host();
    for count in [1, 17, 1024, 5000] {
        let values: Vec<f32> = numbers(count, 3).iter().map(|value| value * 0.7).collect();
        let x = context.tensor(&values, &[count]).unwrap();
        let read = |tensor: &Tensor| tensor.cast(DType::F32).unwrap().read::<f32>().unwrap();
        let each = |cast: fn(f32) -> f32| values.iter().map(|value| cast(*value)).collect::<Vec<f32>>();
        for (dtype, cast) in [
            (DType::U8, (|x| f32::from(x as u8)) as fn(f32) -> f32),
            (DType::I8, |x| f32::from(x as i8)),
            (DType::I32, |x| (x as i32) as f32),
            (DType::U32, |x| (x as u32) as f32),
            (DType::F16, |x| half::f16::from_f32(x).to_f32()),
        ] {
            let narrow = x.cast(dtype).unwrap();
            assert_eq!(read(&narrow), each(cast), "{count} of {dtype}");
            // A computed value that is cast, a computed value that is cast twice, and a loaded value that is used
            // twice.
            assert_eq!(read(&x.lazy().neg().neg().cast(dtype).run().unwrap()), each(cast), "{count} of {dtype}");
            let wide = narrow.lazy().cast(DType::F32);
            assert_eq!(wide.add(0.0).run().unwrap().read::<f32>().unwrap(), each(cast), "{count} of {dtype}");
            let twice = narrow.lazy().cast(DType::F32).add(narrow.lazy().cast(DType::F32)).mul(0.5);
            assert_eq!(twice.run().unwrap().read::<f32>().unwrap(), each(cast), "{count} of {dtype}");
            let turned = narrow.reshape(&[count, 1]).unwrap().lazy().broadcast_to(&[count, 2]).cast(DType::F32);
            let column = turned.slice(1, 1, 2).run().unwrap().read::<f32>().unwrap();
            assert_eq!(column, each(cast), "{count} of {dtype}, repeated");
        }
    }
}

#[test]
fn minima_maxima_and_choices_are_those_of_numpy_with_nan_and_either_zero() {
    let context = Context::on_host();
    let special = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let (one, two): (Vec<f32>, Vec<f32>) = special.iter().flat_map(|x| special.iter().map(move |y| (*x, *y))).unzip();
    let (x, y) = (context.tensor(&one, &[49]).unwrap(), context.tensor(&two, &[49]).unwrap());
    let (least, most) = (x.minimum(&y).unwrap().read::<f32>().unwrap(), x.maximum(&y).unwrap().read::<f32>().unwrap());
    let chosen = x.select(&y, 7.0).unwrap().read::<f32>().unwrap();
    for at in 0..49 {
        let (x, y) = (one[at], two[at]);
        // Of equal values (0 and -0) the first is the result, so the bits must match.
        let (small, large) = if y < x { (y, x) } else { (x, if y > x { y } else { x }) };
        if x.is_nan() || y.is_nan() {
            assert!(least[at].is_nan() && most[at].is_nan(), "{x} and {y}");
        } else {
            assert_eq!((least[at].to_bits(), most[at].to_bits()), (small.to_bits(), large.to_bits()), "{x} and {y}");
        }
        let want = if x == 0.0 { 7.0 } else { y };
        assert!(chosen[at] == want || (chosen[at].is_nan() && want.is_nan()), "{x} chooses {y} or 7");
    }
}

#[test]
fn powers_and_logarithms_do_not_depend_on_what_else_is_in_a_row() {
    let context = Context::on_host();
    let ordinary: Vec<f32> = (1..2000_u16).map(|at| f32::from(at) * 0.01).collect();
    let mut mixed = ordinary.clone();
    mixed.extend([0.0, -1.0, f32::NAN, 1e-40, f32::INFINITY]);
    let of = |values: &[f32]| {
        let x = context.tensor(values, &[values.len()]).unwrap();
        let powers = x.pow(0.37).unwrap().read::<f32>().unwrap();
        (x.log().unwrap().read::<f32>().unwrap(), powers)
    };
    let (alone, among) = (of(&ordinary), of(&mixed));
    assert_eq!((&among.0[..1999], &among.1[..1999]), (alone.0.as_slice(), alone.1.as_slice()));
    let one = context.tensor(&[1.0_f32, 1.0, 2.0, 2.0], &[4]).unwrap();
    let powers = one.pow(&context.tensor(&[f32::NAN, f32::INFINITY, 0.0, -0.0], &[4]).unwrap()).unwrap();
    assert_eq!(powers.read::<f32>().unwrap(), [1.0; 4]);
}

#[test]
fn a_product_that_ends_with_a_long_row_adds_the_same_row_to_every_line() {
    let context = Context::on_host();
    for columns in [127, 128, 300, 1500] {
        let (a, b) = (numbers(7 * 5, 1), numbers(5 * columns, 2));
        let a = context.tensor(&a, &[7, 5]).unwrap();
        let b = context.tensor(&b, &[5, columns]).unwrap();
        let row = context.tensor(&numbers(columns, 3), &[columns]).unwrap();
        let apart = a.matmul(&b).unwrap().add(&row).unwrap().read::<f32>().unwrap();
        let fused = a.lazy().matmul(&b).add(&row).run().unwrap().read::<f32>().unwrap();
        assert!(apart == fused, "{columns} columns");
    }
}
