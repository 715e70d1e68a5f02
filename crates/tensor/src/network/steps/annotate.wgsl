// Draws placed rows on a picture. The best row is the first one, so the first row that covers a pixel decides.
//
// In: pixels, placed rows, the strips of labels and characters. Out: pixels. Grid: an invocation per four pixels.

fn byte_at(at: u32) -> u32 {
    return (strips[2u * p.labels + at / 4u] >> (at % 4u * 8u)) & 255u;
}

fn inked(color: u32, ink: u32, coverage: u32) -> u32 {
    var mixed = 0u;
    for (var shift = 0u; shift < 24u; shift += 8u) {
        let one = (color >> shift) & 255u;
        let other = (ink >> shift) & 255u;
        mixed |= ((one * (255u - coverage) + other * coverage + 127u) / 255u) << shift;
    }
    return mixed;
}

// The color of a placed row at a pixel, or no color.
const NONE: u32 = 0xffffffffu;

fn color_at(row: u32, at: vec2<i32>) -> u32 {
    let outline = rows[4u * row + 1u];
    let label = rows[4u * row + 2u];
    let shown = rows[4u * row + 3u];
    let color = u32(shown.x);
    let cell = i32(p.cell);
    let inside = at - label.xy;
    if all(inside >= vec2<i32>()) && inside.x < label.z + 12 + 4 * cell && inside.y < i32(p.height) {
        let x = inside.x - 4;
        let beyond = x - label.z - 4;
        var coverage = 0u;
        if x >= 0 && x < label.z {
            coverage = byte_at(u32(label.w + inside.y * label.z + x));
        } else if beyond >= 0 && beyond < 4 * cell {
            let score = u32(shown.z);
            var character = score % 10u;
            switch beyond / cell {
                case 0: { character = score / 100u; }
                case 1: { character = 10u; }
                case 2: { character = score / 10u % 10u; }
                default: {}
            }
            coverage = byte_at(p.characters + character * p.cell * p.height + u32(inside.y * cell + beyond % cell));
        }
        return inked(color, u32(shown.y), coverage);
    }
    if all(at >= outline.xy) && all(at < outline.zw) && (any(at < outline.xy + 2) || any(at >= outline.zw - 2)) {
        return color;
    }
    return NONE;
}

fn draw(number: u32) {
    let first = 4u * number;
    let last = min(first + 4u, p.pixel_count) - 1u;
    let top = quotient(first, p.width);
    let bottom = quotient(last, p.width);
    // The columns of the four pixels; all columns if they are in two lines.
    let is_line = top == bottom;
    let left = select(0, i32(first - top * p.width), is_line);
    let right = select(i32(p.width), i32(last - top * p.width) + 1, is_line);
    var colors = vec4<u32>(NONE);
    for (var row = 0u; row < p.most; row++) {
        let bounds = rows[4u * row];
        if bounds.x >= right || bounds.z <= left || bounds.y > i32(bottom) || bounds.w <= i32(top) { continue; }
        for (var k = 0u; k < 4u; k++) {
            let y = quotient(first + k, p.width);
            let at = vec2<i32>(i32(first + k - y * p.width), i32(y));
            if colors[k] == NONE { colors[k] = color_at(row, at); }
        }
        if all(colors != vec4<u32>(NONE)) { break; }
    }
    for (var k = 0u; k < 4u && first + k <= last; k++) {
        let pixel = pixels[first + k];
        out[first + k] = select((pixel & 0xff000000u) | colors[k], pixel, colors[k] == NONE);
    }
}
