@group(0) @binding(0) var<storage, read> input: array<u32>;
var<private> kept: u32;
@compute @workgroup_size(8)
fn main() {
    kept = input[0];
}
