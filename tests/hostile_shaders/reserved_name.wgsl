fn pixel(color: vec4f) -> vec4f {
    return vramp_own(color);
}
fn vramp_own(c: vec4f) -> vec4f {
    return c;
}
