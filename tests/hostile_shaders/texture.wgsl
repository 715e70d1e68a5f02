@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var picture: texture_2d<f32>;
@compute @workgroup_size(8)
fn main() {
    output[0] = input[0] + u32(textureLoad(picture, vec2i(0), 0).x);
}
