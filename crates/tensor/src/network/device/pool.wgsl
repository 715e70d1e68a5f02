// Pools: out[place, c] = finish(the maximum or the mean of x[seen, c] over the taps inside the input).
//
// In: x, positions of channels. Out: positions of channels; with indices the indices of the maxima.
// Grid: one invocation per position and channel or four channels; the channels of a position are neighbours.

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let number = (workgroup.x + workgroup.y * workgroups.x) * 64u + local;
    if number >= p.count { return; }
    let place = quotient(number, p.pitch);
    let c = number - place * p.pitch;
    let row = quotient(place, p.out_w);
    let slice = quotient(row, p.out_h);
    let image = quotient(slice, p.out_d);
    let in_d = i32((slice - image * p.out_d) * p.stride_d) - i32(p.pad_d);
    let in_h = i32((row - slice * p.out_h) * p.stride_h) - i32(p.pad_h);
    let in_w = i32((place - row * p.out_w) * p.stride_w) - i32(p.pad_w);
$START
    for (var tap = 0u; tap < p.taps; tap += 1u) {
        let tap_row = quotient(tap, p.kernel_w);
        let tap_d = quotient(tap_row, p.kernel_h);
        let seen_d = u32(in_d + i32(tap_d * p.dilation_d));
        let seen_h = u32(in_h + i32((tap_row - tap_d * p.kernel_h) * p.dilation_h));
        let seen_w = u32(in_w + i32((tap - tap_row * p.kernel_w) * p.dilation_w));
        let is_in = seen_d < p.in_d && seen_h < p.in_h && seen_w < p.in_w;
        let at = ((image * p.in_d + seen_d) * p.in_h + seen_h) * p.in_w + seen_w;
        let v = x[select(0u, at * p.pitch + c, is_in)];
$TAKE
    }
$STORE
}
