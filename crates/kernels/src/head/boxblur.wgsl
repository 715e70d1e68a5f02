// Mean of a square in two passes.
// params: 0 reach along a row, 1 reach down a column, 2 pixels in the square; 3, 4, 5 how sums are divided by them
// Sums along a row are kept in 16 bits. Those of more than 257 pixels need 18: next to an even column stands an odd one,
// which keeps 14 bits of its own sum and the upper two of its neighbour's. Sums of neighbours differ by 255 at most, so
// that 14 bits tell a sum whose neighbour's is known. Pixels beyond the border repeat the outermost ones.
fn boxblur_first(at: vec2<i32>, k: u32) -> vec4<u32> {
    let reach = int(k);
    let last = source_size().x - 1;
    // An odd column's neighbour also has the pixel in front, and lacks the last one.
    let odd = reach > 128 && (at.x & 1) == 1;
    var sum = vec4<i32>(0);
    var first = vec4<i32>(0);
    var newest = vec4<i32>(0);
    for (var x = at.x - reach - select(0, 1, odd); x <= at.x + reach; x++) {
        newest = load(vec2<i32>(clamp(x, 0, last), at.y));
        sum += newest;
        first = select(first, newest, x < at.x - reach);
    }
    let own = vec4<u32>(sum - first);
    if (reach <= 128) {
        return own;
    }
    let upper = (vec4<u32>(sum - newest) >> vec4<u32>(16u)) << vec4<u32>(14u);
    return select(own & vec4<u32>(65535u), (own & vec4<u32>(16383u)) | upper, odd);
}

// The sum along a row around a place.
fn boxblur_along(at: vec2<i32>, k: u32) -> vec4<u32> {
    let own = kept(at);
    if (int(k) <= 128) {
        return own;
    }
    // The last column of an odd number has no odd one behind it: its neighbours are those in front.
    let even = min(at.x & -2, (source_size().x - 2) & -2);
    let upper = kept(vec2<i32>(even + 1, at.y)) >> vec4<u32>(14u);
    let near = kept(vec2<i32>(even, at.y)) | (upper << vec4<u32>(16u));
    return near + ((own - near + vec4<u32>(8192u)) & vec4<u32>(16383u)) - vec4<u32>(8192u);
}

fn boxblur(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size().y - 1;
    let pixels = word(k + 2u);
    var sum = vec4<u32>(pixels / 2u);
    for (var y = at.y - int(k + 1u); y <= at.y + int(k + 1u); y++) {
        sum += boxblur_along(vec2<i32>(at.x, clamp(y, 0, last)), k);
    }
    let guess = ((sum >> vec4<u32>(word(k + 3u))) * word(k + 4u)) >> vec4<u32>(word(k + 5u));
    // It is the quotient or one less.
    return vec4<i32>(guess + select(vec4<u32>(0u), vec4<u32>(1u), sum - guess * pixels >= vec4<u32>(pixels)));
}
