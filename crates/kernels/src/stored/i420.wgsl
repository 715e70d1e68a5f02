// i420, planar 4:2:0: luma, then two planes of chroma of half the width and height.
// params: as in way.wgsl
fn i420_load(at: vec2<i32>, k: u32) -> vec4<i32> {
    return way_pixel(stored_level(k, 0u, at), i420_between(k, 1u, at), i420_between(k, 2u, at), k);
}

fn i420_between(k: u32, plane: u32, at: vec2<i32>) -> i32 {
    let near = at >> vec2<u32>(1u);
    let far = way_far(at);
    let down = way_near(k, plane, at.y);
    let across = way_near(k, 0u, at.x);
    let own = down * stored_level(k, plane, near) + (4 - down) * stored_level(k, plane, vec2<i32>(near.x, far.y));
    let other = down * stored_level(k, plane, vec2<i32>(far.x, near.y)) + (4 - down) * stored_level(k, plane, far);
    return across * own + (4 - across) * other;
}

// Stores eight pixels of each of two rows: two words of luma per row, one word of u and one of v.
fn i420_store(block: vec2<i32>, k: u32) {
    let last = frame_size() - vec2<i32>(1);
    let y = 2 * block.y;
    // At the border, a pixel without a neighbour counts twice.
    let below = min(y + 1, last.y);
    var chroma = vec2<u32>(0u);
    for (var word = 0; word < 2; word++) {
        var upper = 0u;
        var lower = 0u;
        for (var pair = 0; pair < 2; pair++) {
            let x = 8 * block.x + 4 * word + 2 * pair;
            if (x <= last.x) {
                let right = min(x + 1, last.x);
                let a = made(vec2<i32>(x, y));
                let b = made(vec2<i32>(right, y));
                let c = made(vec2<i32>(x, below));
                let d = made(vec2<i32>(right, below));
                let seconds = select(vec2<u32>(0u), vec2<u32>(way_luma(b, k), way_luma(d, k)), x < last.x);
                upper |= (way_luma(a, k) | (seconds.x << 8u)) << u32(16 * pair);
                lower |= (way_luma(c, k) | (seconds.y << 8u)) << u32(16 * pair);
                let uv = way_halved(a + b + c + d, vec2<i32>(x, y), k);
                chroma |= uv << vec2<u32>(u32(16 * word + 8 * pair));
            }
        }
        put(k, 0u, 2 * block.x + word, y, upper);
        if (y < last.y) {
            put(k, 0u, 2 * block.x + word, below, lower);
        }
    }
    put(k, 1u, block.x, block.y, chroma.x);
    put(k, 2u, block.x, block.y, chroma.y);
}
