//! Many values become one, in lanes.
//!
//! Owns the order in which values of a row are joined: value i goes to lane i % 64, and lanes are joined in halves.
//! Does not say what joining is.
//!
//! Always: the order is the same on every machine, so sums have the same bits.

/// Lanes of one vector: 512 bits.
pub(crate) const WIDTH: usize = 16;
/// Vectors, so that an addition need not wait for the one before.
const VECTORS: usize = 4;
/// Lanes in all.
const LANES: usize = WIDTH * VECTORS;

/// Joins values: each is taken into a lane that starts as `start`, then lanes are joined.
#[inline(always)]
pub(crate) fn fold(values: &[f32], start: f32, take: impl Fn(f32, f32) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    if values.len() < WIDTH {
        return values.iter().fold(start, |lane, value| take(lane, *value));
    }
    // Through memory, since the compiler would otherwise cut the loops into the halves that are wanted only here: sums take
    // twice as long then.
    let lanes = std::hint::black_box(fold_to_lanes(values, start, take, &join));
    let eight: [f32; 8] = std::array::from_fn(|lane| join(lanes[lane], lanes[lane + 8]));
    let four: [f32; 4] = std::array::from_fn(|lane| join(eight[lane], eight[lane + 4]));
    join(join(four[0], four[2]), join(four[1], four[3]))
}

/// Joins values as far as the lanes of one vector, for those who have more values to come.
///
/// On the way there are four vectors, each an array of 16 and one register: as one array of 64 they stay in memory, and
/// sums of rows of 1024 take four times as long.
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
}
