// Eight upright bars: white, yellow, cyan, green, magenta, red, blue, black.
// params: none
fn bars(at: vec2<i32>, k: u32) -> vec4<i32> {
    // Counted from white, a bar lacks blue, red and green as its bits 0, 1 and 2 say.
    let lacks = (at.x * 8) / frame_size().x;
    return vec4<i32>(255 * (1 - ((lacks >> 1u) & 1)), 255 * (1 - (lacks >> 2u)), 255 * (1 - (lacks & 1)), 255);
}
