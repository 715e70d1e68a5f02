// In: pixels, the places of columns and rows with 12 fraction bits. Out: values, channels last. Grid: an invocation per value.

fn levels_at(at: u32) -> vec3<u32> {
    let pixel = pixels[at];
    return vec3<u32>(pixel & 255u, (pixel >> 8u) & 255u, (pixel >> 16u) & 255u);
}

// A place of a line, with seven fraction bits.
fn along(line: u32, place: u32) -> vec3<u32> {
    let at = line * p.from_width + (place >> 12u);
    let share = place & 4095u;
    let next = select(at, at + 1u, share > 0u);
    return (levels_at(at) * (4096u - share) + levels_at(next) * share + vec3<u32>(16u)) >> vec3<u32>(5u);
}

fn element(i: u32) -> u32 {
    let at = quotient(i, p.channels);
    let channel = p.hook[i - at * p.channels];
    let y = quotient(at, p.width);
    let column = places[at - y * p.width];
    let row = places[p.width + y];
    var levels = vec3<u32>(114u);
    if column != 0xffffffffu && row != 0xffffffffu {
        let line = row >> 12u;
        let share = row & 4095u;
        let top = along(line, column);
        let bottom = along(select(line, line + 1u, share > 0u), column);
        levels = (top * (4096u - share) + bottom * share + vec3<u32>(262144u)) >> vec3<u32>(19u);
    }
    let gray = (9798u * levels.r + 19235u * levels.g + 3735u * levels.b + 16384u) >> 15u;
    let all = vec4<u32>(levels, gray);
    return bitcast<u32>(f32(all[channel.x]) * bitcast<f32>(channel.y) + bitcast<f32>(channel.z));
}
