fn pixel(color: vec4f, at: vec2u) -> vec4f {
    let zero = f32(at.x) - f32(at.x);
    let nan = zero / zero;
    return vec4f(nan, sqrt(-1.0 - color.g), log(zero) * zero, bitcast<f32>(0x7fc00000u + at.x));
}
