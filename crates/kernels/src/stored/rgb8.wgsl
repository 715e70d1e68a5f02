// rgb8: three bytes per pixel.
// params: as in way.wgsl; only the planes are used
fn rgb8_load(at: vec2<i32>, k: u32) -> vec4<i32> {
    let first = 3 * at.x;
    let low = stored_word(k, 0u, first >> 2u, at.y);
    // Reads only words that hold bytes of this pixel, because the next word may be beyond the frame.
    let high = stored_word(k, 0u, (first + 2) >> 2u, at.y);
    let shift = u32(8 * (first & 3));
    let w = select((low >> shift) | (high << ((32u - shift) & 31u)), low >> shift, shift <= 8u);
    return vec4<i32>(vec3<i32>(vec3<u32>(w, w >> 8u, w >> 16u) & vec3<u32>(255u)), 255);
}

// Stores four pixels of a row: three words.
fn rgb8_store(block: vec2<i32>, k: u32) {
    var c = vec4<u32>(0u);
    for (var i = 0; i < 4 && 4 * block.x + i < frame_size().x; i++) {
        c[i] = pack_pixel(made(vec2<i32>(4 * block.x + i, block.y))) & 0xffffffu;
    }
    put(k, 0u, 3 * block.x, block.y, c.x | (c.y << 24u));
    put(k, 0u, 3 * block.x + 1, block.y, (c.y >> 8u) | (c.z << 16u));
    put(k, 0u, 3 * block.x + 2, block.y, (c.z >> 16u) | (c.w << 8u));
}
