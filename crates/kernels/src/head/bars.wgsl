// Eight vertical bars: white, yellow, cyan, green, magenta, red, blue, black.
// out: one pixel
// params: none
fn bars(at: vec2<i32>, k: u32) -> vec4<i32> {
    // Bars are numbered from 0 for white. Bits 0, 1 and 2 of the number are set if the bar lacks blue, red and green.
    let lacks = (at.x * 8) / frame_size().x;
    return vec4<i32>(255 * (1 - ((lacks >> 1u) & 1)), 255 * (1 - (lacks >> 2u)), 255 * (1 - (lacks & 1)), 255);
}
