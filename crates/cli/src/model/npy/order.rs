//! The order of values in an array: Fortran order, and the place of a value.

/// Values in C order, from values in Fortran order, in which the first axis is contiguous. `size` is the number of bytes
/// of a value. `None` if there is no memory.
pub(super) fn from_fortran(values: &[u8], lengths: &[usize], size: usize) -> Option<Vec<u8>> {
    let mut ordered = Vec::new();
    ordered.try_reserve_exact(values.len()).ok()?;
    let mut strides = Vec::with_capacity(lengths.len());
    let mut stride = size;
    for length in lengths {
        strides.push(stride);
        stride = stride.saturating_mul(*length);
    }
    let mut place = vec![0; lengths.len()];
    let mut from = 0;
    while ordered.len() < values.len() {
        ordered.extend_from_slice(&values[from..from + size]);
        for axis in (0..lengths.len()).rev() {
            place[axis] += 1;
            from += strides[axis];
            if place[axis] < lengths[axis] {
                break;
            }
            from -= strides[axis] * lengths[axis];
            place[axis] = 0;
        }
    }
    Some(ordered)
}

/// The indices of value number `at` of an array in C order.
pub(in super::super) fn place_of(at: usize, lengths: &[usize]) -> Vec<usize> {
    let mut rest = at;
    let mut place: Vec<usize> = lengths
        .iter()
        .rev()
        .map(|length| {
            let index = rest % length;
            rest /= length;
            index
        })
        .collect();
    place.reverse();
    place
}
