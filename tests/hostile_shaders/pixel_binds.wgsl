@group(0) @binding(0) var<storage, read> more: array<u32>;
fn pixel(color: vec4f) -> vec4f {
    return color * f32(more[0]);
}
