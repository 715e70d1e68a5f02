// Red increases from left to right, green from top to bottom.
// out: one pixel
// params: 0 blue
fn gradient(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = vec2<u32>(max(frame_size() - vec2<i32>(1), vec2<i32>(1)));
    // 255 a / last, rounded half up. Sides are at most 65,536, so 32 bits are enough.
    let level = vec2<i32>((vec2<u32>(at) * 510u + last) / (last * 2u));
    return vec4<i32>(level, int(k), 255);
}
