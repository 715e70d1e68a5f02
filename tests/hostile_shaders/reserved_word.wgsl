fn pixel(virtual: vec4f) -> vec4f {
    return virtual;
}
