// One table for red, green and blue.
// in: a pixel; out: red, green and blue looked up; alpha kept
// params: 64 words, 256 entries of one byte each, the first in the lowest bits
fn table(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    return vec4<i32>(table_entry(c.x, k), table_entry(c.y, k), table_entry(c.z, k), c.w);
}

fn table_entry(v: i32, k: u32) -> i32 {
    let i = u32(v);
    return i32((word(k + (i >> 2u)) >> ((i & 3u) * 8u)) & 255u);
}
