struct Frame { x: f32 }
fn pixel(color: vec4f, frame: Frame) -> vec4f {
    return color * frame.x;
}
