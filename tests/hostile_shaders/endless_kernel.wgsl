@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var n = id.x + 1u;
    while (n != 0u) {
        while (n != 0u) {
            while (n != 0u) {
                n = (n * 3u + input[n % 7u]) | 1u;
                output[n % 5u] = n;
            }
        }
    }
}
