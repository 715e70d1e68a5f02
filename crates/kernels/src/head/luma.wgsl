// The mean brightness of every column, as a curve over the darkened lower quarter.
// params: none
// grid: the first pass covers the columns, the second the frame
//
// The first pass computes, for each column, the last row that the curve covers.
fn luma_gray(x: i32, y: u32) -> u32 {
    let c = load(vec2<i32>(x, i32(y)));
    return u32((9798 * c.x + 19235 * c.y + 3735 * c.z + 16384) >> 15u);
}

fn luma_first(at: vec2<i32>, k: u32) -> vec4<u32> {
    let height = u32(source_size().y);
    var sum = 0u;
    // Sums four rows per iteration, because some drivers end an invocation after 65,535 iterations.
    for (var y = 0u; y < (height & 4294967292u); y += 4u) {
        sum += luma_gray(at.x, y) + luma_gray(at.x, y + 1u) + luma_gray(at.x, y + 2u) + luma_gray(at.x, y + 3u);
    }
    for (var y = height & 4294967292u; y < height; y++) {
        sum += luma_gray(at.x, y);
    }
    let mean = (2u * sum + height) / (2u * height);
    // height - 1 - mean (height div 4 - 1) / 255, where the quotient is rounded half up. height div 4 - 1 may be -1.
    let end = height - (2u * mean * (height / 4u) + 765u - 2u * mean) / 510u;
    return vec4<u32>(end, 0u, 0u, 0u);
}

fn luma(at: vec2<i32>, k: u32) -> vec4<i32> {
    let c = load(at);
    let above = source_size().y - source_size().y / 4;
    if (at.y >= above - 2) {
        let up = i32(kept(vec2<i32>(at.x, 0)).x) - at.y;
        if (up == 0 || up == 1) {
            return vec4<i32>(0, 255, 0, 255);
        }
    }
    if (at.y >= above) {
        return vec4<i32>(c.x >> 1u, c.y >> 1u, c.z >> 1u, c.w);
    }
    return c;
}
