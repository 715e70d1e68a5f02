fn pixel(color: vec4f) -> vec4f {
    let brighter = color * 2.0
    return brighter;
}
