// The middle one of nine values, channel by channel.
// params: none
// Columns are sorted; the median is the middle one of the greatest of their least, the middle one of their middles and
// the least of their greatest. Pixels beyond the border repeat the outermost ones.
fn median3(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    var low = vec4<i32>(0);
    var high = vec4<i32>(255);
    var middle = vec4<i32>(0);
    var least = vec4<i32>(255);
    var most = vec4<i32>(0);
    for (var x = at.x - 1; x <= at.x + 1; x++) {
        var a = low; var b = low; var c = low;
        // One place that loads: functions in front of the head are compiled for each.
        for (var y = at.y - 1; y <= at.y + 1; y++) {
            a = b; b = c;
            c = load(clamp(vec2<i32>(x, y), vec2<i32>(0), last));
        }
        low = max(low, min(min(a, b), c));
        high = min(high, max(max(a, b), c));
        // With the third column, this is the middle one of three.
        let here = max(min(a, b), min(max(a, b), c));
        middle = max(least, min(most, here));
        least = min(least, here);
        most = max(most, here);
    }
    return max(min(low, middle), min(max(low, middle), high));
}
