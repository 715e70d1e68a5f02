// The weighted mean of red, green and blue.
// in: a pixel; out: the mean in red, green and blue; alpha kept
// params: none
fn gray(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let v = i32((product(9798u, u32(c.x)) + product(19235u, u32(c.y)) + product(3735u, u32(c.z)) + 16384u) >> 15u);
    return vec4<i32>(v, v, v, c.w);
}
