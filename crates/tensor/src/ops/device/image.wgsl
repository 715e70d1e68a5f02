// Pixels to values: resized, normalised and reordered in one pass.
//
// In: rgba8, a word per pixel. Out: a value per chosen channel and pixel.
// Grid: an invocation per pixel, or per word of the result if values share words.

fn pixel_at(x: u32, y: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8(in0[p.offset + y * p.in_w + x]));
}

// All channels of the pixel at x, y of the result.
fn sample(x: u32, y: u32) -> vec4<f32> {
$SAMPLE
}

// The chosen channels in their order, normalised.
fn normal(pixel: u32) -> vec4<f32> {
    let y = quotient(pixel, p.out_w);
    let v = sample(pixel - y * p.out_w, y) / 255.0;
    return (v.$PICKS - bitcast<vec4<f32>>(p.mean)) * bitcast<vec4<f32>>(p.share);
}
