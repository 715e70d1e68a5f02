fn one(c: vec4f, at: vec2u) -> vec4f {
    var own: array<vec4f, 3000>;
    own[at.x] = c;
    return own[at.y];
}
fn pixel(color: vec4f, at: vec2u) -> vec4f {
    var own: array<vec4f, 3000>;
    own[at.x] = one(color, at);
    return own[at.y];
}
