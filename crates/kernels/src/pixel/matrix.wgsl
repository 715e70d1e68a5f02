// A colour matrix in fixed point.
// in: a pixel; out: each channel is a weighted sum of all four channels, plus a constant
// params: 20 words, rows r, g, b, a of five: factors of r, g, b, a with 12 fraction bits, then the constant in 1/4096
//   levels, including the half for rounding
fn matrix(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    return clamp(vec4<i32>(matrix_row(c, k), matrix_row(c, k + 5u), matrix_row(c, k + 10u), matrix_row(c, k + 15u)),
        vec4<i32>(0), vec4<i32>(255));
}

fn matrix_row(c: vec4<i32>, k: u32) -> i32 {
    return (int(k) * c.x + int(k + 1u) * c.y + int(k + 2u) * c.z + int(k + 3u) * c.w + int(k + 4u)) >> 12u;
}
