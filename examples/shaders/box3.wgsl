// A whole kernel: the mean of 3x3 pixels, with the border repeated.
// In: rgba8 as u32. Out: the same. Grid: a pixel per invocation, at `global_invocation_id.xy`.
//   vramp run 'pattern ! wgsl examples/shaders/box3.wgsl ! png path=out-%04d.png'

struct Settings {
    size: vec2u,   // the frame's size, because of this name and type; likewise `number: u32` and `time: f32`
    strength: f32, // = 1
}

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> settings: Settings;

fn load(x: i32, y: i32) -> vec4f {
    let last = vec2i(settings.size) - 1;
    let at = vec2u(clamp(vec2i(x, y), vec2i(0), last));
    return unpack4x8unorm(input[at.y * settings.size.x + at.x]);
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (any(id.xy >= settings.size)) {
        return;
    }
    let at = vec2i(id.xy);
    var sum = vec4f(0.0);
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            sum += load(at.x + dx, at.y + dy);
        }
    }
    let made = mix(load(at.x, at.y), sum / 9.0, settings.strength);
    output[id.y * settings.size.x + id.x] = pack4x8unorm(made);
}
