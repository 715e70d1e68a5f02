//! The largest or smallest values along an axis, sorted, with their positions.
//!
//! The device sorts blocks of each row by counting, for each value, the values of the block that come before it. If a row
//! has several blocks, it then finds the place of each candidate by binary search in the sorted blocks.
//!
//! Invariant: among equal values, also among NaN, the lower position comes first.

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::ValueId;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{KernelText, Launch, MATH, MOST_ROUNDS};
use crate::ops::error::TensorError;
use crate::ops::shape::Around;

use super::arg::{NanRank, Ranking};
use super::by_word::with_length;

const OP: &str = "top k";

/// Values per block on a device. Longer blocks take more comparisons, shorter blocks take more searches.
#[cfg(not(target_arch = "wasm32"))]
const BLOCK: usize = 1024;

/// The longest row on a device: an invocation searches each block in at most 11 rounds.
#[cfg(not(target_arch = "wasm32"))]
const MOST_LENGTH: usize = BLOCK * (MOST_ROUNDS / 12);

#[derive(Debug)]
struct TopK {
    around: Around,
    k: usize,
    ranking: Ranking,
}

impl NetworkBuilder {
    /// The `k` largest or smallest values along an axis, best first, and their positions as i32. NaN counts as the largest
    /// number.
    pub fn top_k(
        &mut self,
        x: ValueId,
        axis: usize,
        k: usize,
        largest: bool,
    ) -> Result<(ValueId, ValueId), TensorError> {
        let ranking = Ranking { kind: self.kind(x), largest, nan: NanRank::Largest };
        self.ranked(x, axis, k, ranking)
    }

    /// Like [`top_k`](Self::top_k) for the largest values, with NaN after every number.
    pub fn top_numbers(&mut self, x: ValueId, axis: usize, k: usize) -> Result<(ValueId, ValueId), TensorError> {
        let ranking = Ranking { kind: self.kind(x), largest: true, nan: NanRank::Last };
        self.ranked(x, axis, k, ranking)
    }

    fn ranked(
        &mut self,
        x: ValueId,
        axis: usize,
        k: usize,
        ranking: Ranking,
    ) -> Result<(ValueId, ValueId), TensorError> {
        self.has_axis(OP, x, axis)?;
        let length = self.lengths(x)[axis];
        if k > length {
            let problem = format!("{k} values are wanted of an axis of {length}");
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        #[cfg(not(target_arch = "wasm32"))]
        if length > MOST_LENGTH && !self.is_known(x) && self.context.device().is_some() {
            let problem = format!("an axis of {length} values; a device sorts at most {MOST_LENGTH}");
            return Err(TensorError::NotSupported { op: OP, problem });
        }
        let kind = ranking.kind;
        let lengths = with_length(self.lengths(x), axis, k);
        let along = self.along_axis(x, axis)?;
        let step = TopK { around: along.around, k, ranking };
        let new = |kind| NewValue { kind, lengths: &lengths, order: along.order.clone() };
        let made = self.add(step, &[along.memory], vec![new(kind), new(WordKind::I32)])?;
        Ok((made[0], made[1]))
    }
}

impl Step for TopK {
    fn name(&self) -> &'static str {
        OP
    }

    /// A pair of words for each value of a row.
    fn scratch(&self, _: usize) -> usize {
        2 * self.around.length
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let Around { outer, length, inner } = self.around;
        let [values, positions] = call.outputs else { unreachable!("values and positions") };
        let (pairs, _) = call.scratch.as_chunks_mut::<2>();
        for row in 0..outer * inner {
            let (first, column) = (row / inner, row % inner);
            let x = &call.inputs[0][first * length * inner + column..];
            for (at, (pair, word)) in pairs.iter_mut().zip(x.iter().step_by(inner)).enumerate() {
                // Inverted, because pairs are sorted from the lowest to the highest.
                *pair = [!self.ranking.key(*word), at as u32];
            }
            if self.k > 0 && self.k < length {
                pairs.select_nth_unstable(self.k - 1);
            }
            pairs[..self.k].sort_unstable();
            for (rank, [_, at]) in pairs[..self.k].iter().enumerate() {
                let to = (first * self.k + rank) * inner + column;
                values[to] = x[*at as usize * inner];
                positions[to] = *at;
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let Around { outer, length, inner } = self.around;
        let rows = outer * inner;
        let output = [Bound::Output(0), Bound::Output(1)];
        if length <= 2 * BLOCK {
            return DeviceWork {
                temporary: Vec::new(),
                dispatches: vec![self.sort_blocks(length, inner, output, facts)],
            };
        }
        let blocks = length.div_ceil(BLOCK);
        let kept = self.k.min(BLOCK);
        let sorted = [Bound::Temporary(0), Bound::Temporary(1)];
        let dispatches = vec![self.sort_blocks(BLOCK, 1, sorted, facts), self.join_blocks(sorted, output, facts)];
        DeviceWork { temporary: vec![rows * blocks * kept; 2], dispatches }
    }
}

#[cfg(not(target_arch = "wasm32"))]
const MAIN: &str = "
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = (group.x + group.y * groups.x) * 64u + local;
    if number >= p.count { return; }
";

#[cfg(not(target_arch = "wasm32"))]
impl TopK {
    /// The dispatch that sorts each block of a row and keeps the first values of each. Neighbours of a sorted block are
    /// `apart` values apart: 1, or `inner` for a block that is a whole row of the result.
    fn sort_blocks(&self, block: usize, apart: usize, into: [Bound; 2], facts: &DeviceFacts) -> Dispatch {
        let Around { outer, length, inner } = self.around;
        let kept = self.k.min(block);
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.write("values", "u32");
        text.write("places", "u32");
        text.params(&["count", "length", "inner", "block", "blocks", "kept", "apart"], 0);
        text.push(MATH);
        text.push(&self.ranking.wgsl());
        text.push(&format!(
            "{MAIN}
    let row = quotient(number, p.length);
    let at = number - row * p.length;
    let outer = quotient(row, p.inner);
    let column = row - outer * p.inner;
    let base = outer * p.length * p.inner + column;
    let block = quotient(at, p.block);
    let word = in0[base + at * p.inner];
    let own = key(word);
    var rank = 0u;
    let end = min((block + 1u) * p.block, p.length);
    for (var other = block * p.block; other < end; other++) {{
        let k = key(in0[base + other * p.inner]);
        rank += select(0u, 1u, k > own || (k == own && other < at));
    }}
    if rank < p.kept {{
        let list = select(row * p.blocks + block, outer, p.apart > 1u);
        let to = (list * p.kept + rank) * p.apart + select(0u, column, p.apart > 1u);
        values[to] = word;
        places[to] = at;
    }}
}}"
        ));
        let name = format!("sort blocks {}", self.ranking.name());
        let count = outer * length * inner;
        let words = [count, length, inner, block, length.div_ceil(block.max(1)), kept, apart];
        Dispatch {
            key: name.clone(),
            shader: text.shader(name, 64),
            buffers: [Bound::Input(0)].into_iter().chain(into).collect(),
            launch: Launch::new(&words.map(|number| number as u32), count.div_ceil(64) as u64, facts.most_groups),
        }
    }

    /// The dispatch that finds the rank of each candidate among the candidates of its row.
    fn join_blocks(&self, from: [Bound; 2], into: [Bound; 2], facts: &DeviceFacts) -> Dispatch {
        let Around { outer, length, inner } = self.around;
        let (blocks, kept) = (length.div_ceil(BLOCK), self.k.min(BLOCK));
        let last = kept.min(length - (blocks - 1) * BLOCK);
        let mut text = KernelText::new();
        text.read("sorted", "u32");
        text.read("places_of", "u32");
        text.write("values", "u32");
        text.write("places", "u32");
        text.params(&["count", "inner", "blocks", "kept", "last", "k"], 0);
        text.push(MATH);
        text.push(&self.ranking.wgsl());
        text.push(&format!(
            "{MAIN}
    let list = quotient(number, p.kept);
    var rank = number - list * p.kept;
    let row = quotient(list, p.blocks);
    let own_block = list - row * p.blocks;
    if own_block == p.blocks - 1u && rank >= p.last {{ return; }}
    let word = sorted[number];
    let own = key(word);
    let first = row * p.blocks;
    for (var block = 0u; block < p.blocks; block++) {{
        if block == own_block {{ continue; }}
        var low = (first + block) * p.kept;
        let start = low;
        var high = low + select(p.kept, p.last, block == p.blocks - 1u);
        while low < high {{
            let middle = (low + high) / 2u;
            let k = key(sorted[middle]);
            // Positions in earlier blocks are lower.
            if k > own || (k == own && block < own_block) {{ low = middle + 1u; }} else {{ high = middle; }}
        }}
        rank += low - start;
    }}
    if rank < p.k {{
        let outer = quotient(row, p.inner);
        let to = (outer * p.k + rank) * p.inner + (row - outer * p.inner);
        values[to] = word;
        places[to] = places_of[number];
    }}
}}"
        ));
        let name = format!("join sorted blocks {}", self.ranking.name());
        let count = outer * inner * blocks * kept;
        let words = [count, inner, blocks, kept, last, self.k].map(|number| number as u32);
        Dispatch {
            key: name.clone(),
            shader: text.shader(name, 64),
            buffers: from.into_iter().chain(into).collect(),
            launch: Launch::new(&words, count.div_ceil(64) as u64, facts.most_groups),
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "the numbers of these tests are small")]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check, index_of};
    use super::super::tests::trial::noise;
    use super::*;

    #[test]
    fn the_best_values_are_sorted_and_equal_values_keep_their_order() {
        for (lengths, axis, k) in [
            (vec![1], 0, 1),
            (vec![9], 0, 0),
            (vec![9], 0, 9),
            (vec![4, 6], 0, 3),
            (vec![2, 30, 3], 1, 7),
            (vec![1, 3, 5, 4], 1, 2),
            (vec![2, 3, 2, 2, 40], 4, 5),
            (vec![2, 2050], 1, 20),
            (vec![3000, 2], 0, 1500),
            (vec![0, 3], 1, 2),
        ] {
            let count: usize = lengths.iter().product();
            let numbers: Vec<i32> = noise(count, 7).iter().map(|v| (v * 900.0) as i32).collect();
            let floats: Vec<f32> = numbers.iter().map(|v| *v as f32 / 8.0).collect();
            for largest in [true, false] {
                let mut out = lengths.clone();
                out[axis] = k;
                let at = |place: &[usize], at: usize| {
                    let mut from = place.to_vec();
                    from[axis] = at;
                    index_of(&from, &lengths)
                };
                // The order of each row, by the row's first value.
                let mut orders = std::collections::BTreeMap::new();
                let rows = by_place(&out, |place| (at(place, 0), place[axis], place.to_vec()));
                let places: Vec<(i32, usize)> = rows
                    .iter()
                    .map(|(row, rank, place)| {
                        let order = orders.entry(*row).or_insert_with(|| {
                            let mut order: Vec<usize> = (0..lengths[axis]).collect();
                            order.sort_by_key(|from| numbers[at(place, *from)] * if largest { -1 } else { 1 });
                            order
                        });
                        (order[*rank] as i32, at(place, order[*rank]))
                    })
                    .collect();
                let indices: Vec<i32> = places.iter().map(|place| place.0).collect();
                let indices = Words::integers(&indices, &out);
                let picked: Vec<f32> = places.iter().map(|place| floats[place.1]).collect();
                let picked_numbers: Vec<i32> = places.iter().map(|place| numbers[place.1]).collect();
                for (x, values) in [
                    (Words::floats(&floats, &lengths), Words::floats(&picked, &out)),
                    (Words::integers(&numbers, &lengths), Words::integers(&picked_numbers, &out)),
                ] {
                    check(&[x], true, &[values, indices.clone()], &|net, x| {
                        let (values, indices) = net.top_k(x[0], axis, k, largest).unwrap();
                        vec![values, indices]
                    });
                }
            }
        }
    }

    #[test]
    fn nan_comes_first_as_the_largest_number_or_after_every_number() {
        let nan = f32::NAN;
        // A row of one block, and one of several.
        for length in [6, 2_500] {
            let mut x = vec![f32::NEG_INFINITY; length];
            (x[1], x[2], x[4], x[5]) = (nan, 3.0, -nan, 7.0);
            let given = [Words::floats(&x, &[length])];
            let places = |of: [i32; 5]| Words::integers(&of, &[5]);
            check(&given, true, &[places([1, 4, 5, 2, 0])], &|net, x| vec![net.top_k(x[0], 0, 5, true).unwrap().1]);
            let last = if length == 6 { [5, 2, 0, 3, 1] } else { [5, 2, 0, 3, 6] };
            check(&given, true, &[places(last)], &|net, x| vec![net.top_numbers(x[0], 0, 5).unwrap().1]);
        }
    }

    #[test]
    fn more_values_than_there_are_cannot_be_wanted() {
        let mut net = NetworkBuilder::new(&crate::Context::on_host());
        let x = net.input(WordKind::F32, &[4]).unwrap();
        assert!(net.top_k(x, 0, 5, true).is_err() && net.top_k(x, 1, 1, true).is_err());
    }
}
