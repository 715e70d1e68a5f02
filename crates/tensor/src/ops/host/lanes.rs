//! Folds many values into one, in 64 lanes: the values are taken 64 at a time, one per lane. The lanes are then joined
//! pairwise: 64 to 32, 32 to 16, and so on down to one. The values after the last whole group of 64 may be taken later,
//! between or after these joins. The caller supplies the operations.
//!
//! Invariant: the order is the same on every machine, so that sums have the same bits.

/// Lanes of one vector of 512 bits.
pub(crate) const WIDTH: usize = 16;
/// Independent vectors, so that an addition need not wait for the previous addition.
const VECTORS: usize = 4;
const LANES: usize = WIDTH * VECTORS;

/// Folds values: each lane begins with `start`, `take` folds a value into a lane, and `join` combines two lanes.
#[inline(always)]
pub(crate) fn fold(values: &[f32], start: f32, take: impl Fn(f32, f32) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    if values.len() < WIDTH {
        return values.iter().fold(start, |lane, value| take(lane, *value));
    }
    joined(fold_to_lanes(values, start, take, &join), &join)
}

/// Folds values into the lanes of one vector, for callers that fold further values into the same lanes.
///
/// Uses four arrays of 16 lanes, each of which stays in one register. A single array of 64 lanes would stay in memory,
/// and sums of rows of 1024 values would take four times as long.
#[inline(always)]
pub(crate) fn fold_to_lanes(
    values: &[f32],
    start: f32,
    take: impl Fn(f32, f32) -> f32,
    join: impl Fn(f32, f32) -> f32,
) -> [f32; WIDTH] {
    let [mut one, mut two, mut three, mut four] = [[start; WIDTH]; VECTORS];
    let (wholes, rest) = values.as_chunks::<LANES>();
    for whole in wholes {
        let (vectors, _) = whole.as_chunks::<WIDTH>();
        one = both(one, vectors[0], &take);
        two = both(two, vectors[1], &take);
        three = both(three, vectors[2], &take);
        four = both(four, vectors[3], &take);
    }
    let (vectors, rest) = rest.as_chunks::<WIDTH>();
    if let Some(vector) = vectors.first() {
        one = both(one, *vector, &take);
    }
    if let Some(vector) = vectors.get(1) {
        two = both(two, *vector, &take);
    }
    if let Some(vector) = vectors.get(2) {
        three = both(three, *vector, &take);
    }
    let mut lanes = both(both(one, three, &join), both(two, four, &join), &join);
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = take(*lane, *value);
    }
    lanes
}

/// The best of `start` and the values; `None` if a value is NaN.
///
/// Groups of 64 values are tested for NaN together: a single vector comparison tests a vector of the first 32 values
/// and a vector of the last 32 values at once. With a comparison per value, maxima of rows of 1024 values take 1.5
/// times as long.
#[inline(always)]
pub(crate) fn best(values: &[f32], start: f32, better: impl Fn(f32, f32) -> bool) -> Option<f32> {
    let take = |lane: f32, value: f32| if better(value, lane) { value } else { lane };
    let [mut one, mut two, mut three, mut four] = [[start; WIDTH]; VECTORS];
    let (wholes, rest) = values.as_chunks::<LANES>();
    for whole in wholes {
        let (low, high) = whole.split_at(LANES / 2);
        if low.iter().zip(high).fold(false, |any, (low, high)| any | low.is_nan() | high.is_nan()) {
            return None;
        }
        let (vectors, _) = whole.as_chunks::<WIDTH>();
        one = both(one, vectors[0], &take);
        two = both(two, vectors[1], &take);
        three = both(three, vectors[2], &take);
        four = both(four, vectors[3], &take);
    }
    let lanes = both(both(one, three, &take), both(two, four, &take), &take);
    if rest.iter().fold(false, |any, value| any | value.is_nan()) {
        return None;
    }
    let best = joined(lanes, &take);
    Some(rest.iter().fold(best, |lane, value| take(lane, *value)))
}

/// Joins the lanes of one vector pairwise: 16 to 8, 8 to 4, 4 to 2, and 2 to 1.
///
/// The lanes go through memory (`black_box`). Otherwise the compiler also uses vectors of half the width in the main
/// loops, and sums take twice as long.
#[inline(always)]
fn joined(lanes: [f32; WIDTH], join: &impl Fn(f32, f32) -> f32) -> f32 {
    let lanes = std::hint::black_box(lanes);
    let eight: [f32; 8] = std::array::from_fn(|lane| join(lanes[lane], lanes[lane + 8]));
    let four: [f32; 4] = std::array::from_fn(|lane| join(eight[lane], eight[lane + 4]));
    join(join(four[0], four[2]), join(four[1], four[3]))
}

#[inline(always)]
fn both(one: [f32; WIDTH], two: [f32; WIDTH], join: &impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    std::array::from_fn(|lane| join(one[lane], two[lane]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_taken_once() {
        for count in [0, 1, 15, 16, 17, 63, 64, 65, 100, 128, 200] {
            let values: Vec<f32> = (1..=count).map(|at| at as f32).collect();
            let sum = fold(&values, 0.0, |lane, value| lane + value, |one, two| one + two);
            assert_eq!(sum, (count * (count + 1) / 2) as f32, "{count} values");
        }
    }

    #[test]
    fn the_best_is_found_wherever_it_is_unless_there_is_a_nan() {
        for count in [1, 15, 16, 64, 65, 130, 200] {
            let mut values = vec![f32::NEG_INFINITY; count];
            for at in 0..count {
                values[at] = at as f32;
                assert_eq!(best(&values, values[0], |one, two| one > two), Some(at as f32), "at {at} of {count}");
                values[at] = f32::NAN;
                assert_eq!(best(&values, values[0], |one, two| one > two), None, "at {at} of {count}");
                values[at] = -1.0;
            }
        }
    }
}
