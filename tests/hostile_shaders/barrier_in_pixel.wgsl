fn pixel(color: vec4f) -> vec4f {
    workgroupBarrier();
    return color;
}
