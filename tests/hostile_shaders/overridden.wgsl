override strength: f32 = 0.5;
fn pixel(color: vec4f) -> vec4f {
    return color * strength;
}
