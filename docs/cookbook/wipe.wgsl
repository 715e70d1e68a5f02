// Keeps what is left of a white line that moves to the right and back.
struct Settings {
    seconds: f32, // = 4
}

fn pixel(color: vec4f, at: vec2f, frame: Frame, settings: Settings) -> vec4f {
    let line = 0.5 - 0.5 * cos(6.2831853 * frame.time / settings.seconds);
    let right = at.x - line * f32(frame.size.x);
    return select(vec4f(color.rgb, step(right, 0.0)), vec4f(1.0), abs(right) < 1.5);
}
