//! Non-maximum suppression: of boxes that overlap, only the one with the best score is selected.
//!
//! On a device, one workgroup per batch and class selects a box per round: its lanes suppress what overlaps the last
//! selected box, and find the best remaining score. A last dispatch joins the selections of all classes.
//!
//! Invariants: boxes are selected by falling score, among equal scores by rising index. NaN is never selected.

use smallvec::SmallVec;

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::{Lengths, MemoryId, ValueId};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{KernelText, Launch, MATH, MOST_ROUNDS};
use crate::ops::error::TensorError;

use super::arg::{NanRank, Ranking};

const OP: &str = "non max suppression";

/// Maximum number of dispatches that select boxes.
#[cfg(not(target_arch = "wasm32"))]
const MOST_DISPATCHES: usize = 64;

/// Workgroup size.
#[cfg(not(target_arch = "wasm32"))]
const LANES: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Suppress {
    batches: usize,
    classes: usize,
    boxes: usize,
    /// Maximum number of boxes per batch and class.
    most: usize,
    /// Boxes that overlap more than this are suppressed.
    overlap: f32,
    /// Boxes must have a higher score than this.
    score: Option<f32>,
    center_point: bool,
    /// Whether boxes have kinds; boxes of different kinds do not suppress each other.
    has_kinds: bool,
}

impl NetworkBuilder {
    /// The boxes that remain when boxes that overlap a better one are dropped, per batch and class: `[rows, 3]` batch,
    /// class and box as i32, the unused rows -1, and the number of used rows, as `[1]`. There are
    /// `batches * classes * min(most_per_class, boxes)` rows. Boxes are `[batches, boxes, 4]`: two opposite corners as
    /// (y, x, y, x), or the center and the size as (x, y, width, height). Scores are `[batches, classes, boxes]`.
    pub fn non_max_suppression(
        &mut self,
        boxes: ValueId,
        scores: ValueId,
        most_per_class: usize,
        iou: f32,
        score: Option<f32>,
        center_point: bool,
    ) -> Result<(ValueId, ValueId), TensorError> {
        let step = Suppress {
            batches: 0,
            classes: 0,
            boxes: 0,
            most: most_per_class,
            overlap: iou,
            score,
            center_point,
            has_kinds: false,
        };
        self.suppressed(step, boxes, scores, None)
    }

    /// Like [`non_max_suppression`](Self::non_max_suppression), for boxes `[boxes, 4]` of several kinds with one score
    /// each: a box is dropped only for a better box of its own kind. Scores and kinds are `[boxes]`; at most `most` boxes
    /// remain in all.
    pub fn suppression_by_kind(
        &mut self,
        [boxes, scores, kinds]: [ValueId; 3],
        most: usize,
        iou: f32,
        score: Option<f32>,
    ) -> Result<(ValueId, ValueId), TensorError> {
        let count = self.lengths(scores).iter().product();
        if self.lengths(kinds) != [count] || self.kind(kinds) != WordKind::F32 {
            let problem =
                format!("{:?} kinds of {}; expected [{count}] of f32", self.lengths(kinds), self.kind(kinds).dtype());
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        let boxes = self.reshaped(boxes, &[1, count, 4])?;
        let scores = self.reshaped(scores, &[1, 1, count])?;
        let step = Suppress {
            batches: 0,
            classes: 0,
            boxes: 0,
            most,
            overlap: iou,
            score,
            center_point: false,
            has_kinds: true,
        };
        self.suppressed(step, boxes, scores, Some(kinds))
    }

    /// Adds the step for these boxes and scores, after checking them.
    fn suppressed(
        &mut self,
        limits: Suppress,
        boxes: ValueId,
        scores: ValueId,
        kinds: Option<ValueId>,
    ) -> Result<(ValueId, ValueId), TensorError> {
        let of = [Lengths::from_slice(self.lengths(boxes)), Lengths::from_slice(self.lengths(scores))];
        let [Ok::<[usize; 3], _>([batches, count, 4]), Ok::<[usize; 3], _>([same_batches, classes, same_count])] =
            [of[0].as_slice().try_into(), of[1].as_slice().try_into()]
        else {
            return Err(mismatch(&of));
        };
        if (batches, count) != (same_batches, same_count) {
            return Err(mismatch(&of));
        }
        for value in [boxes, scores] {
            if self.kind(value) != WordKind::F32 {
                return Err(TensorError::WrongType { op: OP, has: self.kind(value).dtype(), wants: "f32" });
            }
        }
        let most = limits.most.min(count);
        let step = Suppress { batches, classes, boxes: count, most, ..limits };
        let is_known = [Some(boxes), Some(scores), kinds].into_iter().flatten().all(|value| self.is_known(value));
        #[cfg(not(target_arch = "wasm32"))]
        if !is_known && self.context.device().is_some() {
            step.fits_a_device()?;
        }
        let _ = is_known;
        let rows = [batches * classes * most, 3];
        let mut memories = SmallVec::<[MemoryId; 3]>::new();
        for value in [Some(boxes), Some(scores), kinds].into_iter().flatten() {
            memories.push(self.straight(value)?);
        }
        let outputs = vec![NewValue::straight(WordKind::I32, &rows), NewValue::straight(WordKind::I32, &[1])];
        let made = self.add(step, &memories, outputs)?;
        Ok((made[0], made[1]))
    }
}

fn mismatch(of: &[Lengths; 2]) -> TensorError {
    let problem = format!(
        "boxes are {:?} and scores {:?}; expected [batches, boxes, 4] and [batches, classes, boxes]",
        of[0].as_slice(),
        of[1].as_slice()
    );
    TensorError::Mismatch { op: OP, problem }
}

/// Two opposite corners of a box, the lower one first.
#[derive(Clone, Copy)]
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
}

impl Corners {
    fn of(words: &[f32], center_point: bool) -> Corners {
        let [a, b, c, d] = [words[0], words[1], words[2], words[3]];
        let (one, two) =
            if center_point { ([a - c / 2.0, b - d / 2.0], [a + c / 2.0, b + d / 2.0]) } else { ([a, b], [c, d]) };
        Corners { low: [one[0].min(two[0]), one[1].min(two[1])], high: [one[0].max(two[0]), one[1].max(two[1])] }
    }

    fn area(self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// True if the boxes share more than `most` of the area that they cover together.
    fn overlaps(self, other: Corners, most: f32) -> bool {
        let side = |axis: usize| self.high[axis].min(other.high[axis]) - self.low[axis].max(other.low[axis]);
        let (one, two) = (side(0), side(1));
        if one <= 0.0 || two <= 0.0 {
            return false;
        }
        let shared = one * two;
        let all = self.area() + other.area() - shared;
        self.area() > 0.0 && other.area() > 0.0 && all > 0.0 && shared / all > most
    }
}

impl Step for Suppress {
    fn name(&self) -> &'static str {
        OP
    }

    /// A pair of words for each box.
    fn scratch(&self, _: usize) -> usize {
        2 * self.boxes
    }

    fn work(&self) -> u64 {
        let factors = [self.batches, self.classes, self.boxes, self.most.min(self.boxes)];
        factors.iter().fold(1, |work: u64, factor| work.saturating_mul(*factor as u64))
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let (boxes, scores) = (call.floats(0), call.floats(1));
        let ranking = Ranking { kind: WordKind::F32, largest: true, nan: NanRank::Largest };
        let [rows, used] = call.outputs else { unreachable!("rows and their number") };
        let kinds = call.inputs.get(2);
        let are_alike = |one: u32, other: u32| kinds.is_none_or(|kinds| kinds[one as usize] == kinds[other as usize]);
        let (pairs, _) = call.scratch.as_chunks_mut::<2>();
        let (rows, _) = rows.as_chunks_mut::<3>();
        let mut filled = 0;
        for group in 0..self.batches * self.classes {
            let (batch, class) = (group / self.classes, group % self.classes);
            let corners =
                |at: u32| Corners::of(&boxes[(batch * self.boxes + at as usize) * 4..][..4], self.center_point);
            let mut candidates = 0;
            for (at, score) in scores[group * self.boxes..][..self.boxes].iter().enumerate() {
                if self.score.map_or(!score.is_nan(), |least| *score > least) {
                    pairs[candidates] = [!ranking.key(score.to_bits()), at as u32];
                    candidates += 1;
                }
            }
            pairs[..candidates].sort_unstable();
            let start = filled;
            for [_, at] in &pairs[..candidates] {
                if filled - start == self.most {
                    break;
                }
                let own = corners(*at);
                let suppresses = |row: &[u32; 3]| are_alike(*at, row[2]) && own.overlaps(corners(row[2]), self.overlap);
                if !rows[start..filled].iter().any(suppresses) {
                    rows[filled] = [batch as u32, class as u32, *at];
                    filled += 1;
                }
            }
        }
        rows[filled..].fill([u32::MAX; 3]);
        used[0] = filled as u32;
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let groups = self.batches * self.classes;
        let picks = self.picks();
        let mut dispatches = Vec::new();
        for first in (0..self.most).step_by(picks) {
            dispatches.push(self.select(first, picks.min(self.most - first), facts));
        }
        dispatches.push(self.join(facts));
        DeviceWork { temporary: vec![(groups * self.stride()).max(1)], dispatches }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Suppress {
    /// Boxes that a dispatch selects. A lane looks at its share of the boxes in each round, and joins the lanes' results
    /// in 17 rounds.
    fn picks(&self) -> usize {
        (MOST_ROUNDS / (self.boxes.div_ceil(LANES) + 17)).max(1)
    }

    /// Words of state per batch and class: the number of selected boxes, the last one, whether each box remains, and the
    /// selected boxes.
    fn stride(&self) -> usize {
        2 + self.boxes + self.most
    }

    fn fits_a_device(&self) -> Result<(), TensorError> {
        let groups = self.batches * self.classes;
        let dispatches = self.most.div_ceil(self.picks());
        if dispatches <= MOST_DISPATCHES && groups <= MOST_ROUNDS && self.boxes <= LANES * MOST_ROUNDS / 2 {
            return Ok(());
        }
        let problem = format!(
            "{} of {} boxes in {groups} classes take {dispatches} dispatches, at most {MOST_DISPATCHES} dispatches and \
             {MOST_ROUNDS} classes are possible on a device; select fewer boxes per class, or run on the host",
            self.most, self.boxes
        );
        Err(TensorError::NotSupported { op: OP, problem })
    }

    /// The dispatch that selects `picks` more boxes of each batch and class, after `first` boxes.
    fn select(&self, first: usize, picks: usize, facts: &DeviceFacts) -> Dispatch {
        let groups = self.batches * self.classes;
        let ranking = Ranking { kind: WordKind::F32, largest: true, nan: NanRank::Largest };
        let mut text = KernelText::new();
        text.read("boxes_of", "vec4<f32>");
        text.read("scores", "u32");
        if self.has_kinds {
            text.read("kinds", "u32");
        }
        text.write("state", "u32");
        let names =
            ["groups", "classes", "boxes", "stride", "first", "picks", "overlap", "score", "has_score", "center_point"];
        text.params(&names, 0);
        text.push(MATH);
        text.push(&ranking.wgsl());
        let are_alike = if self.has_kinds { "kinds[a] == kinds[b]" } else { "true" };
        text.push(&format!("fn are_alike(a: u32, b: u32) -> bool {{ return {are_alike}; }}"));
        text.push(include_str!("suppress.wgsl"));
        let score = self.score.unwrap_or(0.0).to_bits();
        let flags = [u32::from(self.score.is_some()), u32::from(self.center_point)];
        let sizes = [groups, self.classes, self.boxes, self.stride(), first, picks].map(|number| number as u32);
        let words: Vec<u32> = sizes.into_iter().chain([self.overlap.to_bits(), score]).chain(flags).collect();
        let (name, inputs) = if self.has_kinds { ("select boxes by kind", 3) } else { ("select boxes", 2) };
        Dispatch {
            key: name.into(),
            shader: text.shader(name.into(), LANES as u32),
            buffers: (0..inputs).map(Bound::Input).chain([Bound::Temporary(0)]).collect(),
            launch: Launch::new(&words, groups as u64, facts.most_groups),
        }
    }

    /// The dispatch that writes the rows of the result.
    fn join(&self, facts: &DeviceFacts) -> Dispatch {
        let groups = self.batches * self.classes;
        let rows = groups * self.most;
        let mut text = KernelText::new();
        text.read("state", "u32");
        text.write("rows", "u32");
        text.write("used", "u32");
        text.params(&["count", "groups", "classes", "boxes", "stride", "has_state"], 0);
        text.push(MATH);
        text.push(
            "
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = (group.x + group.y * groups.x) * 64u + local;
    if number >= max(p.count, 1u) { return; }
    var start = 0u;
    var row = vec3<u32>(0xffffffffu);
    for (var owner = 0u; owner < p.groups * p.has_state; owner++) {
        let selected = state[owner * p.stride];
        if number - start < selected {
            let batch = quotient(owner, p.classes);
            let at = state[owner * p.stride + 2u + p.boxes + (number - start)];
            row = vec3<u32>(batch, owner - batch * p.classes, at);
        }
        start += selected;
    }
    if number == 0u { used[0] = start; }
    if number < p.count {
        rows[3u * number] = row.x;
        rows[3u * number + 1u] = row.y;
        rows[3u * number + 2u] = row.z;
    }
}",
        );
        // Without a selecting dispatch there is no state.
        let has_state = usize::from(self.most > 0);
        let words = [rows, groups, self.classes, self.boxes, self.stride(), has_state].map(|number| number as u32);
        Dispatch {
            key: "join selected boxes".into(),
            shader: text.shader("join selected boxes".into(), 64),
            buffers: [Bound::Temporary(0), Bound::Output(0), Bound::Output(1)].into_iter().collect(),
            launch: Launch::new(&words, rows.max(1).div_ceil(64) as u64, facts.most_groups),
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "the numbers of these tests are small")]
mod tests {
    use super::super::tests::layouts::{Words, check, contexts};
    use super::super::tests::trial::noise;
    use super::*;

    /// Selections by the definition: boxes of falling score that overlap no selected box.
    fn plainly(
        boxes: &[f32],
        scores: &[f32],
        sizes: [usize; 4],
        limits: (f32, Option<f32>),
        center: bool,
    ) -> [Words; 2] {
        let [batches, classes, count, most] = sizes;
        let mut rows = Vec::new();
        for group in 0..batches * classes {
            let score = |at: usize| scores[group * count + at];
            let mut order: Vec<usize> =
                (0..count).filter(|at| limits.1.is_none_or(|least| score(*at) > least)).collect();
            order.sort_by(|a, b| score(*b).partial_cmp(&score(*a)).unwrap());
            let corners = |at: usize| {
                let own = &boxes[(group / classes * count + at) * 4..][..4];
                let [x, y, z, w] = [own[0], own[1], own[2], own[3]].map(f64::from);
                let (one, two) =
                    if center { ((x - z / 2.0, y - w / 2.0), (x + z / 2.0, y + w / 2.0)) } else { ((x, y), (z, w)) };
                (one.0.min(two.0), one.1.min(two.1), one.0.max(two.0), one.1.max(two.1))
            };
            let overlap = |one: usize, two: usize| {
                let (one, two) = (corners(one), corners(two));
                let area = |v: (f64, f64, f64, f64)| (v.2 - v.0) * (v.3 - v.1);
                let shared =
                    (one.2.min(two.2) - one.0.max(two.0)).max(0.0) * (one.3.min(two.3) - one.1.max(two.1)).max(0.0);
                if shared == 0.0 { 0.0 } else { shared / (area(one) + area(two) - shared) }
            };
            let mut selected: Vec<usize> = Vec::new();
            for at in order {
                let is_free = selected.iter().all(|other| overlap(at, *other) <= f64::from(limits.0));
                if is_free && selected.len() < most.min(count) {
                    selected.push(at);
                }
            }
            rows.extend(selected.iter().flat_map(|at| [group / classes, group % classes, *at]).map(|n| n as i32));
        }
        let used = (rows.len() / 3) as i32;
        let all = batches * classes * most.min(count);
        rows.resize(all * 3, -1);
        [Words::integers(&rows, &[all, 3]), Words::integers(&[used], &[1])]
    }

    #[test]
    fn overlapping_boxes_are_dropped_per_batch_and_class() {
        for (sizes, limits, center) in [
            ([1, 1, 1, 3], (0.5, None), false),
            ([1, 1, 40, 10], (0.3, None), false),
            ([2, 3, 200, 15], (0.2, Some(-0.4)), false),
            ([2, 2, 130, 500], (0.1, Some(0.0)), true),
            ([1, 2, 20, 0], (0.5, None), false),
            ([1, 2, 20, 5], (0.5, Some(2.0)), false),
            ([1, 2, 0, 5], (0.5, None), false),
        ] {
            let [batches, classes, count, most] = sizes;
            let boxes = noise(batches * count * 4, 5);
            let boxes: Vec<f32> =
                boxes.iter().enumerate().map(|(at, v)| if center && at % 4 > 1 { v.abs() } else { *v }).collect();
            // Some scores are equal.
            let scores = noise(batches * classes * count, 6);
            let scores: Vec<f32> = scores.iter().map(|v| (v * 50.0).round() / 50.0).collect();
            let wanted = plainly(&boxes, &scores, sizes, limits, center);
            let given =
                [Words::floats(&boxes, &[batches, count, 4]), Words::floats(&scores, &[batches, classes, count])];
            check(&given, true, &wanted, &|net, x| {
                let (rows, used) = net.non_max_suppression(x[0], x[1], most, limits.0, limits.1, center).unwrap();
                vec![rows, used]
            });
        }
    }

    #[test]
    fn boxes_of_different_kinds_do_not_drop_each_other_wherever_they_are() {
        let count = 90;
        // Large enough that a shift of the boxes of a kind would lose their differences.
        let boxes: Vec<f32> = noise(count * 4, 7).iter().map(|v| v * 3e6).collect();
        let scores: Vec<f32> = noise(count, 8).iter().map(|v| (v * 20.0).round() / 20.0).collect();
        let kinds: Vec<f32> = (0..count).map(|at| [0.0, 1.0, 9e8, f32::INFINITY][at * 7 % 4]).collect();
        for (most, iou, least) in [(count, 0.2, None), (12, 0.3, Some(-0.2))] {
            // Those that remain of each kind, by score.
            let mut remaining = Vec::new();
            for kind in 0..4 {
                let own: Vec<usize> = (0..count).filter(|at| at * 7 % 4 == kind).collect();
                let (own_boxes, own_scores): (Vec<f32>, Vec<f32>) = (
                    own.iter().flat_map(|at| boxes[4 * at..][..4].to_vec()).collect(),
                    own.iter().map(|at| scores[*at]).collect(),
                );
                let [rows, used] =
                    plainly(&own_boxes, &own_scores, [1, 1, own.len(), own.len()], (iou, least), false).map(|w| w.bits);
                remaining.extend(rows.chunks(3).take(used[0] as usize).map(|row| own[row[2] as usize]));
            }
            remaining.sort_by(|a, b| scores[*b].partial_cmp(&scores[*a]).unwrap().then(a.cmp(b)));
            remaining.truncate(most);
            let used = Words::integers(&[remaining.len() as i32], &[1]);
            let mut rows: Vec<i32> = remaining.iter().flat_map(|at| [0, 0, *at as i32]).collect();
            rows.resize(most * 3, -1);
            let given =
                [Words::floats(&boxes, &[count, 4]), Words::floats(&scores, &[count]), Words::floats(&kinds, &[count])];
            check(&given, true, &[Words::integers(&rows, &[most, 3]), used], &|net, x| {
                let (rows, used) = net.suppression_by_kind([x[0], x[1], x[2]], most, iou, least).unwrap();
                vec![rows, used]
            });
        }
    }

    #[test]
    fn boxes_that_touch_stay_and_scores_that_are_nan_do_not() {
        let boxes = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 6.0, 6.0];
        let given = [Words::floats(&boxes, &[1, 4, 4]), Words::floats(&[0.5, 0.9, 0.4, f32::NAN], &[1, 1, 4])];
        let rows = Words::integers(&[0, 0, 1, 0, 0, 0, -1, -1, -1, -1, -1, -1], &[4, 3]);
        check(&given, true, &[rows, Words::integers(&[2], &[1])], &|net, x| {
            let (rows, used) = net.non_max_suppression(x[0], x[1], 9, 0.0, None, false).unwrap();
            vec![rows, used]
        });
    }

    #[test]
    fn a_device_refuses_more_rounds_than_it_can_run_and_the_host_does_not() {
        for context in contexts() {
            let mut net = NetworkBuilder::new(&context);
            let boxes = net.input(WordKind::F32, &[1, 60_000, 4]).unwrap();
            let scores = net.input(WordKind::F32, &[1, 1, 60_000]).unwrap();
            let all = net.non_max_suppression(boxes, scores, 60_000, 0.5, None, false);
            assert_eq!(all.is_err(), context.device().is_some());
            assert!(net.non_max_suppression(boxes, scores, 300, 0.5, None, false).is_ok());
            assert!(net.non_max_suppression(scores, boxes, 300, 0.5, None, false).is_err());
        }
    }
}
