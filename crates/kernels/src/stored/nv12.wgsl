// nv12: luma, then one plane of 4:2:0 chroma with u and v interleaved.
// params: as in way.wgsl
fn nv12_load(at: vec2<i32>, k: u32) -> vec4<i32> {
    let near = at >> vec2<u32>(1u);
    let far = way_far(at);
    let down = vec2<i32>(way_near(k, 1u, at.y), way_near(k, 2u, at.y));
    let across = way_near(k, 0u, at.x);
    let own = down * nv12_pair(k, near) + (4 - down) * nv12_pair(k, vec2<i32>(near.x, far.y));
    let other = down * nv12_pair(k, vec2<i32>(far.x, near.y)) + (4 - down) * nv12_pair(k, far);
    let chroma = across * own + (4 - across) * other;
    return way_pixel(stored_level(k, 0u, at), chroma.x, chroma.y, k);
}

fn nv12_pair(k: u32, at: vec2<i32>) -> vec2<i32> {
    let w = stored_word(k, 1u, at.x >> 1u, at.y) >> u32(16 * (at.x & 1));
    return vec2<i32>(vec2<u32>(w, w >> 8u) & vec2<u32>(255u));
}

// Stores four pixels of each of two rows: one word of luma per row, and one word of chroma.
fn nv12_store(block: vec2<i32>, k: u32) {
    let last = frame_size() - vec2<i32>(1);
    let y = 2 * block.y;
    // At the border, a pixel without a neighbour counts twice.
    let below = min(y + 1, last.y);
    var chroma = 0u;
    var upper = 0u;
    var lower = 0u;
    for (var pair = 0; pair < 2; pair++) {
        let x = 4 * block.x + 2 * pair;
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
            chroma |= (uv.x | (uv.y << 8u)) << u32(16 * pair);
        }
    }
    put(k, 0u, block.x, y, upper);
    if (y < last.y) {
        put(k, 0u, block.x, below, lower);
    }
    put(k, 1u, block.x, block.y, chroma);
}
