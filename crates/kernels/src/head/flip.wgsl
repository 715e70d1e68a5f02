// The source mirrored left-right, top-bottom or both.
// in: a source pixel; out: the same pixel
// params: 0 whether left-right, 1 whether top-bottom
fn flip(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    return load(select(at, last - at, vec2<bool>(word(k) != 0u, word(k + 1u) != 0u)));
}
