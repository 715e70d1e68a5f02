struct Settings {
    strength: f32, // = strong
}
fn pixel(color: vec4f, settings: Settings) -> vec4f {
    return color * settings.strength;
}
