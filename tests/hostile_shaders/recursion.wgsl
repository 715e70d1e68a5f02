fn again(x: f32) -> f32 {
    return again(x - 1.0);
}
fn pixel(color: vec4f) -> vec4f {
    return color * again(3.0);
}
