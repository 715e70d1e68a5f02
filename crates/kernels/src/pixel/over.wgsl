// Straight-alpha over: a colour composited over a pixel. This text is prepended to the functions that call `over`.
// in: a pixel, a colour, and s, the colour's opacity in 1/4080
// out: alpha and colour as exact fractions, each rounded once, half up; zeros if nothing is visible
fn over(c: vec4<i32>, top: vec3<i32>, s: i32) -> vec4<i32> {
    let below = c.w * (4080 - s);
    let whole = 255 * s + below;
    let n = max(whole, 1);
    let rgb = over_divided(2 * (top * (255 * s) + c.xyz * below) + vec3<i32>(n), 2 * n);
    // Division by 4080: by 16 with a shift, the rest with a formula that is exact below 65535.
    let sixteenth = (whole + 2040) >> 4u;
    return vec4<i32>(rgb, (sixteenth + 1 + (sixteenth >> 8u)) >> 8u);
}

// Integer quotients up to 255. An estimate in floats is off by at most one, which the remainder shows. Integer division
// would be slow, because software drivers divide integers one lane after another.
fn over_divided(n: vec3<i32>, d: i32) -> vec3<i32> {
    let guess = vec3<i32>(vec3<f32>(n) / f32(d));
    let rest = n - guess * d;
    return guess + select(vec3<i32>(0), vec3<i32>(1), rest >= vec3<i32>(d)) - select(vec3<i32>(0), vec3<i32>(1), rest < vec3<i32>(0));
}

// The opacity in 1/4080: an 8-bit alpha times an amount with 15 fraction bits.
fn opacity(alpha: i32, amount: i32) -> i32 {
    return (alpha * amount + 1024) >> 11u;
}
