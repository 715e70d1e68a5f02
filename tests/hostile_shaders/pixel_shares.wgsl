var<workgroup> sum: f32;
fn pixel(color: vec4f) -> vec4f {
    sum = color.r;
    return color * sum;
}
