fn pixel() -> vec4f {
    return vec4f(1.0);
}
