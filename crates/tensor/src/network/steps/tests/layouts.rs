//! Runs networks in tests of steps that move values: with inputs that lie straight, with channels last, and known, on the
//! host and on a device. All must give the same results.

use std::sync::OnceLock;

use vramp_gpu::Device;

use crate::network::{NetworkBuilder, ValueId, WordKind};
use crate::ops::context::Context;

/// An input of a test.
#[derive(Debug, Clone)]
pub(in crate::network::steps) struct Words {
    pub(in crate::network::steps) kind: WordKind,
    pub(in crate::network::steps) bits: Vec<u32>,
    pub(in crate::network::steps) lengths: Vec<usize>,
}

impl Words {
    pub(in crate::network::steps) fn floats(values: &[f32], lengths: &[usize]) -> Words {
        assert_eq!(values.len(), lengths.iter().product::<usize>());
        Words { kind: WordKind::F32, bits: bytemuck::pod_collect_to_vec(values), lengths: lengths.to_vec() }
    }

    pub(in crate::network::steps) fn integers(values: &[i32], lengths: &[usize]) -> Words {
        assert_eq!(values.len(), lengths.iter().product::<usize>());
        Words { kind: WordKind::I32, bits: bytemuck::pod_collect_to_vec(values), lengths: lengths.to_vec() }
    }

    /// Different floats of both signs.
    pub(in crate::network::steps) fn noise(lengths: &[usize], seed: u32) -> Words {
        Words::floats(&super::trial::noise(lengths.iter().product(), seed), lengths)
    }

    /// The float at a place.
    pub(in crate::network::steps) fn float(&self, place: &[usize]) -> f32 {
        f32::from_bits(self.bits[index_of(place, &self.lengths)])
    }
}

/// The index of a place in straight values of these lengths.
pub(in crate::network::steps) fn index_of(place: &[usize], lengths: &[usize]) -> usize {
    assert!(place.len() == lengths.len() && place.iter().zip(lengths).all(|(at, length)| at < length));
    place.iter().zip(lengths).fold(0, |at, (place, length)| at * length + place)
}

/// Straight values of these lengths, computed from their places.
pub(in crate::network::steps) fn by_place<T>(lengths: &[usize], value: impl Fn(&[usize]) -> T) -> Vec<T> {
    let mut place = vec![0; lengths.len()];
    let count = lengths.iter().product::<usize>();
    let each = (0..count).map(|at| {
        let mut rest = at;
        for axis in (0..lengths.len()).rev() {
            place[axis] = rest % lengths[axis];
            rest /= lengths[axis];
        }
        value(&place)
    });
    each.collect()
}

/// The host with one and with three threads, and a device.
pub(in crate::network::steps) fn contexts() -> [Context; 3] {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    let open = || Device::choose().open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"));
    let on_device = Context::on(DEVICE.get_or_init(open)).unwrap();
    [Context::builder().threads(1).on_host(), Context::builder().threads(3).on_host(), on_device]
}

/// How inputs come into a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Straight,
    ChannelsLast,
    /// Known values, so that everything is computed while the network is built.
    Known,
}

/// Adds the steps of a test to a network.
pub(in crate::network::steps) type Build<'a> = &'a dyn Fn(&mut NetworkBuilder, &[ValueId]) -> Vec<ValueId>;

/// Fails unless the network has these outputs in every layout and on every side. Floats may differ by 3e-6 of the largest,
/// unless `is_exact`.
#[track_caller]
pub(in crate::network::steps) fn check(given: &[Words], is_exact: bool, wanted: &[Words], build: Build<'_>) {
    for (side, context) in contexts().iter().enumerate() {
        for layout in [Layout::Straight, Layout::ChannelsLast, Layout::Known] {
            let made = run(context, given, layout, build);
            let what = format!("side {side}, {layout:?}");
            assert_eq!(made.len(), wanted.len(), "{what}");
            for (made, wanted) in made.iter().zip(wanted) {
                assert_eq!(made.lengths, wanted.lengths, "{what}");
                assert_eq!(made.kind, wanted.kind, "{what}");
                compare(made, wanted, is_exact, &what);
            }
        }
    }
}

#[track_caller]
fn compare(made: &Words, wanted: &Words, is_exact: bool, what: &str) {
    if is_exact || wanted.kind == WordKind::I32 {
        let wrong = made.bits.iter().zip(&wanted.bits).position(|(made, wanted)| made != wanted);
        let at = wrong.unwrap_or(0);
        assert_eq!(wrong, None, "{what}: {:?} instead of {:?}", made.bits.get(at), wanted.bits.get(at));
        return;
    }
    let floats = |bits: &[u32]| -> Vec<f32> { bytemuck::pod_collect_to_vec(bits) };
    let (made, wanted) = (floats(&made.bits), floats(&wanted.bits));
    let most = wanted.iter().filter(|v| v.is_finite()).fold(0.0_f32, |most, v| most.max(v.abs()));
    for (at, (made, wanted)) in made.iter().zip(&wanted).enumerate() {
        let same = made.to_bits() == wanted.to_bits() || (made.is_nan() && wanted.is_nan());
        assert!(same || (made - wanted).abs() <= 3e-6 * most, "{what}: {made} instead of {wanted} at {at}");
    }
}

#[track_caller]
fn run(context: &Context, given: &[Words], layout: Layout, build: Build<'_>) -> Vec<Words> {
    let mut net = NetworkBuilder::new(context);
    let (mut values, mut tensors) = (Vec::new(), Vec::new());
    for Words { kind, bits, lengths } in given {
        let tensor = |words: &[u32]| {
            context.tensor_from_bytes(bytemuck::cast_slice(words), &[words.len()], kind.dtype()).unwrap()
        };
        let turns = layout == Layout::ChannelsLast && lengths.len() > 2 && !bits.is_empty();
        if layout == Layout::Known {
            values.push(match kind {
                WordKind::F32 => net.floats(bytemuck::pod_collect_to_vec(bits), lengths).unwrap(),
                WordKind::I32 => net.integers(bytemuck::pod_collect_to_vec(bits), lengths).unwrap(),
            });
        } else if turns {
            // The input has its channels last, and the value is a view of it.
            let mut own = lengths.clone();
            let channels = own.remove(1);
            own.push(channels);
            let input = net.input(*kind, &own).unwrap();
            let last = own.len() - 1;
            let order: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
            values.push(net.permuted(input, &order));
            let place_of = |place: &[usize]| -> Vec<usize> { order.iter().map(|axis| place[*axis]).collect() };
            tensors.push(tensor(&by_place(&own, |place| bits[index_of(&place_of(place), lengths)])));
        } else {
            values.push(net.input(*kind, lengths).unwrap());
            tensors.push(tensor(bits));
        }
    }
    let outputs = build(&mut net, &values);
    let kinds: Vec<_> = outputs.iter().map(|output| (net.kind(*output), net.lengths(*output).to_vec())).collect();
    let mut network = net.build(&outputs).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
    let made = network.run(&tensors).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
    let words = made.iter().map(|tensor| bytemuck::pod_collect_to_vec(&tensor.read_bytes().unwrap()));
    kinds.into_iter().zip(words).map(|((kind, lengths), bits)| Words { kind, bits, lengths }).collect()
}
