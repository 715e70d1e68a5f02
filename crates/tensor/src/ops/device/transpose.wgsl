// Transposed planes of words: out[p, i, j] = in[p, j, i] for each plane p.
//
// In: values are contiguous along i; neighbours along j are a pitch apart, and planes are any distance apart. Out:
// without gaps.
// Grid: an invocation per 8 values of one column of the result. Neighbouring invocations write neighbouring values, and
// each invocation reads 8 contiguous values, so that a cache line is used up as soon as it is fetched.

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = (group.x + group.y * groups.x) * 64u + local;
    let strips = (p.rows + 7u) / 8u;
    let strip = quotient(number, p.columns);
    let plane = quotient(strip, strips);
    if plane >= p.planes { return; }
    let column = number - strip * p.columns;
    let row = (strip - plane * strips) * 8u;
    let source = p.offset + plane * p.plane_pitch + column * p.pitch + row;
    let goal = (plane * p.rows + row) * p.columns + column;
    let count = min(p.rows - row, 8u);
    if count == 8u {
        let a = in0[source];
        let b = in0[source + 1u];
        let c = in0[source + 2u];
        let d = in0[source + 3u];
        let e = in0[source + 4u];
        let f = in0[source + 5u];
        let g = in0[source + 6u];
        let h = in0[source + 7u];
        out[goal] = a;
        out[goal + p.columns] = b;
        out[goal + 2u * p.columns] = c;
        out[goal + 3u * p.columns] = d;
        out[goal + 4u * p.columns] = e;
        out[goal + 5u * p.columns] = f;
        out[goal + 6u * p.columns] = g;
        out[goal + 7u * p.columns] = h;
        return;
    }
    for (var i = 0u; i < count; i++) { out[goal + i * p.columns] = in0[source + i]; }
}
