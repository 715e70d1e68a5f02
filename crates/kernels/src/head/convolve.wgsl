// A weighted sum of the square around each pixel, in fixed point.
// in: the source around a position; out: one pixel with the centre's alpha
// params: 0 number of taps besides the centre, 1 fraction bits, 2 the constant with the half for rounding, 3 the
//   centre's weight
// small: for each tap its offset (signed: columns in the lower 16 bits, rows in the upper 16 bits) and its weight
//
// Sums fit 32 bits. Pixels beyond the border repeat the border.
fn convolve(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    let here = load(at);
    var sum = here.xyz * int(k + 3u) + vec3<i32>(int(k + 2u));
    for (var i = 0u; i < word(k); i++) {
        let place = bitcast<i32>(small(2u * i));
        let there = at + vec2<i32>((place << 16u) >> 16u, place >> 16u);
        sum += load(clamp(there, vec2<i32>(0), last)).xyz * bitcast<i32>(small(2u * i + 1u));
    }
    return vec4<i32>(clamp(sum >> vec3<u32>(word(k + 1u)), vec3<i32>(0), vec3<i32>(255)), here.w);
}
