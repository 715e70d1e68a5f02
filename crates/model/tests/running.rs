//! Runs: what they allocate, the types of results, and memory that models share.

use vramp_gpu::{Device, LimitSet};
use vramp_model::Model;
use vramp_model::onnx::OnnxType;
use vramp_model::shipped::{BLAZEFACE, SELFIE};
use vramp_tensor::{Context, DType, Tensor};

use crate::heap;
use crate::made::{I64, file, graph, longs, node, typed};

fn input(context: &Context, side: usize) -> Tensor {
    let values: Vec<f32> = (0..3 * side * side).map(|at| ((at % 251) as f32 / 125.5 - 1.0) * 0.9).collect();
    context.tensor(&values, &[1, 3, side, side]).unwrap()
}

#[test]
fn a_second_run_on_the_host_allocates_nothing_but_its_results() {
    let context = Context::builder().threads(1).on_host();
    for (bytes, side, outputs) in [(SELFIE, 256, 1), (BLAZEFACE, 128, 2)] {
        let model = Model::from_bytes(bytes).unwrap();
        let inputs = [input(&context, side)];
        for _ in 0..2 {
            drop(model.run(&inputs).unwrap());
        }
        let fewest = |run: &dyn Fn() -> usize| (0..8).map(|_| run()).min().unwrap();
        let each = fewest(&|| heap::allocations(|| drop(context.zeros(&[1, 896, 16], DType::F32).unwrap())).1);
        let count = fewest(&|| {
            let (made, count) = heap::allocations(|| model.run(&inputs).unwrap());
            assert_eq!(made.len(), outputs);
            count
        });
        // The results themselves, the list of them, and possibly a node of the context's list of all tensors.
        let results = outputs * each + 1;
        assert!((results..=results + 1).contains(&count), "{count} allocations; a tensor takes {each}");
    }
}

#[test]
fn outputs_have_their_true_types_also_if_the_file_does_not_state_them() {
    let of = graph(
        &[3],
        vec![node("n", "Shape", &["x"], &["s"]), node("m", "Add", &["s", "w"], &["y"])],
        vec![longs("w", &[1])],
    );
    let model = Model::from_bytes(file(of)).unwrap();
    assert_eq!(model.outputs()[0].dtype, OnnxType::Other(0));
    let context = Context::on_host();
    let x = [context.zeros(&[3], DType::F32).unwrap()];
    assert_eq!(model.output_types(&context, &x).unwrap(), [OnnxType::I64]);
    assert_eq!(model.run(&x).unwrap()[0].read::<i32>().unwrap(), [4]);
}

#[test]
fn values_of_i64_at_run_time_wrap_at_32_bits() {
    let mut of = graph(&[2], vec![node("n", "Mul", &["x", "x"], &["y"])], vec![]);
    of.input[0] = typed("x", I64, Some(&[2]));
    let model = Model::from_bytes(file(of)).unwrap();
    for context in [Context::on_host(), Context::on(&Device::choose().open().unwrap()).unwrap()] {
        let x = context.tensor(&[1 << 20, -3], &[2]).unwrap();
        assert_eq!(model.run(&[x]).unwrap()[0].read::<i32>().unwrap(), [0, 9]);
    }
}

#[test]
fn the_selfie_model_runs_in_one_submit_and_its_weights_are_counted_once_on_a_device() {
    let device = Device::choose().open().unwrap();
    let context = Context::on(&device).unwrap();
    let x = [input(&context, 256)];
    let (one, two) = (Model::from_bytes(SELFIE).unwrap(), Model::from_bytes(SELFIE).unwrap());
    let run = |model: &Model| drop(model.run(&x).unwrap()[0].read::<f32>().unwrap());
    run(&one);
    let (once, before) = (context.memory().bytes(), device.counters());
    run(&one);
    let second = device.counters().since(&before);
    assert!(second.submits == 1 && second.dispatches <= 95 && second.compiles == 0, "{second:?}");
    run(&two);
    assert_eq!(context.memory().bytes(), once, "the weights of the second model are those of the first");
}

#[test]
fn whole_models_run_on_devices_with_few_storage_buffers() {
    let host = Context::on_host();
    for limits in [LimitSet::Downlevel, LimitSet::WebGpu] {
        let context = Context::on(&Device::choose().limits(limits).open().unwrap()).unwrap();
        for (bytes, side) in [(SELFIE, 256), (BLAZEFACE, 128)] {
            let model = Model::from_bytes(bytes).unwrap();
            let on_host = model.run(&[input(&host, side)]).unwrap();
            let on_device = model.run(&[input(&context, side)]).unwrap();
            for (one, two) in on_host.iter().zip(&on_device) {
                let (one, two) = (one.read::<f32>().unwrap(), two.read::<f32>().unwrap());
                let largest = one.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
                let near = one.iter().zip(&two).all(|(one, two)| (one - two).abs() <= 1e-4 * largest);
                assert!(near && largest > 0.0, "{limits:?}: the sides differ by more than 1e-4 of {largest}");
            }
        }
    }
}
