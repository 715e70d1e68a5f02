fn pixel(color: vec4f, a: vec2u, b: vec2u) -> vec4f {
    return color * f32(a.x + b.x);
}
