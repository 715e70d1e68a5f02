// A curve three rows high.
// in: a pixel; out: the colour on the curve, otherwise the pixel
// small: for each column the middle row of the curve, a signed number
// params: 0 colour, packed
fn curve(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let middle = bitcast<i32>(small(u32(at.x)));
    if (abs(at.y - middle) <= 1) {
        return unpack_pixel(word(k));
    }
    return c;
}
