// A disc of radius 40 on a flat background.
// out: one pixel
// params: 0 background, 1 the disc's colour, 2 and 3 column and row of the disc's centre
fn ball(at: vec2<i32>, k: u32) -> vec4<i32> {
    let d = abs(at - vec2<i32>(int(k + 2u), int(k + 3u)));
    // Tests the distances along both axes first, because squares of long distances would overflow.
    let inside = max(d.x, d.y) <= 40 && d.x * d.x + d.y * d.y <= 1600;
    return unpack_pixel(select(word(k), word(k + 1u), inside));
}
