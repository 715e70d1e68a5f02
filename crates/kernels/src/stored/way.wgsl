// Conversion between YUV and RGB; shared by all formats with luma.
// load params: 0 way (for the CPU), 1 black, 2 luma, 3 red from v, 4 green from u, 5 green from v, 6 blue from u;
//     7, 8, 9 the first word of each plane; 10, 11, 12 words from one row of a plane to the next; 13 weights of chroma
// store params: 0 way (for the CPU), 1 black, 2 to 4 luma, 5 to 7 u, 8 to 10 v from red, green and blue;
//     11, 12, 13 the first word of each plane; 14, 15, 16 words from one row of a plane to the next; 17 weights of
//     pixels
fn way_times(a: i32, b: i32) -> i32 {
    return (a * b) >> 16u;
}

// The pixel for a luma value, and for chroma in sixteenths of a level.
fn way_pixel(y: i32, u: i32, v: i32, k: u32) -> vec4<i32> {
    let l = way_times((y - int(k + 1u)) << 7u, int(k + 2u)) + 17;
    let cu = (u << 4u) - 32768;
    let cv = (v << 4u) - 32768;
    let red = l + way_times(cv, int(k + 3u));
    let green = l + way_times(cu, int(k + 4u)) + way_times(cv, int(k + 5u));
    let blue = l + way_times(cu, int(k + 6u));
    let c = vec3<i32>(red, green, blue) >> vec3<u32>(5u);
    return vec4<i32>(clamp(c, vec3<i32>(0), vec3<i32>(255)), 255);
}

fn way_luma(c: vec4<i32>, k: u32) -> u32 {
    let sum = c.x * int(k + 2u) + c.y * int(k + 3u) + c.z * int(k + 4u);
    return u32((sum + (int(k + 1u) << 15u) + 16384) >> 15u);
}

// u and v of the sum of four pixels.
fn way_chroma(c: vec4<i32>, k: u32) -> vec2<u32> {
    let u = c.x * int(k + 5u) + c.y * int(k + 6u) + c.z * int(k + 7u);
    let v = c.x * int(k + 8u) + c.y * int(k + 9u) + c.z * int(k + 10u);
    let sum = (vec2<i32>(u, v) + vec2<i32>(16842752)) >> vec2<u32>(17u);
    return vec2<u32>(clamp(sum, vec2<i32>(0), vec2<i32>(255)));
}

// u and v of the 4:2:0 block that starts at `at`. Centred chroma is computed from the sum of four pixels. Other chroma
// is computed from sums with a total weight of sixteen, and u and v may be sited on different lines.
fn way_halved(sum: vec4<i32>, at: vec2<i32>, k: u32) -> vec2<u32> {
    let weights = word(k + 17u);
    if (weights == 0x282828u) {
        return way_chroma(sum, k);
    }
    let last = frame_size() - vec2<i32>(1);
    var of_u = vec4<i32>(0);
    var of_v = vec4<i32>(0);
    for (var j = 0; j < 4; j++) {
        let down_u = i32((weights >> u32(8 + 2 * j)) & 3u);
        let down_v = i32((weights >> u32(16 + 2 * j)) & 3u);
        for (var i = 0; i < 4 && down_u + down_v > 0; i++) {
            let across = i32((weights >> u32(2 * i)) & 3u);
            if (across > 0) {
                // Pixels beyond the border repeat the border.
                let c = across * made(clamp(at + vec2<i32>(i - 1, j - 1), vec2<i32>(0), last));
                of_u += down_u * c;
                of_v += down_v * c;
            }
        }
    }
    let u = of_u.x * int(k + 5u) + of_u.y * int(k + 6u) + of_u.z * int(k + 7u);
    let v = of_v.x * int(k + 8u) + of_v.y * int(k + 9u) + of_v.z * int(k + 10u);
    let levels = (vec2<i32>(u, v) + vec2<i32>(67371008)) >> vec2<u32>(19u);
    return vec2<u32>(clamp(levels, vec2<i32>(0), vec2<i32>(255)));
}

// The weight in quarters of the chroma sample that covers a position. Axis 0 is horizontal, axis 1 is vertical for u,
// axis 2 is vertical for v. The remaining quarters are the weight of the sample at way_far.
fn way_near(k: u32, axis: u32, at: i32) -> i32 {
    return i32((word(k + 13u) >> (8u * axis + 4u * u32(at & 1))) & 15u);
}

// The second chroma sample that is interpolated for a position: the previous sample at even positions, the next sample
// at odd positions.
fn way_far(at: vec2<i32>) -> vec2<i32> {
    let last = ((source_size() + vec2<i32>(1)) >> vec2<u32>(1u)) - vec2<i32>(1);
    return clamp((at >> vec2<u32>(1u)) + 2 * (at & vec2<i32>(1)) - vec2<i32>(1), vec2<i32>(0), last);
}
