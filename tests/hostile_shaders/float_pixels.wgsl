@group(0) @binding(0) var<storage, read> input: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(8)
fn main() {
    output[0] = u32(input[0].x);
}
