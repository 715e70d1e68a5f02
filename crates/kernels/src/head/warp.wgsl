// An affine map of the plane, with bilinear interpolation.
// in: four source pixels; out: one pixel, transparent black beyond the source
// params: none
// small: for each column its contribution to the source position along x and y; then for each row its contribution
//   along x and y, the first column whose position touches the source, and the column after the last column
//   whose position touches the source
//
// Positions have 14 fraction bits, and are valid only for columns that touch the source.
fn warp(at: vec2<i32>, k: u32) -> vec4<i32> {
    let column = 2u * u32(at.x);
    let row = 2u * u32(frame_size().x) + 4u * u32(at.y);
    if (u32(at.x) < small(row + 2u) || u32(at.x) >= small(row + 3u)) {
        return vec4<i32>(0);
    }
    let place = vec2<i32>(bitcast<i32>(small(column) + small(row)), bitcast<i32>(small(column + 1u) + small(row + 1u)));
    let a = place >> vec2<u32>(14u);
    let f = place & vec2<i32>(16383);
    let both = (f.x * f.y + 8192) >> 14u;
    let sum = warp_tap(a) * (16384 - f.x - f.y + both) + warp_tap(a + vec2<i32>(1, 0)) * (f.x - both)
        + warp_tap(a + vec2<i32>(0, 1)) * (f.y - both) + warp_tap(a + vec2<i32>(1)) * both;
    return (sum + vec4<i32>(8192)) >> vec4<u32>(14u);
}

fn warp_tap(at: vec2<i32>) -> vec4<i32> {
    let inside = clamp(at, vec2<i32>(0), source_size() - vec2<i32>(1));
    return select(vec4<i32>(0), load(inside), all(at == inside));
}
