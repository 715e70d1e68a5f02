// The source pixel nearest to each place.
// params: none; small: the source's column for each column, then the source's row for each row
fn nearest(at: vec2<i32>, k: u32) -> vec4<i32> {
    return load(vec2<i32>(i32(small(u32(at.x))), i32(small(u32(frame_size().x + at.y)))));
}
