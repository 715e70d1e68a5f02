// Selects the next boxes of a batch and class: the best remaining score in each round, after dropping the boxes that
// overlap the box of the round before.
//
// In: boxes, scores, and through are_alike kinds. In and out: the state of each batch and class. Grid: a workgroup per batch and class.

const NONE: u32 = 0xffffffffu;

var<workgroup> keys: array<u32, 64>;
var<workgroup> places: array<u32, 64>;

// The lower corner, then the upper corner.
fn corners(at: u32) -> vec4<f32> {
    let v = boxes_of[at];
    var one = v.xy;
    var two = v.zw;
    if p.center_point != 0u {
        one = v.xy - v.zw / 2.0;
        two = v.xy + v.zw / 2.0;
    }
    return vec4<f32>(min(one, two), max(one, two));
}

fn area(v: vec4<f32>) -> f32 { return (v.z - v.x) * (v.w - v.y); }

fn overlaps(a: vec4<f32>, b: vec4<f32>) -> bool {
    let sides = min(a.zw, b.zw) - max(a.xy, b.xy);
    if sides.x <= 0.0 || sides.y <= 0.0 { return false; }
    let both = sides.x * sides.y;
    let all = area(a) + area(b) - both;
    return area(a) > 0.0 && area(b) > 0.0 && all > 0.0 && both / all > bitcast<f32>(p.overlap);
}

// Whether candidate a comes before candidate b.
fn is_before(a: u32, b: u32) -> bool {
    if places[a] == NONE || places[b] == NONE { return places[a] != NONE; }
    return keys[a] > keys[b] || (keys[a] == keys[b] && places[a] < places[b]);
}

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = group.x + group.y * groups.x;
    if number >= p.groups { return; }
    let base = number * p.stride;
    let first_box = number / p.classes * p.boxes;
    let first_score = number * p.boxes;
    var count = 0u;
    var last = NONE;
    if p.first > 0u {
        count = state[base];
        last = state[base + 1u];
    }
    for (var pick = 0u; pick < p.picks; pick++) {
        let is_start = p.first + pick == 0u;
        // Nothing remains after a round without a box.
        let end = select(p.boxes, 0u, !is_start && last == NONE);
        let chosen = corners(first_box + select(last, 0u, last == NONE));
        var best = 0u;
        var at = NONE;
        for (var i = lane; i < end; i += 64u) {
            let word = scores[first_score + i];
            var remains = false;
            if is_start {
                remains = !is_nan(bitcast<f32>(word))
                    && (p.has_score == 0u || bitcast<f32>(word) > bitcast<f32>(p.score));
            } else if state[base + 2u + i] != 0u {
                remains = i != last && !(are_alike(last, i) && overlaps(chosen, corners(first_box + i)));
            }
            state[base + 2u + i] = select(0u, 1u, remains);
            let k = key(word);
            if remains && (at == NONE || k > best) {
                best = k;
                at = i;
            }
        }
        keys[lane] = best;
        places[lane] = at;
        workgroupBarrier();
        if lane < 8u {
            var winner = lane;
            for (var other = lane + 8u; other < 64u; other += 8u) {
                if is_before(other, winner) { winner = other; }
            }
            keys[lane] = keys[winner];
            places[lane] = places[winner];
        }
        workgroupBarrier();
        var winner = 0u;
        for (var other = 1u; other < 8u; other++) {
            if is_before(other, winner) { winner = other; }
        }
        last = places[winner];
        workgroupBarrier();
        if last != NONE {
            if lane == 0u { state[base + 2u + p.boxes + count] = last; }
            count++;
        }
    }
    if lane == 0u {
        state[base] = count;
        state[base + 1u] = last;
    }
}
