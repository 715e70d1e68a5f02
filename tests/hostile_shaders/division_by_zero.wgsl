fn pixel(color: vec4f, at: vec2u) -> vec4f {
    let zero = at.x - at.x;
    let whole = i32(at.y) / i32(zero) + i32(at.y % zero);
    let least = -2147483647 - 1 + i32(zero);
    return color / f32(zero) + f32(whole) + f32(least / (i32(zero) - 1));
}
