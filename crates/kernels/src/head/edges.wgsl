// Edge strength: half the sum of both Sobel gradients of the grey value, each at most 255.
// in: the eight neighbours of a pixel; out: the strength in red, green and blue, with the centre's alpha
// params: none
//
// Pixels beyond the border mirror those inside, without repeating the outermost pixel. An axis of one pixel has no
// gradient.
fn edges(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    // At the border, the neighbour on the other side replaces the missing neighbour. If the axis has only one pixel,
    // this pixel replaces both of its neighbours.
    let left = select(at.x - 1, min(1, last.x), at.x == 0);
    let right = select(at.x + 1, max(last.x - 1, 0), at.x == last.x);
    let above = select(at.y - 1, min(1, last.y), at.y == 0);
    let below = select(at.y + 1, max(last.y - 1, 0), at.y == last.y);
    let upper_left = edges_gray(left, above);
    let upper_right = edges_gray(right, above);
    let lower_left = edges_gray(left, below);
    let lower_right = edges_gray(right, below);
    let corners = lower_right - upper_left;
    let across = upper_right - lower_left;
    let x = corners + across + 2 * (edges_gray(right, at.y) - edges_gray(left, at.y));
    let y = corners - across + 2 * (edges_gray(at.x, below) - edges_gray(at.x, above));
    let v = (min(abs(x), 255) + min(abs(y), 255) + 1) >> 1u;
    return vec4<i32>(v, v, v, load(at).w);
}

fn edges_gray(x: i32, y: i32) -> i32 {
    let c = load(vec2<i32>(x, y));
    return i32((product(9798u, u32(c.x)) + product(19235u, u32(c.y)) + product(3735u, u32(c.z)) + 16384u) >> 15u);
}
