// Draws a picture from a storage buffer onto a render target.
//
// in: values, elements of the picture in row order; params, one block per layer
// out: the colour of one target pixel
// grid: one triangle that covers the viewport
//
// The Rust file beside this one puts a function `element(index) -> f32` and the constants CHANNELS, SCALED and LIGHT before
// this text. No branch depends on a parameter: Mesa's software driver compiles such a shader anew for every drawing, and
// keeps what it compiled (0.9 MB a frame with Mesa 22.3).

struct Params {
    // Extent of the picture in pixels.
    extent: vec2<u32>,
    // The first element of the picture.
    first: u32,
    // The row of the picture that is drawn at the top: 0, or the last row.
    top: i32,
    // Top left corner of the target region in pixels.
    origin: vec2<f32>,
    // Picture pixels per target pixel.
    step: vec2<f32>,
    // From one row to the row below it: 1, or -1 upside down.
    down: i32,
    unused_0: u32,
    unused_1: u32,
    unused_2: u32,
}

@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@vertex
fn corner(@builtin(vertex_index) at: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(at & 1u) * 4.0 - 1.0, f32(at >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

fn pixel(at: vec2<i32>) -> vec4<f32> {
    let inside = clamp(at, vec2<i32>(0), vec2<i32>(params.extent) - 1);
    let row = u32(params.top + params.down * inside.y);
    let index = params.first + (row * params.extent.x + u32(inside.x)) * CHANNELS;
    if CHANNELS == 1u {
        return vec4<f32>(vec3<f32>(element(index)), 1.0);
    }
    let colour = vec3<f32>(element(index), element(index + 1u), element(index + 2u));
    if CHANNELS == 3u {
        return vec4<f32>(colour, 1.0);
    }
    return vec4<f32>(colour, element(index + 3u));
}

fn decoded(colour: vec3<f32>) -> vec3<f32> {
    let low = colour / 12.92;
    let high = pow((colour + 0.055) / 1.055, vec3<f32>(2.4));
    return select(high, low, colour <= vec3<f32>(0.04045));
}

@fragment
fn shown(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    let target_at = position.xy - params.origin;
    var colour: vec4<f32>;
    if !SCALED {
        colour = pixel(vec2<i32>(floor(target_at)));
    } else {
        // Linear interpolation between the four nearest pixel centres.
        let at = target_at * params.step - 0.5;
        let corner_at = vec2<i32>(floor(at));
        let part = at - floor(at);
        let top = mix(pixel(corner_at), pixel(corner_at + vec2<i32>(1, 0)), part.x);
        let bottom = mix(pixel(corner_at + vec2<i32>(0, 1)), pixel(corner_at + vec2<i32>(1, 1)), part.x);
        colour = mix(top, bottom, part.y);
    }
    // The target stores light, and the driver encodes it as sRGB.
    if LIGHT {
        colour = vec4<f32>(decoded(colour.rgb), colour.a);
    }
    return colour;
}
