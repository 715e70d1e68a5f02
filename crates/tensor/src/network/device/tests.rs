//! The kernels against plain loops in f64, over small shapes.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use vramp_gpu::{Device, LimitSet, Player, Recording};

use super::conv::{ConvKernel, Form, Tile};
use super::depthwise::DepthwiseKernel;
use super::pool::{IndexOrder, PoolFold, PoolKernel};
use crate::network::step::{Bound, DeviceFacts, DeviceWork, WordKind};
use crate::network::window::Window;
use crate::ops::device::{Hook, MOST_ROUNDS};

struct TestDevice {
    device: Device,
    player: Mutex<Player>,
}

fn opened() -> &'static TestDevice {
    static OPENED: OnceLock<TestDevice> = OnceLock::new();
    OPENED.get_or_init(|| {
        let device = Device::choose().open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"));
        let player = Mutex::new(Player::on(&device).build().unwrap());
        TestDevice { device, player }
    })
}

fn facts(is_software: bool) -> DeviceFacts {
    let limits = *opened().device.limits();
    DeviceFacts { is_software, most_groups: limits.workgroups_per_dimension, limits }
}

/// The outputs of a step with these inputs. Every bit of the outputs and of temporary memory is 1 before.
#[track_caller]
fn outputs_of(work: &DeviceWork, inputs: &[&[f32]], words: &[usize]) -> Vec<Vec<u32>> {
    let TestDevice { device, player } = opened();
    let owner: Arc<str> = "test".into();
    let mut recording = Recording::new();
    let mut lend = |bytes: Vec<u8>| {
        let buffer = device.lend(bytes.len() as u64, &owner).unwrap();
        recording.upload(&buffer, bytes).unwrap();
        buffer
    };
    let filled = |words: &usize| vec![0xff_u8; words * 4];
    let read: Vec<_> = inputs.iter().map(|values| lend(bytemuck::cast_slice(values).to_vec())).collect();
    let temporary: Vec<_> = work.temporary.iter().map(|words| lend(filled(words))).collect();
    let written: Vec<_> = words.iter().map(|words| lend(filled(words))).collect();
    for dispatch in &work.dispatches {
        let kernel =
            device.prepare(&dispatch.shader).unwrap_or_else(|error| panic!("{error}\n{}", dispatch.shader.wgsl));
        let bound: Vec<_> = dispatch
            .buffers
            .iter()
            .map(|bound| match bound {
                Bound::Input(at) => &read[*at],
                Bound::Temporary(at) => &temporary[*at],
                Bound::Output(at) => &written[*at],
            })
            .collect();
        recording.dispatch(&kernel, &bound, dispatch.launch.params(), dispatch.launch.grid).unwrap();
    }
    for (buffer, words) in written.iter().zip(words) {
        recording.download_part(buffer, 0, *words as u64 * 4).unwrap();
    }
    let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
    player.play(&mut recording).unwrap();
    let arrived = player.readbacks().wait(Duration::from_mins(1)).unwrap().expect("downloads were requested");
    (0..words.len()).map(|at| bytemuck::pod_collect_to_vec(arrived.bytes(at))).collect()
}

#[track_caller]
fn results(work: &DeviceWork, inputs: &[&[f32]], count: usize) -> Vec<f32> {
    outputs_of(work, inputs, &[count]).remove(0).into_iter().map(f32::from_bits).collect()
}

/// Deterministic noise between -1 and 1.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let step = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    std::iter::repeat_with(step).take(count).collect()
}

/// Adds a side buffer, and multiplies by 2 plus the channel.
fn adding() -> Hook {
    let wgsl = "fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {
    return (v + bitcast<f32>(side0[at])) * f32(2u + col) + f32(row % 3u) * bitcast<f32>(p.hook[0].x);
}\n";
    Hook { wgsl: wgsl.into(), inputs: 1, vectors: 1 }
}

fn added(v: f64, side: f32, row: usize, col: usize) -> f64 {
    (v + f64::from(side)) * (2 + col) as f64 + (row % 3) as f64 * 0.5
}

/// The three coordinates of a position.
fn at(lengths: [usize; 3], place: usize) -> [usize; 3] {
    [place / (lengths[1] * lengths[2]), place / lengths[2] % lengths[1], place % lengths[2]]
}

fn flat(lengths: [usize; 3], at: [usize; 3]) -> usize {
    (at[0] * lengths[1] + at[1]) * lengths[2] + at[2]
}

/// A window over an input with the same padding at both ends.
fn window(input: [usize; 3], kernel: [usize; 3], stride: [usize; 3], dilation: [usize; 3], pad: [usize; 3]) -> Window {
    let output = std::array::from_fn(|axis| {
        (input[axis] + 2 * pad[axis] - (kernel[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1
    });
    Window { input, output, kernel, stride, dilation, pad }
}

fn transposed(
    input: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    pad: [usize; 3],
) -> Window {
    let output = std::array::from_fn(|axis| {
        (input[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1 - 2 * pad[axis]
    });
    Window { input, output, kernel, stride, dilation, pad }
}

/// For each output position and tap, the input position that meets them.
fn meets(window: &Window, is_transposed: bool, place: usize, tap: usize) -> Option<usize> {
    let (place, tap) = (at(window.output, place), at(window.kernel, tap));
    let mut seen = [0; 3];
    for axis in 0..3 {
        seen[axis] = if is_transposed {
            let ahead = (place[axis] + window.pad[axis]).checked_sub(tap[axis] * window.dilation[axis])?;
            let met = ahead / window.stride[axis];
            (ahead.is_multiple_of(window.stride[axis]) && met < window.input[axis]).then_some(met)?
        } else {
            window.seen(axis, place[axis], tap[axis])?
        };
    }
    Some(flat(window.input, seen))
}

fn convolved(kernel: &ConvKernel, x: &[f32], weights: &[f32], bias: Option<&[f32]>) -> Vec<f64> {
    let ConvKernel { window, batch, groups, inputs, outputs, transposed } = kernel;
    let (group_in, group_out, taps) = (inputs / groups, outputs / groups, window.taps());
    let mut out = Vec::new();
    for (image, place, output) in
        (0..*batch).flat_map(|n| (0..window.places()).flat_map(move |p| (0..*outputs).map(move |c| (n, p, c))))
    {
        let (group, of_group) = (output / group_out, output % group_out);
        let mut sum = bias.map_or(0.0, |bias| f64::from(bias[output]));
        for tap in 0..taps {
            let Some(met) = meets(window, *transposed, place, tap) else { continue };
            for input in 0..group_in {
                let row = if *transposed {
                    (group * group_in + input) * group_out + of_group
                } else {
                    output * group_in + input
                };
                let seen = x[(image * window.inputs() + met) * inputs + group * group_in + input];
                sum += f64::from(seen) * f64::from(weights[row * taps + tap]);
            }
        }
        out.push(sum);
    }
    out
}

#[track_caller]
fn assert_near(got: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    let largest = wanted.iter().fold(1e-30_f64, |most, v| most.max(v.abs()));
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!((f64::from(*got) - wanted).abs() <= 3e-6 * largest, "{what} at {at}: {got}, not {wanted}");
    }
}

fn check(kernel: &ConvKernel, tile: Option<Tile>, most_rounds: usize, is_software: bool) {
    let ConvKernel { window, batch, groups, inputs, outputs, .. } = *kernel;
    let x = noise(batch * window.inputs() * inputs, 1);
    let weights = noise(outputs * (inputs / groups) * window.taps(), 2);
    let bias = noise(outputs, 3);
    let count = batch * window.places() * outputs;
    let side = noise(count, 4);
    let packed = kernel.packed(&weights, Some(&bias));
    let facts = facts(is_software);
    let words = [0.5_f32.to_bits()];
    let work = match tile {
        Some(tile) => kernel.work_with(tile, most_rounds, &facts, adding(), &words),
        None => kernel.work(&facts, adding(), &words),
    };
    let got = results(&work, &[&x, &packed, &side], count);
    let wanted: Vec<f64> = convolved(kernel, &x, &weights, Some(&bias))
        .into_iter()
        .enumerate()
        .map(|(at, v)| added(v, side[at], at / outputs, at % outputs))
        .collect();
    assert_near(&got, &wanted, &format!("{kernel:?} {tile:?} {most_rounds}"));
}

/// Windows with one to three axes, with every kind of stride, dilation and padding.
fn windows() -> Vec<Window> {
    vec![
        window([1, 5, 7], [1, 1, 1], [1; 3], [1; 3], [0; 3]),
        window([1, 7, 6], [1, 3, 3], [1; 3], [1; 3], [0, 1, 1]),
        window([1, 9, 8], [1, 3, 3], [1, 2, 2], [1; 3], [0, 1, 0]),
        window([1, 9, 11], [1, 3, 2], [1; 3], [1, 2, 3], [0, 2, 1]),
        window([1, 1, 17], [1, 1, 5], [1, 1, 3], [1; 3], [0, 0, 2]),
        window([1, 5, 5], [1, 1, 1], [1, 2, 2], [1; 3], [0; 3]),
        window([4, 5, 6], [2, 3, 3], [1, 2, 1], [2, 1, 1], [1, 0, 2]),
    ]
}

#[test]
fn convolutions_are_the_sums_over_windows_and_channels() {
    for window in windows() {
        for (batch, groups, inputs, outputs) in [(1, 1, 8, 12), (2, 1, 3, 8), (1, 2, 8, 6), (2, 3, 9, 12), (1, 1, 4, 1)]
        {
            let kernel = ConvKernel { window, batch, groups, inputs, outputs, transposed: false };
            check(&kernel, None, MOST_ROUNDS, true);
        }
    }
}

#[test]
fn transposed_convolutions_are_the_sums_over_the_taps_that_hit() {
    let windows = [
        transposed([1, 4, 5], [1, 2, 2], [1, 2, 2], [1; 3], [0; 3]),
        transposed([1, 4, 3], [1, 3, 4], [1, 2, 3], [1; 3], [0, 1, 0]),
        transposed([1, 4, 3], [1, 3, 3], [1, 2, 1], [1, 2, 3], [0, 1, 2]),
        transposed([1, 1, 6], [1, 1, 2], [1, 1, 4], [1; 3], [0; 3]),
        transposed([3, 2, 3], [2, 3, 2], [2, 1, 3], [1, 2, 1], [0, 1, 0]),
    ];
    for window in windows {
        for (batch, groups, inputs, outputs) in [(1, 1, 8, 4), (2, 1, 3, 2), (1, 2, 8, 6), (1, 1, 8, 12)] {
            let kernel = ConvKernel { window, batch, groups, inputs, outputs, transposed: true };
            check(&kernel, None, MOST_ROUNDS, true);
            check(&kernel, None, MOST_ROUNDS, false);
        }
    }
}

#[test]
fn long_sums_take_several_dispatches() {
    let window = window([1, 5, 5], [1, 3, 3], [1; 3], [1; 3], [0, 1, 1]);
    for (inputs, most_rounds) in [(8, 20), (32, 5), (3, 4)] {
        let kernel = ConvKernel { window, batch: 1, groups: 1, inputs, outputs: 8, transposed: false };
        let tile = Tile { places: 4, channels: 4, form: Form::Registers };
        let work = kernel.work_with(tile, most_rounds, &facts(true), Hook::pass(), &[]);
        assert!(work.dispatches.len() > 2, "{inputs} {most_rounds}");
        check(&kernel, Some(tile), most_rounds, true);
    }
}

#[test]
fn depthwise_convolutions_are_the_sums_over_windows() {
    let more = [
        window([1, 7, 9], [1, 5, 5], [1; 3], [1; 3], [0, 2, 2]),
        window([1, 8, 9], [1, 5, 5], [1, 2, 2], [1; 3], [0, 1, 2]),
        window([1, 8, 9], [1, 3, 3], [1, 3, 3], [1; 3], [0, 1, 1]),
    ];
    for window in windows().into_iter().chain(more) {
        for (batch, channels) in [(1, 8), (2, 5)] {
            let kernel = DepthwiseKernel { window, batch, channels };
            let x = noise(batch * window.inputs() * channels, 1);
            let (weights, bias) = (noise(channels * window.taps(), 2), noise(channels, 3));
            let count = batch * window.places() * channels;
            let side = noise(count, 4);
            let work = kernel.work(&facts(true), adding(), &[0.5_f32.to_bits(), 0, 0, 0]);
            let got = results(&work, &[&x, &kernel.packed(&weights, Some(&bias)), &side], count);
            let same =
                ConvKernel { window, batch, groups: channels, inputs: channels, outputs: channels, transposed: false };
            let plain = convolved(&same, &x, &weights, Some(&bias)).into_iter().enumerate();
            let wanted: Vec<f64> = plain.map(|(at, v)| added(v, side[at], at / channels, at % channels)).collect();
            assert_near(&got, &wanted, &format!("{kernel:?}"));
        }
    }
}

/// Calls `taken` with the channel's number, the position and the taps' input positions of each result of a pool.
fn pooled<T>(kernel: &PoolKernel, taken: impl Fn(usize, usize, &[usize]) -> T) -> Vec<T> {
    let PoolKernel { window, batch, channels, .. } = *kernel;
    let mut made = Vec::new();
    for number in 0..batch * window.places() * channels {
        let (image, place, channel) =
            (number / channels / window.places(), number / channels % window.places(), number % channels);
        let met: Vec<usize> = (0..window.taps()).filter_map(|tap| meets(&window, false, place, tap)).collect();
        made.push(taken(image * channels + channel, place, &met));
    }
    made
}

#[test]
fn maxima_and_their_indices_are_those_of_the_window() {
    for window in windows() {
        for (batch, channels) in [(1, 8), (2, 3)] {
            for (order, kind) in [
                (Some(IndexOrder::RowMajor), WordKind::F32),
                (Some(IndexOrder::ColumnMajor), WordKind::I32),
                (None, WordKind::F32),
                (None, WordKind::I32),
            ] {
                let fold = PoolFold::Max { kind, indices: order };
                let kernel = PoolKernel { window, batch, channels, fold };
                // Whole numbers of a small range, so that there are equal maxima.
                let x: Vec<i32> = noise(batch * window.inputs() * channels, 5)
                    .into_iter()
                    .map(|v| (v * 9.0).floor() as i32)
                    .collect();
                let value = |of: usize, at: usize| x[(of / channels * window.inputs() + at) * channels + of % channels];
                let words: Vec<f32> = match kind {
                    WordKind::F32 => x.iter().map(|v| *v as f32).collect(),
                    WordKind::I32 => x.iter().map(|v| f32::from_bits(v.cast_unsigned())).collect(),
                };
                let wanted = pooled(&kernel, |of, _, met| {
                    let best = met.iter().copied().rev().max_by_key(|at| value(of, *at)).unwrap();
                    let [d, h, w] = at(window.input, best);
                    let index = match order {
                        Some(IndexOrder::ColumnMajor) => d + window.input[0] * (h + window.input[1] * w),
                        _ => best,
                    };
                    (value(of, best), (of * window.inputs() + index) as u32)
                });
                let sizes = vec![wanted.len(); if order.is_some() { 2 } else { 1 }];
                let got = outputs_of(&kernel.work(&facts(true), &Hook::pass(), &[]), &[&words], &sizes);
                for (number, (best, index)) in wanted.into_iter().enumerate() {
                    let made = match kind {
                        WordKind::F32 => f32::from_bits(got[0][number]) as i32,
                        WordKind::I32 => got[0][number].cast_signed(),
                    };
                    assert_eq!(made, best, "{kernel:?} at {number}");
                    assert!(got.get(1).is_none_or(|got| got[number] == index), "{kernel:?} at {number}: index");
                }
            }
        }
    }
}

#[test]
fn means_count_the_taps_inside_the_input_or_inside_the_padded_input() {
    for window in windows() {
        for (batch, channels) in [(1, 8), (2, 3)] {
            for counted_end in [None, Some([0, 1, 1]), Some([0; 3])] {
                let kernel = PoolKernel { window, batch, channels, fold: PoolFold::Average { counted_end } };
                let x = noise(batch * window.inputs() * channels, 6);
                let count = batch * window.places() * channels;
                let side = noise(count, 4);
                let wanted: Vec<f64> = pooled(&kernel, |of, place, met| {
                    let values = met
                        .iter()
                        .map(|at| f64::from(x[(of / channels * window.inputs() + at) * channels + of % channels]));
                    let place = at(window.output, place);
                    let counted = (0..window.taps()).filter(|tap| {
                        let tap = at(window.kernel, *tap);
                        (0..3).all(|axis| {
                            let seen = place[axis] * window.stride[axis] + tap[axis] * window.dilation[axis];
                            counted_end.is_some_and(|end| seen < window.pad[axis] + window.input[axis] + end[axis])
                        })
                    });
                    let number = if counted_end.is_some() { counted.count() } else { met.len() };
                    values.sum::<f64>() / number as f64
                });
                let wanted: Vec<f64> = wanted
                    .into_iter()
                    .enumerate()
                    .map(|(at, v)| added(v, side[at], at / channels, at % channels))
                    .collect();
                let work = kernel.work(&facts(true), &adding(), &[0.5_f32.to_bits(), 0, 0, 0]);
                assert_near(&results(&work, &[&x, &side], count), &wanted, &format!("{kernel:?}"));
            }
        }
    }
}

#[test]
fn the_limits_of_webgpu_and_of_older_devices_are_enough() {
    let window = window([2, 9, 9], [1, 3, 3], [1; 3], [1; 3], [0, 1, 1]);
    let plain = ConvKernel { window, batch: 1, groups: 1, inputs: 8, outputs: 12, transposed: false };
    let turned = ConvKernel { transposed: true, ..plain };
    let narrow = ConvKernel { inputs: 3, outputs: 3, ..plain };
    let depthwise = DepthwiseKernel { window, batch: 1, channels: 8 };
    let fold = PoolFold::Max { kind: WordKind::F32, indices: Some(IndexOrder::RowMajor) };
    let pool = PoolKernel { window, batch: 1, channels: 8, fold };
    for limits in [LimitSet::WebGpu, LimitSet::Downlevel] {
        let device = Device::choose().limits(limits).open().unwrap();
        for is_software in [true, false] {
            let most_groups = device.limits().workgroups_per_dimension;
            let facts = DeviceFacts { is_software, limits: *device.limits(), most_groups };
            let words = [0; 4];
            for work in [
                plain.work(&facts, adding(), &words),
                turned.work(&facts, adding(), &words),
                narrow.work(&facts, adding(), &words),
                depthwise.work(&facts, adding(), &words),
                pool.work(&facts, &adding(), &words),
            ] {
                for dispatch in work.dispatches {
                    device.prepare(&dispatch.shader).unwrap_or_else(|error| panic!("{limits:?}: {error}"));
                }
            }
        }
    }
}
