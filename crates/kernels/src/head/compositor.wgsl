// Several images in one, each scaled into its own cell.
// in: four pixels of the topmost cell's image; out: one pixel, opaque black outside of cells
// params: 0 offset of the columns' bits in small
// small: for each cell its left, top, width and height, the width and height of its image, the offset of its column
//   positions minus its left, and the offset of its row positions minus its top; then one word for every
//   column and for every row, with a bit for each cell that crosses the column or row; then the positions, with 12
//   fraction bits
fn compositor(at: vec2<i32>, k: u32) -> vec4<i32> {
    let columns = word(k);
    let rows = columns + u32(frame_size().x);
    let crossing = small(columns + u32(at.x)) & small(rows + u32(at.y));
    let i = firstLeadingBit(crossing | 1u);
    let c = i * 8u;
    let size = vec2<i32>(i32(small(c + 4u)), i32(small(c + 5u)));
    // Outside of cells there are no positions, and the first pixel is read.
    let starts = vec2<u32>(small(c + 6u), small(c + 7u));
    let here = select(vec2<u32>(0u), starts + vec2<u32>(at), crossing != 0u);
    let place = select(vec2<u32>(0u), vec2<u32>(small(here.x), small(here.y)), crossing != 0u);
    let a = vec2<i32>(place >> vec2<u32>(12u));
    let b = min(a + vec2<i32>(1), size - vec2<i32>(1));
    let f = place & vec2<u32>(4095u);
    let e = vec2<u32>(4096u) - f;
    let four = load_four(i32(i), a, b, size.x);
    let top = mix_along(four.x, four.y, e.x, f.x);
    let bottom = mix_along(four.z, four.w, e.x, f.x);
    let c4 = vec4<i32>((top * e.y + bottom * f.y + vec4<u32>(262144u)) >> vec4<u32>(19u));
    return select(vec4<i32>(0, 0, 0, 255), c4, crossing != 0u);
}

// Keeps seven fraction bits, like `bilinear`.
fn mix_along(one: u32, other: u32, e: u32, f: u32) -> vec4<u32> {
    return (vec4<u32>(unpack_pixel(one)) * e + vec4<u32>(unpack_pixel(other)) * f + vec4<u32>(16u)) >> vec4<u32>(5u);
}
