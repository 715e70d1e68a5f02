// The median of nine values, channel by channel.
// in: the source around a position; out: one pixel
// params: none
//
// The three columns are sorted. The result is the median of three values: the maximum of the columns' minima, the
// median of their medians, and the minimum of their maxima. Pixels beyond the border repeat the border.
fn median3(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    var low = vec4<i32>(0);
    var high = vec4<i32>(255);
    var middle = vec4<i32>(0);
    var least = vec4<i32>(255);
    var most = vec4<i32>(0);
    for (var x = at.x - 1; x <= at.x + 1; x++) {
        var a = low; var b = low; var c = low;
        // There is only one call of `load`, because the functions before the head are compiled for each call.
        for (var y = at.y - 1; y <= at.y + 1; y++) {
            a = b; b = c;
            c = load(clamp(vec2<i32>(x, y), vec2<i32>(0), last));
        }
        low = max(low, min(min(a, b), c));
        high = min(high, max(max(a, b), c));
        // After the third column, `middle` is the median of the three columns' medians.
        let here = max(min(a, b), min(max(a, b), c));
        middle = max(least, min(most, here));
        least = min(least, here);
        most = max(most, here);
    }
    return max(min(low, middle), min(max(low, middle), high));
}
