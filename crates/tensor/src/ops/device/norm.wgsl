// Layer norm: each row minus its mean, divided by sqrt(variance + epsilon), times gamma, plus beta.
//
// In: values, read through `value`. Out: in the layout of the input, f32. Grid: a row per invocation or per workgroup.
// The variance is computed after the mean is subtracted, so that a large mean costs no precision.

fn add(a: f32, b: f32) -> f32 { return a + b; }

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let lane = local % LANES;
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    if row >= p.rows { return; }
    let base = row * p.length;
    var s0 = 0.0;
    var s1 = 0.0;
    var i = lane;
    for (; i + LANES < p.length; i += 2u * LANES) {
        s0 += value(base + i);
        s1 += value(base + i + LANES);
    }
    if i < p.length { s0 += value(base + i); }
    let mean = all_add(s0 + s1, lane) / f32(p.length);
    s0 = 0.0;
    s1 = 0.0;
    i = lane;
    for (; i + LANES < p.length; i += 2u * LANES) {
        let one = value(base + i) - mean;
        let two = value(base + i + LANES) - mean;
        s0 = fma(one, one, s0);
        s1 = fma(two, two, s1);
    }
    if i < p.length {
        let one = value(base + i) - mean;
        s0 = fma(one, one, s0);
    }
    let variance = all_add(s0 + s1, lane) / f32(p.length);
    let scale = 1.0 / sqrt(variance + bitcast<f32>(p.epsilon));
    for (i = lane; i < p.length; i += LANES) {
        let at = base + i;
        let v = (value(at) - mean) * scale$GAMMA$BETA;
        out[at] = bitcast<u32>(v);
    }
}
