struct Settings { m: mat4x4f }
fn pixel(color: vec4f, settings: Settings) -> vec4f {
    return settings.m * color;
}
