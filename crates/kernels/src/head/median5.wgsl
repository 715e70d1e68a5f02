// The middle one of 25 values, channel by channel.
// params: none
// Columns are sorted, then rows. Of the three diagonals in the middle of such a square, the median is the middle one of
// the greatest of the upper, the middle one of the longest and the least of the lower. Pixels beyond the border repeat
// the outermost ones.
fn median5(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    var square: array<array<vec4<i32>, 5>, 5>;
    for (var x = 0; x < 5; x++) {
        var column: array<vec4<i32>, 5>;
        for (var y = 0; y < 5; y++) {
            column[y] = load(clamp(at + vec2<i32>(x - 2, y - 2), vec2<i32>(0), last));
        }
        median5_sort(&column);
        for (var y = 0; y < 5; y++) {
            square[y][x] = column[y];
        }
    }
    var low = vec4<i32>(0);
    var high = vec4<i32>(255);
    var longest: array<vec4<i32>, 5>;
    for (var y = 0; y < 5; y++) {
        var row = square[y];
        median5_sort(&row);
        longest[y] = row[4 - y];
        if (y < 4) {
            low = max(low, row[3 - y]);
        }
        if (y > 0) {
            high = min(high, row[5 - y]);
        }
    }
    median5_sort(&longest);
    return max(min(low, longest[2]), min(max(low, longest[2]), high));
}

fn median5_sort(v: ptr<function, array<vec4<i32>, 5>>) {
    median5_order(v, 0, 3);
    median5_order(v, 1, 4);
    median5_order(v, 0, 2);
    median5_order(v, 1, 3);
    median5_order(v, 0, 1);
    median5_order(v, 2, 4);
    median5_order(v, 1, 2);
    median5_order(v, 3, 4);
    median5_order(v, 2, 3);
}

fn median5_order(v: ptr<function, array<vec4<i32>, 5>>, a: i32, b: i32) {
    let less = min((*v)[a], (*v)[b]);
    (*v)[b] = max((*v)[a], (*v)[b]);
    (*v)[a] = less;
}
