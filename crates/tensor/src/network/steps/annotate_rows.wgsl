// Places the rows of what was found: each word of each placed row. The host's text adds the constants HEADER, ROW, PLACED,
// CORNER, SPACE, COLOR_COUNT, COLORS and IS_BOXES before this one.
//
// In: what was found, the strips of labels and characters. Out: placed rows. Grid: an invocation per word.

// The number, or 0 if it is not one.
fn number_at(at: u32) -> f32 {
    let value = bitcast<f32>(found[at]);
    return select(value, 0.0, is_nan(value));
}

fn whole(at: u32) -> i32 {
    return i32(clamp(floor(number_at(at) + 0.5), -30000.0, 30000.0));
}

fn element(i: u32) -> u32 {
    let number = i / PLACED;
    let word = i % PLACED;
    if number >= u32(clamp(number_at(1u), 0.0, 1e9)) { return 0u; }
    let first = HEADER + number * ROW;
    let kind = u32(clamp(number_at(first + select(0u, 5u, IS_BOXES)), 0.0, 1e9));
    var start = 0u;
    var label = 0u;
    if kind < p.labels {
        start = strips[2u * kind];
        label = strips[2u * kind + 1u];
    }
    let size = vec2<i32>(i32(label) + 3 * SPACE + 4 * i32(p.cell), i32(p.height));
    var low = vec2<i32>();
    var high = vec2<i32>();
    var corner = vec2<i32>(CORNER, CORNER + i32(number * p.height));
    var bounds = vec4<i32>(corner, corner + size);
    if IS_BOXES {
        low = vec2<i32>(whole(first), whole(first + 1u));
        high = vec2<i32>(whole(first + 2u), whole(first + 3u));
        corner = vec2<i32>(max(min(low.x, i32(p.width) - size.x), 0), select(low.y, low.y - size.y, low.y >= size.y));
        bounds = vec4<i32>(min(low, corner), max(high, corner + size));
    }
    switch word / 4u {
        case 0u: { return u32(bounds[word % 4u]); }
        case 1u: { return u32(vec4<i32>(low, high)[word % 4u]); }
        case 2u: { return vec4<u32>(vec2<u32>(corner), label, start)[word % 4u]; }
        default: {}
    }
    let score = u32(clamp(floor(number_at(first + select(1u, 4u, IS_BOXES)) * 100.0 + 0.5), 0.0, 999.0));
    let color = select(0u, COLORS[kind % COLOR_COUNT], IS_BOXES);
    return vec4<u32>(color, select(0xffffffu, 0u, IS_BOXES), score, 0u)[word % 4u];
}
