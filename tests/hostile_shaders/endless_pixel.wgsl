fn pixel(color: vec4f) -> vec4f {
    var c = color;
    // Some drivers end a loop after 65536 rounds; three nested loops still take forever.
    for (var i = 0.0; i >= 0.0; i += 1.0) {
        for (var j = 0.0; j >= 0.0; j += 1.0) {
            for (var k = 0.0; k >= 0.0; k += 1.0) {
                c = fract(c * 1.37 + vec4f(i, j, k, 0.1));
            }
        }
    }
    return c;
}
