// In: pixels, what was found, the strips of labels and characters. Out: pixels. Grid: an invocation per pixel.

fn byte_at(at: u32) -> u32 {
    return (strips[2u * p.labels + at / 4u] >> (at % 4u * 8u)) & 255u;
}

fn value_at(at: u32) -> f32 { return bitcast<f32>(found[at]); }

// The number, or 0 if it is not one.
fn number_at(at: u32) -> f32 {
    let value = value_at(at);
    return select(value, 0.0, is_nan(value));
}

fn whole(at: u32) -> i32 {
    return i32(clamp(floor(number_at(at) + 0.5), -30000.0, 30000.0));
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

fn element(i: u32) -> u32 {
    let pixel = pixels[i];
    let line = quotient(i, p.width);
    let at = vec2<i32>(i32(i - line * p.width), i32(line));
    let row = select(2u, 6u, IS_BOXES);
    let count = min(u32(clamp(number_at(1u), 0.0, 1e9)), p.most);
    let height = i32(p.height);
    let cell = i32(p.cell);
    for (var number = 0u; number < count; number++) {
        let first = 2u + number * row;
        let kind = u32(clamp(number_at(first + select(0u, 5u, IS_BOXES)), 0.0, 4e9));
        let has_label = kind < p.labels;
        var start = 0u;
        var label = 0;
        if has_label {
            start = strips[2u * kind];
            label = i32(strips[2u * kind + 1u]);
        }
        let width = label + 12 + 4 * cell;
        var corner = vec2<i32>(8, 8 + i32(number) * height);
        var low = vec2<i32>();
        var high = vec2<i32>();
        var color = 0u;
        var ink = 0xffffffu;
        if IS_BOXES {
            low = vec2<i32>(whole(first), whole(first + 1u));
            high = vec2<i32>(whole(first + 2u), whole(first + 3u));
            corner = vec2<i32>(max(min(low.x, i32(p.width) - width), 0), select(low.y, low.y - height, low.y >= height));
            color = COLORS[kind % 8u];
            ink = 0u;
        }
        let inside = at - corner;
        if all(inside >= vec2<i32>()) && inside.x < width && inside.y < height {
            let score = u32(clamp(floor(number_at(first + select(1u, 4u, IS_BOXES)) * 100.0 + 0.5), 0.0, 999.0));
            let x = inside.x - 4;
            let beyond = x - label - 4;
            var coverage = 0u;
            if x >= 0 && x < label {
                coverage = byte_at(start + u32(inside.y * label + x));
            } else if beyond >= 0 && beyond < 4 * cell {
                var character = score % 10u;
                switch beyond / cell {
                    case 0: { character = score / 100u; }
                    case 1: { character = 10u; }
                    case 2: { character = score / 10u % 10u; }
                    default: {}
                }
                coverage = byte_at(p.characters + character * p.cell * p.height + u32(inside.y * cell + beyond % cell));
            }
            return (pixel & 0xff000000u) | inked(color, ink, coverage);
        }
        if IS_BOXES && all(at >= low) && all(at < high) && (any(at < low + 2) || any(at >= high - 2)) {
            return (pixel & 0xff000000u) | color;
        }
    }
    return pixel;
}
