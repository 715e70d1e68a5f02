// Softmax, or its logarithm, along an axis: exp(v - maximum) divided by the sum of these exponentials. The maximum is
// subtracted so that nothing overflows.
//
// In: values, read through `value`. Out: in the layout of the input, f32. Grid: a row per invocation or per workgroup.
// A row with NaN or +infinity, or with only -infinity, becomes NaN; -infinity beside finite values becomes 0.

fn add(a: f32, b: f32) -> f32 { return a + b; }
fn greater(a: f32, b: f32) -> f32 { return select(a, b, b > a); }

fn store(at: u32, v: f32) { out[at] = bitcast<u32>(v); }

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let lane = local % LANES;
    let row = (group.x + group.y * groups.x) * ROWS + local / LANES;
    if row >= p.rows { return; }
    let base = row / p.inner * p.inner * p.length + row % p.inner;
    let step = p.inner * LANES;
    let start = base + lane * p.inner;
    let end = base + p.length * p.inner;
    var at = start;
    // NaN is never the maximum, because comparisons with NaN are false, but the sum propagates NaN.
    var m0 = -infinity();
    var m1 = m0;
    var m2 = m0;
    var m3 = m0;
    for (; at + 3u * step < end; at += 4u * step) {
        m0 = greater(m0, value(at));
        m1 = greater(m1, value(at + step));
        m2 = greater(m2, value(at + 2u * step));
        m3 = greater(m3, value(at + 3u * step));
    }
    for (; at < end; at += step) { m0 = greater(m0, value(at)); }
    let greatest = all_greater(greater(greater(m0, m1), greater(m2, m3)), lane);
    var s0 = 0.0;
    var s1 = 0.0;
    var s2 = 0.0;
    var s3 = 0.0;
    at = start;
    for (; at + 3u * step < end; at += 4u * step) {
        s0 += note(at, value(at) - greatest);
        s1 += note(at + step, value(at + step) - greatest);
        s2 += note(at + 2u * step, value(at + 2u * step) - greatest);
        s3 += note(at + 3u * step, value(at + 3u * step) - greatest);
    }
    for (; at < end; at += step) { s0 += note(at, value(at) - greatest); }
    let sum = all_add((s0 + s1) + (s2 + s3), lane);
    let share = 1.0 / sum;
    let log_sum = log_of(sum);
    at = start;
    for (; at + 3u * step < end; at += 4u * step) {
        store(at, again(at, greatest, share, log_sum));
        store(at + step, again(at + step, greatest, share, log_sum));
        store(at + 2u * step, again(at + 2u * step, greatest, share, log_sum));
        store(at + 3u * step, again(at + 3u * step, greatest, share, log_sum));
    }
    for (; at < end; at += step) { store(at, again(at, greatest, share, log_sum)); }
}
