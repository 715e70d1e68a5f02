// The median of 25 values, channel by channel.
// in: the source around a position; out: one pixel
// params: none
//
// The columns of the square are sorted, then the rows of the result. The median of all values is then the median of
// three values from the three middle diagonals, which rise to the right: the maximum of the upper diagonal, the median
// of the longest diagonal, and the minimum of the lower diagonal. Only the ranks on these diagonals are kept, column by
// column, so the shader has neither an array nor a long text to compile. Pixels beyond the border repeat the border.
fn median5(at: vec2<i32>, k: u32) -> vec4<i32> {
    let last = source_size() - vec2<i32>(1);
    // The greatest values of the upper three rows, and the least of the lower two.
    var a0 = vec4<i32>(0); var a1 = a0;
    var b0 = a0; var b1 = a0; var b2 = a0;
    var c0 = a0; var c1 = a0; var c2 = a0; var c3 = a0;
    var d0 = vec4<i32>(255); var d1 = d0; var d2 = d0;
    var e0 = d0; var e1 = d0;
    for (var x = at.x - 2; x <= at.x + 2; x++) {
        var p0 = a0; var p1 = a0; var p2 = a0; var p3 = a0; var p4 = a0;
        // There is only one call of `load`, because the functions before the head are compiled for each call.
        for (var y = at.y - 2; y <= at.y + 2; y++) {
            p0 = p1; p1 = p2; p2 = p3; p3 = p4;
            p4 = load(clamp(vec2<i32>(x, y), vec2<i32>(0), last));
        }
        // A sorting network of nine exchanges.
        let q0 = min(p0, p3); let q3 = max(p0, p3);
        let q1 = min(p1, p4); let q4 = max(p1, p4);
        let r0 = min(q0, p2); let r2 = max(q0, p2);
        let r1 = min(q1, q3); let r3 = max(q1, q3);
        let s0 = min(r0, r1); let s1 = max(r0, r1);
        let s2 = min(r2, q4); let s4 = max(r2, q4);
        let t1 = min(s1, s2); let t2 = max(s1, s2);
        let t3 = min(r3, s4); let v4 = max(r3, s4);
        let v2 = min(t2, t3); let v3 = max(t2, t3);
        a1 = max(a1, min(a0, s0)); a0 = max(a0, s0);
        b2 = max(b2, min(b1, t1)); b1 = max(b1, min(b0, t1)); b0 = max(b0, t1);
        c3 = max(c3, min(c2, v2)); c2 = max(c2, min(c1, v2)); c1 = max(c1, min(c0, v2)); c0 = max(c0, v2);
        d2 = min(d2, max(d1, v3)); d1 = min(d1, max(d0, v3)); d0 = min(d0, v3);
        e1 = min(e1, max(e0, v4)); e0 = min(e0, v4);
    }
    let low = max(max(a1, b2), max(c3, d0));
    let high = min(min(b0, c1), min(d2, e1));
    // The median of five values: of four values, the minimum and the maximum are dropped. The result is the median of
    // the other two and the fifth.
    let f0 = min(a0, b1); let f1 = max(a0, b1);
    let g0 = min(d1, e0); let g1 = max(d1, e0);
    let least = max(f0, g0);
    let most = min(f1, g1);
    let middle = max(min(least, most), min(max(least, most), c2));
    return max(min(low, middle), min(max(low, middle), high));
}
