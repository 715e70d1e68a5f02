struct Settings {
    path: f32,
}
fn pixel(color: vec4f, settings: Settings) -> vec4f {
    return color * settings.path;
}
