// Straight-alpha over: a colour on top of a pixel. Joined in front of the functions that use it.
// s: how opaque the colour is, in 1/4080
// out: alpha and colour as whole fractions, each rounded once, half up; nothing visible gives zeros
fn over(c: vec4<i32>, top: vec3<i32>, s: i32) -> vec4<i32> {
    let below = c.w * (4080 - s);
    let whole = 255 * s + below;
    let n = max(whole, 1);
    let rgb = (2 * (top * (255 * s) + c.xyz * below) + vec3<i32>(n)) / vec3<i32>(2 * n);
    return vec4<i32>(rgb, (whole + 2040) / 4080);
}

// The opacity in 1/4080 of an 8-bit alpha times an amount with 15 fraction bits.
fn opacity(alpha: i32, amount: i32) -> i32 {
    return (alpha * amount + 1024) >> 11u;
}
