// Gaussian blur in two passes, along rows and down columns.
// params: 0 number of pairs of taps, 1 the weight of the centre
// small: for each pair its distance (upper 16 bits) and weight (lower 16 bits); the sum of all weights is 256
// grid: both passes cover the source
//
// Sums along a row are at most 255 * 256 and are kept in 16 bits. Pixels beyond the border repeat the border.
fn blur_first(at: vec2<i32>, k: u32) -> vec4<u32> {
    let last = source_size().x - 1;
    var sum = blur_part(vec4<u32>(load(at)), word(k + 1u));
    for (var i = 0u; i < word(k); i++) {
        let tap = small(i);
        let d = i32(tap >> 16u);
        let pair = load(vec2<i32>(max(at.x - d, 0), at.y)) + load(vec2<i32>(min(at.x + d, last), at.y));
        sum += blur_part(vec4<u32>(pair), tap & 65535u);
    }
    return sum;
}

fn blur(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size().y - 1;
    var sum = blur_part(kept(at), word(k + 1u));
    for (var i = 0u; i < word(k); i++) {
        let tap = small(i);
        let d = i32(tap >> 16u);
        let pair = kept(vec2<i32>(at.x, max(at.y - d, 0))) + kept(vec2<i32>(at.x, min(at.y + d, last)));
        sum += blur_part(pair, tap & 65535u);
    }
    return vec4<i32>((sum + vec4<u32>(32768u)) >> vec4<u32>(16u));
}

fn blur_part(c: vec4<u32>, weight: u32) -> vec4<u32> {
    return vec4<u32>(product(c.x, weight), product(c.y, weight), product(c.z, weight), product(c.w, weight));
}
