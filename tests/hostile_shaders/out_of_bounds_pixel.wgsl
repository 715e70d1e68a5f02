const table = array<f32, 4>(0.0, 0.25, 0.5, 1.0);
fn pixel(color: vec4f, at: vec2u) -> vec4f {
    var own = array<f32, 3>(1.0, 2.0, 3.0);
    own[at.x * 7919u] = 0.5;
    let far = i32(at.x) - 2000000000;
    return vec4f(own[at.y + 99u], table[u32(color.r * 1e9)], own[u32(far)], color[at.x]);
}
