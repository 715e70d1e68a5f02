// Another size by weighted sums, first along rows, then down columns.
// params: 0 words of weights for each column, 1 for each row, 2 which are wide (bit 0 columns, bit 1 rows),
// 3 where rows begin in small
// small: the first tap of each column; the weights of each column; the first tap of each row; the weights of each row
// A narrow word holds the weights of two taps in 16 bits each, with 14 fraction bits; a wide one that of one tap with
// 23, and wide ones come in eights. Weights of a pixel come to one, so levels may be taken from the middle; taps behind
// the last pixel have no weight. What is kept has 7 fraction bits.
fn resample_weights(pair: u32) -> vec2<i32> {
    return vec2<i32>(bitcast<i32>(pair << 16u) >> 16u, bitcast<i32>(pair) >> 16u);
}

fn resample_pixel(x: i32, y: i32) -> vec4<i32> {
    return load(vec2<i32>(min(x, source_size().x - 1), y)) - vec4<i32>(128);
}

fn resample_wide(x: i32, y: i32, at: u32) -> vec4<i32> {
    return resample_pixel(x, y) * bitcast<i32>(small(at)) + resample_pixel(x + 1, y) * bitcast<i32>(small(at + 1u));
}

fn resample_first(at: vec2<i32>, k: u32) -> vec4<u32> {
    let x = u32(at.x);
    let words = word(k);
    let start = bitcast<i32>(small(x));
    let weights = u32(frame_size().x) + x * words;
    var sum = vec4<i32>(0);
    if ((word(k + 2u) & 1u) == 0u) {
        for (var i = 0u; i < words; i++) {
            let w = resample_weights(small(weights + i));
            let tap = start + 2 * i32(i);
            sum += resample_pixel(tap, at.y) * w.x + resample_pixel(tap + 1, at.y) * w.y;
        }
        sum = (sum + vec4<i32>(64)) >> vec4<u32>(7u);
    } else {
        // Eight at once: some drivers end an invocation after 65,535 rounds of its loops.
        for (var i = 0u; i < words; i += 8u) {
            let tap = start + i32(i);
            let here = weights + i;
            sum += resample_wide(tap, at.y, here) + resample_wide(tap + 2, at.y, here + 2u);
            sum += resample_wide(tap + 4, at.y, here + 4u) + resample_wide(tap + 6, at.y, here + 6u);
        }
        sum = (sum + vec4<i32>(32768)) >> vec4<u32>(16u);
    }
    return vec4<u32>(clamp(sum, vec4<i32>(-32768), vec4<i32>(32767)) + vec4<i32>(32768));
}

fn resample_kept(x: i32, y: i32) -> vec4<i32> {
    return vec4<i32>(kept(vec2<i32>(x, min(y, source_size().y - 1)))) - vec4<i32>(32768);
}

// What is kept is 256 times its upper byte, its lower byte less 128, and 128: sums of either fit 32 bits.
fn resample_halves(sums: array<vec4<i32>, 2>, x: i32, y: i32, at: u32) -> array<vec4<i32>, 2> {
    let a = resample_kept(x, y);
    let b = resample_kept(x, y + 1);
    let v = bitcast<i32>(small(at));
    let w = bitcast<i32>(small(at + 1u));
    let upper = (a >> vec4<u32>(8u)) * v + (b >> vec4<u32>(8u)) * w;
    let lower = ((a & vec4<i32>(255)) - vec4<i32>(128)) * v + ((b & vec4<i32>(255)) - vec4<i32>(128)) * w;
    return array<vec4<i32>, 2>(sums[0] + upper, sums[1] + lower);
}

fn resample(at: vec2<i32>, k: u32) -> vec4<i32> {
    let words = word(k + 1u);
    let start = bitcast<i32>(small(word(k + 3u) + u32(at.y)));
    let weights = word(k + 3u) + u32(frame_size().y) + u32(at.y) * words;
    if ((word(k + 2u) & 2u) == 0u) {
        // The middle, and the half for rounding.
        var sum = vec4<i32>((128 << 21u) + (1 << 20u));
        for (var i = 0u; i < words; i++) {
            let w = resample_weights(small(weights + i));
            let tap = start + 2 * i32(i);
            sum += resample_kept(at.x, tap) * w.x + resample_kept(at.x, tap + 1) * w.y;
        }
        return clamp(sum >> vec4<u32>(21u), vec4<i32>(0), vec4<i32>(255));
    }
    var sums = array<vec4<i32>, 2>();
    for (var i = 0u; i < words; i += 8u) {
        let tap = start + i32(i);
        sums = resample_halves(sums, at.x, tap, weights + i);
        sums = resample_halves(sums, at.x, tap + 2, weights + i + 2u);
        sums = resample_halves(sums, at.x, tap + 4, weights + i + 4u);
        sums = resample_halves(sums, at.x, tap + 6, weights + i + 6u);
    }
    let sum = (sums[0] + vec4<i32>((1 << 22u) + (1 << 21u)) + (sums[1] >> vec4<u32>(8u))) >> vec4<u32>(22u);
    return clamp(sum + vec4<i32>(128), vec4<i32>(0), vec4<i32>(255));
}
