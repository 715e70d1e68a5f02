// Convolutions: out[place, channel] = finish(bias[channel] + sum over taps and input channels of x * weights).
//
// In: x, positions of channels; weights in the order of `ConvKernel::packed`, as vectors of four output channels, then
// the bias; the sums so far if there are any. Out: positions of channels.
// Grid: one workgroup per block of positions, then per phase of a transposed convolution; the tiles of channels of a
// block are neighbours. A workgroup computes $PLACES positions of $CHANNELS channels.

// Batch, depth, height and width of a position.
fn coordinates(place: u32) -> vec4<u32> {
    let row = quotient(place, p.out_w);
    let slice = quotient(row, p.out_h);
    let image = quotient(slice, p.out_d);
    return vec4<u32>(image, slice - image * p.out_d, row - slice * p.out_h, place - row * p.out_w);
}

@compute @workgroup_size($LANES)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
) {
    let flat = workgroup.x + workgroup.y * workgroups.x;
    let tiles = p.groups * p.tiles;
    let phase_and_block = quotient(flat, tiles);
    let tile = flat - phase_and_block * tiles;
    let phase = quotient(phase_and_block, p.blocks);
    let block = phase_and_block - phase * p.blocks;
    let group = quotient(tile, p.tiles);
    let first_col = (tile - group * p.tiles) * $CHANNELS;
    let is_there = phase < p.phases;
$BODY
}
