@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(8)
fn main() {
    output[0] = input[0];
}
