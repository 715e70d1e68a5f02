// Another size by weighted sums in two passes, along rows and down columns.
// params: 0 words of weights per column, 1 words of weights per row, 2 which weights are wide (bit 0 columns, bit 1
//   rows), 3 offset of the rows in small
// small: the first tap of each column; the weights of each column; the first tap of each row; the weights of each row
// grid: the first pass covers the source's rows at their new width, the second the frame
//
// A word of narrow weights holds the weights of two taps in 16 bits each, with 14 fraction bits. A word of wide weights
// holds the weight of one tap, with 23 fraction bits. The weights of a pixel have the sum one, so levels may be counted
// from the middle. The intermediate has 7 fraction bits. An iteration sums four taps, because some drivers end an
// invocation after 65,535 iterations of its loops.
fn resample_word(at: u32, i: u32, words: u32) -> u32 {
    return select(0u, small(at + min(i, words - 1u)), i < words);
}

// The weights of taps 4 i to 4 i + 3. Weights after the last tap are zero.
fn resample_weights(at: u32, i: u32, words: u32, wide: bool) -> vec4<i32> {
    if (wide) {
        let a = vec2<u32>(resample_word(at, 4u * i, words), resample_word(at, 4u * i + 1u, words));
        let b = vec2<u32>(resample_word(at, 4u * i + 2u, words), resample_word(at, 4u * i + 3u, words));
        return bitcast<vec4<i32>>(vec4<u32>(a, b));
    }
    let a = resample_word(at, 2u * i, words);
    let b = resample_word(at, 2u * i + 1u, words);
    return bitcast<vec4<i32>>(vec4<u32>(a << 16u, a, b << 16u, b)) >> vec4<u32>(16u);
}

fn resample_rounds(words: u32, wide: bool) -> u32 {
    return select((words + 1u) >> 1u, (words + 3u) >> 2u, wide);
}

fn resample_pixel(x: i32, y: i32) -> vec4<i32> {
    return load(vec2<i32>(min(x, source_size().x - 1), y)) - vec4<i32>(128);
}

fn resample_first(at: vec2<i32>, k: u32) -> vec4<u32> {
    let words = word(k);
    let wide = (word(k + 2u) & 1u) != 0u;
    let weights = u32(frame_size().x) + u32(at.x) * words;
    let start = bitcast<i32>(small(u32(at.x)));
    let rounds = resample_rounds(words, wide);
    var sum = vec4<i32>(0);
    for (var i = 0u; i < rounds; i++) {
        let x = start + 4 * i32(i);
        let w = resample_weights(weights, i, words, wide);
        sum += resample_pixel(x, at.y) * w.x + resample_pixel(x + 1, at.y) * w.y;
        sum += resample_pixel(x + 2, at.y) * w.z + resample_pixel(x + 3, at.y) * w.w;
    }
    let beyond = select(7u, 16u, wide);
    sum = (sum + vec4<i32>(1 << (beyond - 1u))) >> vec4<u32>(beyond);
    return vec4<u32>(clamp(sum, vec4<i32>(-32768), vec4<i32>(32767)) + vec4<i32>(32768));
}

fn resample_kept(x: i32, y: i32) -> vec4<i32> {
    return vec4<i32>(kept(vec2<i32>(x, min(y, source_size().y - 1)))) - vec4<i32>(32768);
}

// An intermediate value is 256 times its upper byte, plus its lower byte minus 128, plus 128. The weighted sums of the
// first two terms each fit 32 bits.
fn resample_upper(v: vec4<i32>) -> vec4<i32> {
    return v >> vec4<u32>(8u);
}

fn resample_lower(v: vec4<i32>) -> vec4<i32> {
    return (v & vec4<i32>(255)) - vec4<i32>(128);
}

fn resample(at: vec2<i32>, k: u32) -> vec4<i32> {
    let words = word(k + 1u);
    let wide = (word(k + 2u) & 2u) != 0u;
    let weights = word(k + 3u) + u32(frame_size().y) + u32(at.y) * words;
    let start = bitcast<i32>(small(word(k + 3u) + u32(at.y)));
    let rounds = resample_rounds(words, wide);
    var sum = vec4<i32>(0);
    var lower = vec4<i32>(0);
    for (var i = 0u; i < rounds; i++) {
        let y = start + 4 * i32(i);
        let w = resample_weights(weights, i, words, wide);
        let a = resample_kept(at.x, y);
        let b = resample_kept(at.x, y + 1);
        let c = resample_kept(at.x, y + 2);
        let d = resample_kept(at.x, y + 3);
        if (wide) {
            sum += resample_upper(a) * w.x + resample_upper(b) * w.y + resample_upper(c) * w.z + resample_upper(d) * w.w;
            lower += resample_lower(a) * w.x + resample_lower(b) * w.y;
            lower += resample_lower(c) * w.z + resample_lower(d) * w.w;
        } else {
            sum += a * w.x + b * w.y + c * w.z + d * w.w;
        }
    }
    // Adds the middle of the lower bytes and the half for rounding. Narrow sums are not split and need only the half
    // for rounding.
    let narrow = (sum + vec4<i32>(1 << 20u)) >> vec4<u32>(21u);
    let upper = (sum + vec4<i32>((1 << 22u) + (1 << 21u)) + (lower >> vec4<u32>(8u))) >> vec4<u32>(22u);
    return clamp(select(narrow, upper, wide) + vec4<i32>(128), vec4<i32>(0), vec4<i32>(255));
}
