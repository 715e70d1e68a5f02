// i444, planar 4:4:4: luma and two planes of chroma, all of the same size.
// params: as in way.wgsl
fn i444_load(at: vec2<i32>, k: u32) -> vec4<i32> {
    return way_pixel(stored_level(k, 0u, at), 16 * stored_level(k, 1u, at), 16 * stored_level(k, 2u, at), k);
}

// Stores four pixels of a row: one word of each plane.
fn i444_store(block: vec2<i32>, k: u32) {
    let at = vec2<i32>(4 * block.x, block.y);
    var w = vec3<u32>(0u);
    for (var i = 0; i < 4 && at.x + i < frame_size().x; i++) {
        let c = made(vec2<i32>(at.x + i, at.y));
        w |= vec3<u32>(way_luma(c, k), way_chroma(4 * c, k)) << vec3<u32>(u32(8 * i));
    }
    put(k, 0u, block.x, at.y, w.x);
    put(k, 1u, block.x, at.y, w.y);
    put(k, 2u, block.x, at.y, w.z);
}
