//! Runs networks in tests of steps, on the host and on a device, and compares the results.

use std::sync::OnceLock;

use crate::network::{Network, NetworkBuilder, ValueId, WordKind};
use crate::ops::context::Context;
use crate::ops::error::TensorError;

/// An input of a network.
#[derive(Clone, Copy)]
pub(in crate::network::steps) enum Given<'a> {
    Floats(&'a [f32], &'a [usize]),
    Integers(&'a [i32], &'a [usize]),
}

/// The words of one output on each side: the host and the device.
pub(in crate::network::steps) struct Made([Vec<u32>; 2]);

impl Made {
    /// The words of the host and of the device.
    pub(in crate::network::steps) fn sides(&self) -> [&[u32]; 2] {
        self.0.each_ref().map(Vec::as_slice)
    }
}

/// The contexts of both sides, which all tests share.
fn contexts() -> &'static [Context; 2] {
    static CONTEXTS: OnceLock<[Context; 2]> = OnceLock::new();
    CONTEXTS.get_or_init(|| {
        let device = vramp_gpu::Device::choose().open();
        let device = device.unwrap_or_else(|error| panic!("these tests need a device: {error}"));
        [Context::on_host(), Context::on(&device).unwrap()]
    })
}

/// Builds a network over these inputs on both sides and runs it. Returns each of its outputs. The same network over
/// known values, which is computed while it is built, must give the same words as the host.
#[track_caller]
pub(in crate::network::steps) fn both(
    given: &[Given<'_>],
    build: impl Fn(&mut NetworkBuilder, &[ValueId]) -> Result<Vec<ValueId>, TensorError>,
) -> Vec<Made> {
    let contexts = contexts();
    let [host, device] = contexts.each_ref().map(|context| {
        let mut net = NetworkBuilder::new(context);
        let (mut ids, mut tensors) = (Vec::new(), Vec::new());
        for one in given {
            let (kind, lengths) = match one {
                Given::Floats(_, lengths) => (WordKind::F32, lengths),
                Given::Integers(_, lengths) => (WordKind::I32, lengths),
            };
            ids.push(net.input(kind, lengths).unwrap());
            tensors.push(match one {
                Given::Floats(values, lengths) => context.tensor(values, lengths).unwrap(),
                Given::Integers(values, lengths) => context.tensor(values, lengths).unwrap(),
            });
        }
        let outputs = build(&mut net, &ids).unwrap();
        let mut network: Network = net.build(&outputs).unwrap();
        let made = network.run(&tensors).unwrap();
        made.iter().map(|tensor| bytemuck::pod_collect_to_vec(&tensor.read_bytes().unwrap())).collect::<Vec<Vec<u32>>>()
    });
    let mut net = NetworkBuilder::new(&contexts[0]);
    let known = given.iter().map(|one| match one {
        Given::Floats(values, lengths) => net.floats(values.to_vec(), lengths).unwrap(),
        Given::Integers(values, lengths) => net.integers(values.to_vec(), lengths).unwrap(),
    });
    let known: Vec<ValueId> = known.collect();
    let outputs = build(&mut net, &known).unwrap();
    for (output, host) in outputs.iter().zip(&host) {
        assert_eq!(&net.known(*output).expect("steps over known values are computed"), host, "known values");
    }
    host.into_iter().zip(device).map(|(host, device)| Made([host, device])).collect()
}

/// Fails unless both sides are within 3e-6 of the largest wanted magnitude.
#[track_caller]
pub(in crate::network::steps) fn close(made: &Made, wanted: &[f32], what: &str) {
    let largest = wanted.iter().filter(|x| x.is_finite()).fold(0.0_f32, |most, x| most.max(x.abs()));
    for (side, words) in ["host", "device"].into_iter().zip(&made.0) {
        assert_eq!(words.len(), wanted.len(), "{what} on the {side}");
        for (at, (got, want)) in words.iter().map(|word| f32::from_bits(*word)).zip(wanted).enumerate() {
            let is_same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            let off = (got - want).abs();
            assert!(is_same || off <= 3e-6 * largest, "{what} on the {side} at {at}: {got}, not {want}");
        }
    }
}

/// Fails unless both sides have these integers.
#[track_caller]
pub(in crate::network::steps) fn same(made: &Made, wanted: &[i32], what: &str) {
    for (side, words) in ["host", "device"].into_iter().zip(&made.0) {
        assert_eq!(bytemuck::cast_slice::<u32, i32>(words), wanted, "{what} on the {side}");
    }
}

/// Deterministic noise between -1 and 1.
pub(in crate::network::steps) fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    std::iter::repeat_with(step).take(count).collect()
}
