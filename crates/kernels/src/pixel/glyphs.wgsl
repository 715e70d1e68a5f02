// Text that has been set: coverage masks in one colour.
// out: the colour over the pixel, as opaque as the coverage times the colour's alpha; where glyphs overlap the greater
// coverage counts; pixels without coverage stay as they are
// small data: the atlas, four coverages to a word; lines of 6 words: x from and to, y from and to, index of the first
// glyph and of the one behind the last; glyphs of 4 words: x, y, width and height (lower and upper half), place in the
// atlas
// params: 0 colour, 1 amount of coverage with 15 fraction bits, 2..5 box around everything: x from and to,
// y from and to, 6 index of the first line, 7 number of lines
fn glyphs(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    if (at.x < int(k + 2u) || at.x >= int(k + 3u) || at.y < int(k + 4u) || at.y >= int(k + 5u)) {
        return c;
    }
    var cover = 0u;
    let last = word(k + 6u) + 6u * word(k + 7u);
    for (var line = word(k + 6u); line < last; line += 6u) {
        if (glyphs_int(line) <= at.x && at.x < glyphs_int(line + 1u)
                && glyphs_int(line + 2u) <= at.y && at.y < glyphs_int(line + 3u)) {
            let end = small(line + 5u);
            for (var glyph = small(line + 4u); glyph < end; glyph += 4u) {
                cover = max(cover, glyphs_cover(glyph, at));
            }
        }
    }
    if (cover == 0u) {
        return c;
    }
    return over(c, unpack_pixel(word(k)).xyz, opacity(i32(cover), int(k + 1u)));
}

fn glyphs_cover(glyph: u32, at: vec2<i32>) -> u32 {
    let p = at - vec2<i32>(glyphs_int(glyph), glyphs_int(glyph + 1u));
    let size = vec2<i32>(vec2<u32>(small(glyph + 2u) & 65535u, small(glyph + 2u) >> 16u));
    if (any(p < vec2<i32>(0)) || any(p >= size)) {
        return 0u;
    }
    let i = small(glyph + 3u) + u32(p.y * size.x + p.x);
    return (small(i >> 2u) >> ((i & 3u) * 8u)) & 255u;
}

fn glyphs_int(i: u32) -> i32 {
    return bitcast<i32>(small(i));
}
