// An image composited over the frame.
// in: a pixel; out: the image over the pixel inside the image's rectangle; otherwise the pixel
// small: the image, one word per pixel
// params: 0, 1 left and top edge (signed), 2, 3 width and height, 4 factor of the image's alpha with 15 fraction bits
fn overlay(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    let p = at - vec2<i32>(int(k), int(k + 1u));
    let size = vec2<i32>(int(k + 2u), int(k + 3u));
    if (any(p < vec2<i32>(0)) || any(p >= size)) {
        return c;
    }
    let top = unpack_pixel(small(flat_place(p, size.x)));
    return over(c, top.xyz, opacity(top.w, int(k + 4u)));
}
