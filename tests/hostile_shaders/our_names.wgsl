struct Params { words: f32 }
const source = 0.5;
fn word(i: f32) -> f32 { return i * source; }
fn frame_size() -> f32 { return word(1.0); }
fn main(c: vec4f) -> vec4f { return c; }
fn pixel(params: vec4f) -> vec4f {
    let output = Params(frame_size());
    return main(params) * output.words;
}
