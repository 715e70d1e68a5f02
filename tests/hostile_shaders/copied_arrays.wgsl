@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var a: array<u32, 4096>;
    var b: array<u32, 4096>;
    a[id.x % 4096u] = input[id.x];
    b = a; a[b[3] % 7u] = 1u; a = b; b[a[5] % 7u] = 2u;
    b = a; a[b[4] % 7u] = 3u; a = b; b[a[6] % 7u] = 4u;
    output[id.x] = b[id.x % 4096u];
}
