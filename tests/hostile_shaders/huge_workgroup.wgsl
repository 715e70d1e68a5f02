@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
var<workgroup> shared_words: array<u32, 1000000>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {
    shared_words[i] = input[i];
    output[i] = shared_words[i];
}
