fn pixel(color: vec4f) -> vec4f {
    let a = 1.0;
    return color * brigtness;
}
