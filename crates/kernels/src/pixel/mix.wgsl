// Another image blended in.
// in: a pixel a, and the other image's pixel b at the same position
// out: mode 0 mix: between a and b, four channels; 1 over: b over a; 2 add, 3 multiply, 4 screen, 5 difference: red,
//   green and blue between a and the mode's result, a's alpha kept
// params: 0 mode, 1 amount with 14 fraction bits (mode 1: with 15)
fn mix(a: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let b = unpack_pixel(side(at));
    let mode = word(k);
    let t = word(k + 1u);
    if (mode == 1u) {
        return over(a, b.xyz, opacity(b.w, int(k + 1u)));
    }
    // The weight of a, and what is added with weight t. `add` keeps all of a.
    let rest = select(16384u - t, 16384u, mode == 2u);
    let add = vec4<u32>(select(b, abs(a - b), mode == 5u));
    let c = vec4<u32>(a);
    if (mode == 3u || mode == 4u) {
        // What is missing from a after multiplying, or what is added by screen, is in 1/255 of a level.
        let x = select(vec3<u32>(255u) - c.xyz, c.xyz, mode == 3u);
        let y = select(add.xyz, vec3<u32>(255u) - add.xyz, mode == 3u);
        return vec4<i32>(mix_255ths(c.x, x.x, y.x, t, mode), mix_255ths(c.y, x.y, y.y, t, mode),
            mix_255ths(c.z, x.z, y.z, t, mode), a.w);
    }
    let mixed = vec4<i32>(mix_sum(c.x, rest, add.x, t), mix_sum(c.y, rest, add.y, t), mix_sum(c.z, rest, add.z, t),
        mix_sum(c.w, rest, add.w, t));
    return select(vec4<i32>(min(mixed.xyz, vec3<i32>(255)), a.w), mixed, mode == 0u);
}

fn mix_sum(a: u32, rest: u32, b: u32, t: u32) -> i32 {
    return i32((product(a, rest) + product(b, t) + 8192u) >> 14u);
}

// The sum is never negative and at most 255 * 255.5 after the shift, for which the division is exact.
fn mix_255ths(a: u32, x: u32, y: u32, t: u32, mode: u32) -> i32 {
    let change = product(product(x, y), t);
    let whole = product(a, 4177920u) + 2088960u;
    let sum = select(whole + change, whole - change, mode == 3u) >> 14u;
    return i32((sum + 1u + (sum >> 8u)) >> 8u);
}
