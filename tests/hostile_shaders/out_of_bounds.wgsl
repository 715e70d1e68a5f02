@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let far = 0xfffffff0u * (id.x + 1u);
    output[far] = input[far + 3u] + input[id.x * 1000000u];
    output[arrayLength(&output) + id.x] = 5u;
}
