@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
var<workgroup> sum: array<u32, 64>;
@compute @workgroup_size(8, 8)
fn main(@builtin(local_invocation_index) i: u32) {
    sum[i] = input[i];
    if (sum[i] % 2u == 0u) {
        workgroupBarrier();
    }
    output[i] = sum[63u - i];
}
