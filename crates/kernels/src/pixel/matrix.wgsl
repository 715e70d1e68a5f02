// A colour matrix in fixed point.
// in: a pixel; out: each channel is a weighted sum of all four channels, plus a constant
// params: 20 words, rows r, g, b, a of five: factors of r, g, b, a with 12 fraction bits, then the constant in 1/4096
//   levels, including the half for rounding
fn matrix(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let u = vec4<u32>(c);
    let bias = bias_of(u.x + u.y + u.z + u.w);
    let sum = vec4<i32>(matrix_row(u, bias, k), matrix_row(u, bias, k + 5u), matrix_row(u, bias, k + 10u),
        matrix_row(u, bias, k + 15u));
    return clamp(sum, vec4<i32>(0), vec4<i32>(255));
}

fn matrix_row(u: vec4<u32>, bias: u32, k: u32) -> i32 {
    let sum = product(u.x, biased(int(k))) + product(u.y, biased(int(k + 1u))) + product(u.z, biased(int(k + 2u)))
        + product(u.w, biased(int(k + 3u)));
    return bitcast<i32>(sum + word(k + 4u) - bias) >> 12u;
}
