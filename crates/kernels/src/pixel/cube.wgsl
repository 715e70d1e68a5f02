// A 3D colour table, with tetrahedral interpolation between four entries.
// in: a pixel; out: red, green and blue looked up; alpha kept
// params: 0 entries along an edge, 1 fraction bits of the entries' values, 2 whether the entries are bytes
// small: for each level of red, then of green, then of blue: the entry below it (upper 16 bits) and the distance to the
//   next entry in 1/16384 (lower 16 bits); then the entries, with red changing fastest: one word of red and green and
//   one word of blue, with 16 signed bits each, or a single word of bytes
fn cube(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let place = vec3<u32>(small(u32(c.x)), small(256u + u32(c.y)), small(512u + u32(c.z)));
    let f = vec3<i32>(place & vec3<u32>(65535u));
    let step = vec3<u32>(1u, word(k), product(word(k), word(k)));
    let low = place >> vec3<u32>(16u);
    let base = low.x + product(low.y, step.y) + product(low.z, step.z);
    let across = step.x + step.y + step.z;
    // Steps from the lowest corner to the highest: first along the axis with the greatest fraction, last along the axis
    // with the smallest.
    let first = select(select(step.z, step.y, f.y >= f.z), step.x, f.x >= f.y && f.x >= f.z);
    let last = select(select(step.x, step.y, f.y <= f.x), step.z, f.z <= f.x && f.z <= f.y);
    let most = max(f.x, max(f.y, f.z));
    let least = min(f.x, min(f.y, f.z));
    let middle = f.x + f.y + f.z - most - least;
    // The weights have the sum 16384, and the entries are 32768 too large.
    let sum = bitcast<vec3<i32>>(cube_part(base, 16384 - most, k) + cube_part(base + first, most - middle, k)
        + cube_part(base + across - last, middle - least, k) + cube_part(base + across, least, k)
        - vec3<u32>(536870912u));
    let shift = 14u + word(k + 1u);
    let level = (sum + vec3<i32>(1 << (shift - 1u))) >> vec3<u32>(shift);
    return vec4<i32>(clamp(level, vec3<i32>(0), vec3<i32>(255)), c.w);
}

fn cube_part(i: u32, weight: i32, k: u32) -> vec3<u32> {
    let entry = cube_entry(i, k);
    let w = u32(weight);
    return vec3<u32>(product(entry.x, w), product(entry.y, w), product(entry.z, w));
}

// An entry plus 32768, which is positive.
fn cube_entry(i: u32, k: u32) -> vec3<u32> {
    if (word(k + 2u) != 0u) {
        return vec3<u32>(unpack_pixel(small(768u + i)).xyz) + vec3<u32>(32768u);
    }
    let rg = small(768u + 2u * i) ^ 0x80008000u;
    return vec3<u32>(rg & 65535u, rg >> 16u, (small(769u + 2u * i) ^ 0x8000u) & 65535u);
}
