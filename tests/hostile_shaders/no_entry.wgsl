fn shade(color: vec4f) -> vec4f {
    return color;
}
