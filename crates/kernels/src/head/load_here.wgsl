// The source pixel at the same position.
// in: a source pixel; out: the same pixel
// params: none
fn load_here(at: vec2<i32>, k: u32) -> vec4<i32> {
    return load(at);
}
