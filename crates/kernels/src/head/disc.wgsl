// The gradient with the ball's disc on it.
// out: one pixel
// params: 0 blue of the gradient, 1 the disc's colour, 2 and 3 column and row of the disc's centre
fn disc(at: vec2<i32>, k: u32) -> vec4<i32> {
    let d = abs(at - vec2<i32>(int(k + 2u), int(k + 3u)));
    // Tests the distances along both axes first, because squares of long distances would overflow.
    if (max(d.x, d.y) <= 40 && d.x * d.x + d.y * d.y <= 1600) {
        return unpack_pixel(word(k + 1u));
    }
    let last = vec2<u32>(max(frame_size() - vec2<i32>(1), vec2<i32>(1)));
    let level = vec2<i32>((vec2<u32>(at) * 510u + last) / (last * 2u));
    return vec4<i32>(level, int(k), 255);
}
