// Draws placed rows on a picture. The best row is the first one, so the first row that covers a pixel decides.
// The host's text adds the constants PLACED, OUTLINE and SPACE before this one.
//
// In: pixels, placed rows, the strips of labels and characters. Out: pixels. Grid: an invocation per four pixels. A
// workgroup first finds the rows that touch its pixels.

fn byte_at(at: u32) -> u32 {
    return (strips[2u * p.labels + at / 4u] >> (at % 4u * 8u)) & 255u;
}

fn inked(color: u32, ink: u32, coverage: u32) -> u32 {
    var mixed = 0u;
    for (var shift = 0u; shift < 24u; shift += 8u) {
        let one = (color >> shift) & 255u;
        let other = (ink >> shift) & 255u;
        mixed |= ((one * (255u - coverage) + other * coverage + 127u) / 255u) << shift;
    }
    return mixed;
}

// Vectors of a placed row.
const VECTORS = PLACED / 4u;

// The color of a placed row at a pixel, or no color.
const NONE: u32 = 0xffffffffu;

fn color_at(row: u32, at: vec2<i32>) -> u32 {
    let outline = rows[VECTORS * row + 1u];
    let label = rows[VECTORS * row + 2u];
    let shown = rows[VECTORS * row + 3u];
    let color = u32(shown.x);
    let cell = i32(p.cell);
    let inside = at - label.xy;
    if all(inside >= vec2<i32>()) && inside.x < label.z + 3 * SPACE + 4 * cell && inside.y < i32(p.height) {
        let x = inside.x - SPACE;
        let beyond = x - label.z - SPACE;
        var coverage = 0u;
        if x >= 0 && x < label.z {
            coverage = byte_at(u32(label.w + inside.y * label.z + x));
        } else if beyond >= 0 && beyond < 4 * cell {
            let score = u32(shown.z);
            var character = score % 10u;
            switch beyond / cell {
                case 0: { character = score / 100u; }
                case 1: { character = 10u; }
                case 2: { character = score / 10u % 10u; }
                default: {}
            }
            coverage = byte_at(p.characters + character * p.cell * p.height + u32(inside.y * cell + beyond % cell));
        }
        return inked(color, u32(shown.y), coverage);
    }
    let is_inside = all(at >= outline.xy) && all(at < outline.zw);
    if is_inside && (any(at < outline.xy + OUTLINE) || any(at >= outline.zw - OUTLINE)) { return color; }
    return NONE;
}

// The columns and lines of pixels from `first` on: left, top, and the first ones beyond right and bottom. All columns if
// the pixels are in several lines.
fn area(first: u32, count: u32) -> vec4<i32> {
    if first >= p.pixel_count { return vec4<i32>(); }
    let last = min(first + count, p.pixel_count) - 1u;
    let top = quotient(first, p.width);
    let bottom = quotient(last, p.width);
    let is_line = top == bottom;
    let left = select(0u, first - top * p.width, is_line);
    let right = select(p.width, last - top * p.width + 1u, is_line);
    return vec4<i32>(vec4<u32>(left, top, right, bottom + 1u));
}

fn touches(a: vec4<i32>, b: vec4<i32>) -> bool { return all(a.xy < b.zw) && all(b.xy < a.zw); }

// The rows of a block of 64 that touch the pixels of the workgroup, a bit each.
var<workgroup> near: array<atomic<u32>, 2>;

@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = (group.x + group.y * groups.x) * 64u + lane;
    let first = 4u * number;
    let own = area(first, 4u);
    let all_of_group = area(4u * (number - lane), 256u);
    var colors = vec4<u32>(NONE);
    for (var block = 0u; block < p.most; block += 64u) {
        if lane < 2u { atomicStore(&near[lane], 0u); }
        workgroupBarrier();
        if block + lane < p.most && touches(rows[VECTORS * (block + lane)], all_of_group) {
            atomicOr(&near[lane / 32u], 1u << (lane % 32u));
        }
        workgroupBarrier();
        for (var half = 0u; half < 2u; half++) {
            for (var bits = atomicLoad(&near[half]); bits != 0u; bits &= bits - 1u) {
                let row = block + 32u * half + firstTrailingBit(bits);
                if !touches(rows[VECTORS * row], own) { continue; }
                for (var k = 0u; k < 4u; k++) {
                    let y = quotient(first + k, p.width);
                    let at = vec2<i32>(i32(first + k - y * p.width), i32(y));
                    if colors[k] == NONE { colors[k] = color_at(row, at); }
                }
            }
        }
        workgroupBarrier();
    }
    for (var k = 0u; k < 4u && first + k < p.pixel_count; k++) {
        let pixel = pixels[first + k];
        out[first + k] = select((pixel & 0xff000000u) | colors[k], pixel, colors[k] == NONE);
    }
}
