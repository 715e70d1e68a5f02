// Straight-alpha over: a colour composited over a pixel. This text is prepended to the functions that call `over`.
// in: a pixel, a colour, and s, the colour's opacity in 1/4080
// out: alpha and colour as exact fractions, each rounded once, half up; zeros if nothing is visible
fn over(c: vec4<i32>, top: vec3<i32>, s: i32) -> vec4<i32> {
    let above = u32(255 * s);
    let below = product(u32(c.w), u32(4080 - s));
    let whole = i32(above + below);
    let n = max(whole, 1);
    let sum = vec3<i32>(over_sum(top.x, above, c.x, below), over_sum(top.y, above, c.y, below),
        over_sum(top.z, above, c.z, below));
    let rgb = over_divided(2 * sum + vec3<i32>(n), 2 * n);
    // Division by 4080: by 16 with a shift, the rest with a formula that is exact below 65535.
    let sixteenth = (whole + 2040) >> 4u;
    return vec4<i32>(rgb, (sixteenth + 1 + (sixteenth >> 8u)) >> 8u);
}

// Integer quotients up to 255. An estimate in floats is off by at most one, which the remainder shows. Integer division
// would be slow, because software drivers divide integers one lane after another.
fn over_divided(n: vec3<i32>, d: i32) -> vec3<i32> {
    let guess = vec3<i32>(vec3<f32>(n) / f32(d));
    let rest = n - vec3<i32>(over_times(guess.x, d), over_times(guess.y, d), over_times(guess.z, d));
    return guess + select(vec3<i32>(0), vec3<i32>(1), rest >= vec3<i32>(d)) - select(vec3<i32>(0), vec3<i32>(1), rest < vec3<i32>(0));
}

fn over_sum(top: i32, above: u32, c: i32, below: u32) -> i32 {
    return i32(product(u32(top), above) + product(u32(c), below));
}

fn over_times(a: i32, b: i32) -> i32 {
    return i32(product(u32(a), u32(b)));
}

// The opacity in 1/4080: an 8-bit alpha times an amount with 15 fraction bits.
fn opacity(alpha: i32, amount: i32) -> i32 {
    return i32((product(u32(alpha), u32(amount)) + 1024u) >> 11u);
}
