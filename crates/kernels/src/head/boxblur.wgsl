// The mean of a square in two passes, along rows and down columns.
// params: 0 reach along a row, 1 reach down a column, 2 number of pixels in the square; 3, 4, 5 for the division by
//   this number: bits dropped from the sum, a factor, bits dropped from the product
// grid: both passes cover the source
//
// Sums along a row are kept in 16 bits. Sums of more than 257 pixels need 18 bits: an even column keeps the lower 16
// bits of its sum, and the odd column after it keeps the lower 14 bits of its own sum and the upper two bits of the
// even column's sum. Sums of neighbours differ by at most 255, so the lower 14 bits determine a sum if the neighbour's
// sum is known. Pixels beyond the border repeat the border.
fn boxblur_first(at: vec2<i32>, k: u32) -> vec4<u32> {
    let reach = int(k);
    let last = source_size().x - 1;
    // The sum of the even column before an odd column includes one pixel more on the left and one pixel less on the
    // right.
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

// The sum along a row around a position.
fn boxblur_along(at: vec2<i32>, k: u32) -> vec4<u32> {
    let own = kept(at);
    if (int(k) <= 128) {
        return own;
    }
    // If the width is odd, the last column has no odd column after it, and uses the two columns before it.
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
    // The estimate is the quotient or one less.
    return vec4<i32>(guess + select(vec4<u32>(0u), vec4<u32>(1u), sum - guess * pixels >= vec4<u32>(pixels)));
}
