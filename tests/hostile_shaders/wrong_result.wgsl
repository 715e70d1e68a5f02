fn pixel(color: vec4f) -> vec3f {
    return color.rgb;
}
