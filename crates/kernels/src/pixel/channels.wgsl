// A separate table for red, green and blue.
// in: a pixel; out: red, green and blue looked up, each in its own table; alpha kept
// params: three tables of 64 words, 256 entries of one byte each, the first in the lowest bits
fn channels(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    return vec4<i32>(channels_entry(c.x, k), channels_entry(c.y, k + 64u), channels_entry(c.z, k + 128u), c.w);
}

fn channels_entry(v: i32, k: u32) -> i32 {
    let i = u32(v);
    return i32((word(k + (i >> 2u)) >> ((i & 3u) * 8u)) & 255u);
}
