// One result per row: a sum, a mean, a maximum, a minimum, or the index of the maximum or minimum.
//
// In: values, read through `value`, or pairs of value and index from an earlier pass.
// Out: a word per row, or per part of a row.
// Grid: a part of a row per invocation or per workgroup.

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let lane = local % LANES;
    let number = (group.x + group.y * groups.x) * ROWS + local / LANES;
    if number >= p.rows * p.parts { return; }
    let row = number % p.rows;
    let part = number / p.rows;
    let base = row / p.inner * p.inner * p.length + row % p.inner;
    let end = min((part + 1u) * p.part_length, p.length);
    var i = part * p.part_length + lane;
    var r0 = begin();
    var r1 = r0;
    var r2 = r0;
    var r3 = r0;
    for (; i + 3u * LANES < end; i += 4u * LANES) {
        let at = base + i * p.inner;
        let step = LANES * p.inner;
        r0 = take(r0, at, i);
        r1 = take(r1, at + step, i + LANES);
        r2 = take(r2, at + 2u * step, i + 2u * LANES);
        r3 = take(r3, at + 3u * step, i + 3u * LANES);
    }
    for (; i < end; i += LANES) { r0 = take(r0, base + i * p.inner, i); }
    let result = all_join(join(join(r0, r1), join(r2, r3)), lane);
    if lane == 0u { give(result, number); }
}
