// Another size by mixing two source pixels along each axis.
// params: none; small: the source's place for each column, then for each row, with 12 fraction bits
fn bilinear(at: vec2<i32>, k: u32) -> vec4<i32> {
    let place = vec2<u32>(small(u32(at.x)), small(u32(frame_size().x + at.y)));
    let a = vec2<i32>(place >> vec2<u32>(12u));
    let b = min(a + vec2<i32>(1), source_size() - vec2<i32>(1));
    let f = place & vec2<u32>(4095u);
    let e = vec2<u32>(4096u) - f;
    let top = vec4<u32>(load(a)) * e.x + vec4<u32>(load(vec2<i32>(b.x, a.y))) * f.x;
    let bottom = vec4<u32>(load(vec2<i32>(a.x, b.y))) * e.x + vec4<u32>(load(b)) * f.x;
    // 255 * 2^24 and the half still fit into 32 bits.
    return vec4<i32>((top * e.y + bottom * f.y + vec4<u32>(8388608u)) >> vec4<u32>(24u));
}
