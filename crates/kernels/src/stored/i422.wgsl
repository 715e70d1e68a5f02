// i422, planar 4:2:2: luma, then two planes of chroma of half the width.
// params: as in way.wgsl
fn i422_load(at: vec2<i32>, k: u32) -> vec4<i32> {
    return way_pixel(stored_level(k, 0u, at), i422_between(k, 1u, at), i422_between(k, 2u, at), k);
}

fn i422_between(k: u32, plane: u32, at: vec2<i32>) -> i32 {
    let near = stored_level(k, plane, vec2<i32>(at.x >> 1u, at.y));
    return 12 * near + 4 * stored_level(k, plane, vec2<i32>(way_far(at).x, at.y));
}

// Stores eight pixels of a row: two words of luma, one word of u and one of v.
fn i422_store(block: vec2<i32>, k: u32) {
    let last = frame_size().x - 1;
    var chroma = vec2<u32>(0u);
    for (var word = 0; word < 2; word++) {
        var luma = 0u;
        for (var pair = 0; pair < 2; pair++) {
            let x = 8 * block.x + 4 * word + 2 * pair;
            if (x <= last) {
                let a = made(vec2<i32>(x, block.y));
                // At the end of a row, a pixel without a neighbour counts twice.
                let b = made(vec2<i32>(min(x + 1, last), block.y));
                let second = select(0u, way_luma(b, k), x < last);
                luma |= (way_luma(a, k) | (second << 8u)) << u32(16 * pair);
                chroma |= way_chroma(2 * (a + b), k) << vec2<u32>(u32(16 * word + 8 * pair));
            }
        }
        put(k, 0u, 2 * block.x + word, block.y, luma);
    }
    put(k, 1u, block.x, block.y, chroma.x);
    put(k, 2u, block.x, block.y, chroma.y);
}
