// A bright ring that moves outwards with the time of the frame.
//   vramp run 'pattern ! wgsl examples/shaders/ripple.wgsl speed=0.5 ! png path=out-%04d.png'

struct Settings {
    speed: f32,  // = 0.25
    width: f32,  // = 0.05
    bright: f32, // = 0.4
}

fn pixel(color: vec4f, at: vec2f, frame: Frame, settings: Settings) -> vec4f {
    let size = vec2f(frame.size);
    let far = distance(at, size / 2.0) / max(size.x, size.y) * 2.0;
    let ring = abs(far - fract(frame.time * settings.speed));
    let light = settings.bright * smoothstep(settings.width, 0.0, ring);
    return vec4f(color.rgb + light, color.a);
}
