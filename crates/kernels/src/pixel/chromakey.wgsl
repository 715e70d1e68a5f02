// Reduces alpha if the colour is near the key.
// in: a pixel; out: the same pixel, with less alpha if the pixel's chroma is near the key's
// params: 0, 1 the key's chroma; 2, 3 the greatest squared distance at which pixels become transparent, as a root
//   and the remainder; 4 start of the soft edge, 5 the edge's width (0 for a hard edge), 6 shift of distances, 7 the
//   factor that maps the width to 2^31
//
// Chroma is counted in 1/31250 of a level, so that its weights are integers. A distance is the integer nearest to the
// root, and is corrected to be exact.
fn chromakey(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let u = vec3<u32>(c.xyz);
    let x = i32(product(15625u, u.z)) - i32(product(5273u, u.x) + product(10352u, u.y)) - int(k);
    let y = i32(product(15625u, u.x)) - i32(product(13084u, u.y) + product(2541u, u.z)) - int(k + 1u);
    // The square needs 47 bits. Floats estimate the root. The remainder fits 32 bits, and is right although both
    // squares wrap around.
    let square = product(u32(abs(x)), u32(abs(x))) + product(u32(abs(y)), u32(abs(y)));
    var root = i32(sqrt(f32(x) * f32(x) + f32(y) * f32(y)));
    var over = bitcast<i32>(square - product(u32(root), u32(root)));
    root += i32(round(f32(over) / (2.0 * f32(max(root, 1)))));
    root = max(root, 0);
    for (var i = 0; i < 3; i++) {
        over = bitcast<i32>(square - product(u32(root), u32(root)));
        root += select(select(0, 1, over > root), -1, over <= -root && root > 0);
    }
    over = bitcast<i32>(square - product(u32(root), u32(root)));
    var kept = 0u;
    if (word(k + 5u) == 0u) {
        kept = select(0u, 65536u, root > int(k + 2u) || (root == int(k + 2u) && over > int(k + 3u)));
    } else {
        let beyond = clamp(root - int(k + 4u), 0, int(k + 5u));
        kept = min(((u32(beyond) >> word(k + 6u)) * word(k + 7u)) >> 15u, 65536u);
    }
    return vec4<i32>(c.xyz, i32((product(u32(c.w), kept) + 32768u) >> 16u));
}
