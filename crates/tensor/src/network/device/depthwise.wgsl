// Depthwise convolutions: out[place, c] = finish(bias[c] + sum over taps of x[seen, c] * weights[tap, c]).
//
// In: x, positions of channels; weights in the order of `DepthwiseKernel::packed`, then the bias. Out: positions of
// channels.
// Grid: one invocation per channel or four channels, and $PLACES neighbours along the width; the channels of a position
// are neighbours.

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let number = (workgroup.x + workgroup.y * workgroups.x) * 64u + local;
    if number >= p.count { return; }
    let tile = quotient(number, p.pitch);
    let c = number - tile * p.pitch;
    let row = quotient(tile, p.tiles);
    let w = (tile - row * p.tiles) * $PLACES;
    let slice = quotient(row, p.out_h);
    let image = quotient(slice, p.out_d);
    let d = slice - image * p.out_d;
    let h = row - slice * p.out_h;
    let in_d = i32(d * p.stride_d) - i32(p.pad_d);
    let in_h = i32(h * p.stride_h) - i32(p.pad_h);
    let in_w = i32(w * $STRIDE) - i32(p.pad_w);
    let bias = weights[p.bias_at + c];
$BODY
}
