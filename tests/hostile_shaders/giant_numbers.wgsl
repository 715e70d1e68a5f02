const a = 1e999;
const b = 99999999999999999999999;
fn pixel(color: vec4f) -> vec4f {
    return color * a;
}
