// The source rotated clockwise by quarter turns.
// in: a source pixel; out: the same pixel
// params: 0 number of quarter turns, 1 to 3
fn rotate(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    let three = vec2<i32>(last.x - at.y, at.x);
    let one = vec2<i32>(at.y, last.y - at.x);
    return load(select(select(three, last - at, word(k) == 2u), one, word(k) == 1u));
}
