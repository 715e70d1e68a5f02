// Text: coverage in one colour.
// in: a pixel; out: the colour over the pixel, with an opacity of coverage times the colour's alpha; the unchanged
//   pixel if there is no coverage
// small: the coverage of a rectangle, row by row, four pixels per word
// params: 0 colour, 1 the colour's alpha as a factor with 15 fraction bits, 2..5 the rectangle: first column, end,
//   first row, end; 6 words per row of the rectangle
fn glyphs(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    if (at.x < int(k + 2u) || at.x >= int(k + 3u) || at.y < int(k + 4u) || at.y >= int(k + 5u)) {
        return c;
    }
    let p = vec2<u32>(at - vec2<i32>(int(k + 2u), int(k + 4u)));
    let cover = (small(product(p.y, word(k + 6u)) + (p.x >> 2u)) >> ((p.x & 3u) * 8u)) & 255u;
    if (cover == 0u) {
        return c;
    }
    return over(c, unpack_pixel(word(k)).xyz, opacity(i32(cover), int(k + 1u)));
}
