// The weighted mean of red, green and blue.
// in: a pixel; out: the mean in red, green and blue; alpha kept
// params: none
fn gray(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let v = (9798 * c.x + 19235 * c.y + 3735 * c.z + 16384) >> 15u;
    return vec4<i32>(v, v, v, c.w);
}
