//! Two shaders as in a typical guide: bindings in order, one invocation, a loop over `arrayLength`.

/// The dot product of two rows.
pub const DOT: &str = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var sum = 0.0;
    for (var i = 0u; i < arrayLength(&a); i = i + 1u) { sum = sum + a[i] * b[i]; }
    result[0] = sum;
}
";

/// The cosine of the angle between two rows.
pub const COSINE: &str = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<f32>;

@compute @workgroup_size(1)
fn cosine_similarity() {
    var dot = 0.0;
    var aa = 0.0;
    var bb = 0.0;
    for (var i = 0u; i < arrayLength(&a); i++) {
        dot += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    result[0] = dot / (sqrt(aa) * sqrt(bb));
}
";
