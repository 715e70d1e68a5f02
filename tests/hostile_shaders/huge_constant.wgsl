const nothing = array<u32, 1000000000>();
fn pixel(color: vec4f, at: vec2u) -> vec4f {
    var own = nothing;
    return color * f32(own[at.x]);
}
