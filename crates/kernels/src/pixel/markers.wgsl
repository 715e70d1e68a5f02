// Squares in the corners, and a border of five rows and columns drawn over the squares.
// in: a pixel; out: (255, p, 0) in squares, (128, 255 - p, p) in the border, both opaque; otherwise the pixel
// params: 0 side of a square, 1 pulse p
fn markers(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let size = frame_size();
    let p = int(k + 1u);
    if (at.x < 5 || at.y < 5 || at.x >= size.x - 5 || at.y >= size.y - 5) {
        return vec4<i32>(128, 255 - p, p, 255);
    }
    let s = int(k);
    if ((at.x < s || at.x >= size.x - s) && (at.y < s || at.y >= size.y - s)) {
        return vec4<i32>(255, p, 0, 255);
    }
    return c;
}
