// Pixels to values: resized, normalised, in the wanted order, in one go.
//
// In: rgba8, a word per pixel. Out: a value per chosen channel and pixel.

fn channel_of(pixel: u32, channel: u32) -> f32 {
    return f32(extractBits(in0[p.offset + pixel], channel * 8u, 8u));
}

// The chosen channel of the pixel at x, y of the result.
fn sample(x: u32, y: u32, channel: u32) -> f32 {
$SAMPLE
}

// The result at x, y in place c of the chosen order.
fn normal(x: u32, y: u32, c: u32) -> f32 {
    let v = sample(x, y, extractBits(p.picks, c * 8u, 8u)) / 255.0;
    return (v - bitcast<f32>(p.mean[c])) * bitcast<f32>(p.share[c]);
}

fn element(i: u32) -> u32 {
$SPLIT
    let y = pixel / p.out_w;
    let x = pixel - y * p.out_w;
    return $BITS;
}
