// Darkens towards the corners.
//   vramp run 'pattern ! wgsl examples/shaders/vignette.wgsl strength=0.8 ! png path=out-%04d.png'

struct Settings {
    strength: f32, // = 0.5
    tint: vec3f,   // = 1, 1, 1
}

fn pixel(color: vec4f, at: vec2f, frame: Frame, settings: Settings) -> vec4f {
    let from_middle = at / vec2f(frame.size) * 2.0 - 1.0;
    let shade = 1.0 - settings.strength * clamp(dot(from_middle, from_middle) / 2.0, 0.0, 1.0);
    return vec4f(color.rgb * settings.tint * shade, color.a);
}
