fn pixel(color: vec4f) -> vec4f {
    return color;
