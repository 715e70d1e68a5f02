fn pixel(color: vec4f, speed: f32) -> vec4f {
    return color * speed;
}
