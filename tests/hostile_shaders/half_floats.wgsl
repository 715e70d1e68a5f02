enable f16;
fn pixel(color: vec4f) -> vec4f {
    return vec4f(vec4h(color));
}
