// Several pictures in one, each scaled into a cell of its own.
// params: how many cells; small: for each cell its left, top, width and height, the width and height of its picture, and
// where the picture's places for its columns and for its rows begin; then those places, with 12 fraction bits
fn compositor(at: vec2<i32>, k: u32) -> vec4<i32> {
    for (var i = int(k) - 1; i >= 0; i--) {
        let c = u32(i) * 8u;
        let inside = at - vec2<i32>(i32(small(c)), i32(small(c + 1u)));
        if (all(inside >= vec2<i32>(0)) && all(inside < vec2<i32>(i32(small(c + 2u)), i32(small(c + 3u))))) {
            return scaled(i, c, vec2<u32>(inside));
        }
    }
    return vec4<i32>(0, 0, 0, 255);
}
fn scaled(i: i32, c: u32, inside: vec2<u32>) -> vec4<i32> {
    let size = vec2<i32>(i32(small(c + 4u)), i32(small(c + 5u)));
    let place = vec2<u32>(small(small(c + 6u) + inside.x), small(small(c + 7u) + inside.y));
    let a = vec2<i32>(place >> vec2<u32>(12u));
    let b = min(a + vec2<i32>(1), size - vec2<i32>(1));
    let f = place & vec2<u32>(4095u);
    let e = vec2<u32>(4096u) - f;
    let top = vec4<u32>(load_from(i, a, size.x)) * e.x + vec4<u32>(load_from(i, vec2<i32>(b.x, a.y), size.x)) * f.x;
    let bottom = vec4<u32>(load_from(i, vec2<i32>(a.x, b.y), size.x)) * e.x + vec4<u32>(load_from(i, b, size.x)) * f.x;
    // 255 * 2^24 and the half still fit into 32 bits.
    return vec4<i32>((top * e.y + bottom * f.y + vec4<u32>(8388608u)) >> vec4<u32>(24u));
}
