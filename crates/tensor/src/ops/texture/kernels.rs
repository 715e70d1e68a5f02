//! The two kernels between tensors and textures. These kernels have no twin on the host, because without a device there
//! is no texture.
//!
//! Invariants: bits are moved unchanged. Missing texels and channels become 0.

use vramp_plan::{Binding, Shader};

/// Lays out the values of a tensor in rows of texels that a device can copy to a texture.
pub(super) fn pack() -> Shader {
    shader("texture_pack", PACK, PACK_BYTES)
}

/// Takes channels of a texture's texels, in any order, as the values of a tensor.
pub(super) fn unpack() -> Shader {
    shader("texture_unpack", UNPACK, UNPACK_BYTES)
}

const PACK_BYTES: u32 = 32;
const UNPACK_BYTES: u32 = 48;

fn shader(name: &str, wgsl: &str, bytes: u32) -> Shader {
    let bindings = vec![Binding::Read, Binding::Write, Binding::Params { bytes }];
    Shader { name: name.to_owned(), wgsl: wgsl.to_owned(), bindings, per_workgroup: 64 }
}

const PACK: &str = "
// in:   values, packed words from any byte on
// out:  rows of `pitch` words, four words per invocation
// grid: one invocation for every four words of all rows; folded
struct Params {
    // Groups of four words in all rows.
    groups: u32,
    // Words from one row to the next, and how many of them are texels.
    pitch: u32,
    row: u32,
    // The word in which the values begin, and the bit of that word at which they begin.
    first: u32,
    shift: u32,
    // Whole words of values, and the mask of value bits in the next word.
    whole: u32,
    tail: u32,
    unused: u32,
}

@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

fn word(col: u32, start: u32) -> u32 {
    let at = start + col;
    if col >= params.row || at > params.whole || (at == params.whole && params.tail == 0u) {
        return 0u;
    }
    let from_word = params.first + at;
    var bits = values[from_word];
    if params.shift != 0u {
        bits = bits >> params.shift;
        if from_word + 1u < arrayLength(&values) {
            bits = bits | (values[from_word + 1u] << (32u - params.shift));
        }
    }
    if at == params.whole {
        bits = bits & params.tail;
    }
    return bits;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.x + id.y * groups.x * 64u;
    if at >= params.groups {
        return;
    }
    let per_row = params.pitch / 4u;
    let row = at / per_row;
    let col = (at - row * per_row) * 4u;
    let start = row * params.row;
    rows[at] = vec4<u32>(word(col, start), word(col + 1u, start), word(col + 2u, start), word(col + 3u, start));
}
";

const UNPACK: &str = "
// in:   rows of texels, as devices copy them from a texture
// out:  values, packed; 0 for a missing channel or texel
// grid: one invocation per texel if a value is a word, otherwise one per word of values; folded
struct Params {
    invocations: u32,
    count: u32,
    // Texels of the texture, and of one row.
    texels: u32,
    width: u32,
    // Words from one row to the next.
    pitch: u32,
    // Values per word, channels per texel, channels taken.
    per_word: u32,
    stored: u32,
    taken: u32,
    // The position of each taken channel in a texel, in four bits each; the first channel is in the lowest bits. A
    // channel that the texture does not have is 4.
    order: u32,
    unused_a: u32,
    unused_b: u32,
    unused_c: u32,
}

@group(0) @binding(0) var<storage, read> rows: array<u32>;
@group(0) @binding(1) var<storage, read_write> values: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

fn channel(taken: u32) -> u32 {
    return (params.order >> (taken * 4u)) & 15u;
}

fn whole_words(texel: u32) {
    let y = texel / params.width;
    let start = y * params.pitch + (texel - y * params.width) * params.stored;
    for (var taken = 0u; taken < params.taken; taken++) {
        let value = texel * params.taken + taken;
        if value < params.count {
            let place = channel(taken);
            let is_there = texel < params.texels && place < params.stored;
            var word = 0u;
            if is_there { word = rows[start + place]; }
            values[value] = word;
        }
    }
}

fn parts(at: u32) -> u32 {
    let bits = 32u / params.per_word;
    let mask = (1u << bits) - 1u;
    var word = 0u;
    for (var part = 0u; part < params.per_word; part++) {
        let value = at * params.per_word + part;
        let texel = value / params.taken;
        let place = channel(value - texel * params.taken);
        if value < params.count && texel < params.texels && place < params.stored {
            let y = texel / params.width;
            let in_row = (texel - y * params.width) * params.stored + place;
            let there = rows[y * params.pitch + in_row / params.per_word];
            word |= ((there >> (in_row % params.per_word * bits)) & mask) << (part * bits);
        }
    }
    return word;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.x + id.y * groups.x * 64u;
    if at >= params.invocations {
        return;
    }
    if params.per_word == 1u {
        whole_words(at);
    } else {
        values[at] = parts(at);
    }
}
";
