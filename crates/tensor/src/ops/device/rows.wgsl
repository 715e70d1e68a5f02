// Eight lanes join eight values each, and then every lane joins the eight results. A tree would take six steps instead
// of two. Each step needs a barrier, and barriers are slow on software drivers.
fn all_$NAME(v: $TYPE, lane: u32) -> $TYPE {
    $SHARED[lane] = v;
    workgroupBarrier();
    if lane < 8u {
        var first = $SHARED[lane];
        for (var other = lane + 8u; other < 64u; other += 8u) { first = $NAME(first, $SHARED[other]); }
        $SHARED[lane] = first;
    }
    workgroupBarrier();
    let low = $NAME($NAME($SHARED[0], $SHARED[1]), $NAME($SHARED[2], $SHARED[3]));
    let high = $NAME($NAME($SHARED[4], $SHARED[5]), $NAME($SHARED[6], $SHARED[7]));
    workgroupBarrier();
    return $NAME(low, high);
}
