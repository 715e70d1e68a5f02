// Turned clockwise by quarter turns.
// params: 0 how many, 1 to 3
fn rotate(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    let three = vec2<i32>(last.x - at.y, at.x);
    let one = vec2<i32>(at.y, last.y - at.x);
    return load(select(select(three, last - at, word(k) == 2u), one, word(k) == 1u));
}
