// Another size by bilinear interpolation.
// in: four source pixels; out: one pixel
// params: none
// small: the source position of each column, then of each row, with 12 fraction bits
fn bilinear(at: vec2<i32>, k: u32) -> vec4<i32> {
    let place = vec2<u32>(small(u32(at.x)), small(u32(frame_size().x + at.y)));
    let a = vec2<i32>(place >> vec2<u32>(12u));
    let b = min(a + vec2<i32>(1), source_size() - vec2<i32>(1));
    let f = place & vec2<u32>(4095u);
    let e = vec2<u32>(4096u) - f;
    let top = mix_along(load(a), load(vec2<i32>(b.x, a.y)), e.x, f.x);
    let bottom = mix_along(load(vec2<i32>(a.x, b.y)), load(b), e.x, f.x);
    return vec4<i32>(bilinear_sum(top, e.y, bottom, f.y, 262144u) >> vec4<u32>(19u));
}

// Keeps seven fraction bits.
fn mix_along(one: vec4<i32>, other: vec4<i32>, e: u32, f: u32) -> vec4<u32> {
    return bilinear_sum(vec4<u32>(one), e, vec4<u32>(other), f, 16u) >> vec4<u32>(5u);
}

fn bilinear_sum(a: vec4<u32>, e: u32, b: vec4<u32>, f: u32, half: u32) -> vec4<u32> {
    return vec4<u32>(product(a.x, e) + product(b.x, f) + half, product(a.y, e) + product(b.y, f) + half,
        product(a.z, e) + product(b.z, f) + half, product(a.w, e) + product(b.w, f) + half);
}
