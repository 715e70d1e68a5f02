const_assert 1 > 2;
fn pixel(color: vec4f) -> vec4f {
    return color;
}
