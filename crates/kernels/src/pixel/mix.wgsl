// Another image blended in.
// in: a pixel a, and the other image's pixel b at the same position
// out: mode 0 mix: between a and b, four channels; 1 over: b over a; 2 add, 3 multiply, 4 screen, 5 difference: red,
//   green and blue between a and the mode's result, a's alpha kept
// params: 0 mode, 1 amount with 14 fraction bits (mode 1: with 15)
fn mix(a: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let b = unpack_pixel(side(u32(at.y) * u32(frame_size().x) + u32(at.x)));
    let t = int(k + 1u);
    var rgb: vec3<i32>;
    switch (int(k)) {
        case 0: { return a + (((b - a) * t + vec4<i32>(8192)) >> vec4<u32>(14u)); }
        case 1: { return over(a, b.xyz, opacity(b.w, t)); }
        case 2: { rgb = mix_toward(a.xyz, b.xyz, t); }
        case 3: { rgb = mix_in_255ths(a.xyz, a.xyz * (b.xyz - vec3<i32>(255)), t); }
        case 4: { rgb = mix_in_255ths(a.xyz, b.xyz * (vec3<i32>(255) - a.xyz), t); }
        default: { rgb = mix_toward(a.xyz, abs(a.xyz - b.xyz) - a.xyz, t); }
    }
    return vec4<i32>(rgb, a.w);
}

fn mix_toward(a: vec3<i32>, d: vec3<i32>, t: i32) -> vec3<i32> {
    return min(a + ((d * t + vec3<i32>(8192)) >> vec3<u32>(14u)), vec3<i32>(255));
}

// d is in 1/255 of a level. The sum is never negative.
fn mix_in_255ths(a: vec3<i32>, d: vec3<i32>, t: i32) -> vec3<i32> {
    return ((a * 4177920 + d * t + vec3<i32>(2088960)) >> vec3<u32>(14u)) / vec3<i32>(255);
}
