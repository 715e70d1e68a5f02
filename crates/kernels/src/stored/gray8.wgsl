// gray8: luma only.
// params: as in way.wgsl
fn gray8_load(at: vec2<i32>, k: u32) -> vec4<i32> {
    return way_pixel(stored_level(k, 0u, at), 2048, 2048, k);
}

// Stores four pixels of a row: one word.
fn gray8_store(block: vec2<i32>, k: u32) {
    let at = vec2<i32>(4 * block.x, block.y);
    var w = 0u;
    for (var i = 0; i < 4 && at.x + i < frame_size().x; i++) {
        w |= way_luma(made(vec2<i32>(at.x + i, at.y)), k) << u32(8 * i);
    }
    put(k, 0u, block.x, at.y, w);
}
