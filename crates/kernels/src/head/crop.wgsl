// A rectangle of the source.
// in: a source pixel; out: the same pixel
// params: 0, 1 the rectangle's left and top edge
fn crop(at: vec2<i32>, k: u32) -> vec4<i32> {
    return load(at + vec2<i32>(int(k), int(k + 1u)));
}
