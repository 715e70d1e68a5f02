fn one(x: f32) -> f32 {
    return other(x);
}
fn other(x: f32) -> f32 {
    return one(x);
}
fn pixel(color: vec4f) -> vec4f {
    return color * one(3.0);
}
