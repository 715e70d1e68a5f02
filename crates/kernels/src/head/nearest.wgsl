// Another size by the nearest source pixel.
// in: a source pixel; out: the same pixel
// params: none
// small: the source column of each column, then the source row of each row
fn nearest(at: vec2<i32>, k: u32) -> vec4<i32> {
    return load(vec2<i32>(i32(small(u32(at.x))), i32(small(u32(frame_size().x + at.y)))));
}
