// Every pixel is a hash of its position and of the frame.
// out: one pixel
// params: 0 the hash of the frame number and the seed
fn noise(at: vec2<i32>, k: u32) -> vec4<i32> {
    let h = noise_pcg(u32(at.y) * u32(frame_size().x) + u32(at.x) + word(k));
    return unpack_pixel(h | 0xff000000u);
}

fn noise_pcg(v: u32) -> u32 {
    let s = v * 747796405u + 2891336453u;
    let t = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
    return (t >> 22u) ^ t;
}
