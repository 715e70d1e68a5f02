// One colour everywhere.
// out: one pixel
// params: 0 the colour, red in the lowest bits
fn solid(at: vec2<i32>, k: u32) -> vec4<i32> {
    return unpack_pixel(word(k));
}
