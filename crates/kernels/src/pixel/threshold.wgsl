// Black or white by brightness.
// in: a pixel; out: black or white; alpha kept
// params: 0 the greatest grey value that becomes black, a signed number
fn threshold(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let gray = i32((product(9798u, u32(c.x)) + product(19235u, u32(c.y)) + product(3735u, u32(c.z)) + 16384u) >> 15u);
    let v = select(0, 255, gray > int(k));
    return vec4<i32>(v, v, v, c.w);
}
