// Alternating white and black squares of 32 pixels, white in the top left corner.
// out: one pixel
// params: none
fn checker(at: vec2<i32>, k: u32) -> vec4<i32> {
    let black = ((at.x >> 5u) + (at.y >> 5u)) & 1;
    return vec4<i32>(vec3<i32>(255 * (1 - black)), 255);
}
