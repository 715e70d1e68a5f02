//! Filters that move pixels: `flip`, `rotate`, `crop` and `warp`.

use vramp_plan::Size;

use super::darkroom::{Picture, Pixel, check, group, level, pictures, random, refusal, try_run};

#[test]
fn flip_h_swaps_left_and_right_and_v_top_and_bottom() {
    for (text, h, v) in [
        ("flip", true, false),
        ("flip axis=h", true, false),
        ("flip axis=v", false, true),
        ("flip axis=both", true, true),
    ] {
        check(text, 0, |picture| {
            let (last_x, last_y) = (i64::from(picture.size.width) - 1, i64::from(picture.size.height) - 1);
            Picture::made(picture.size, |x, y| {
                picture.at(if h { last_x - x } else { x }, if v { last_y - y } else { y })
            })
        });
    }
}

#[test]
fn rotate_turns_clockwise_and_swaps_sides_in_a_stream_of_many_sizes() {
    let turned = |p: &Picture| {
        let size = Size { width: p.size.height, height: p.size.width };
        Picture::made(size, |x, y| p.at(y, i64::from(p.size.height) - 1 - x))
    };
    check("rotate", 0, turned);
    check("rotate degrees=90", 0, turned);
    check("rotate degrees=180", 0, |p| turned(&turned(p)));
    check("rotate degrees=270", 0, |p| turned(&turned(&turned(p))));
}

#[test]
fn crop_cuts_its_rectangle_and_refuses_a_smaller_frame_with_both_sizes() {
    let large: Vec<Picture> = pictures().into_iter().filter(|p| p.size.width >= 17 && p.size.height >= 13).collect();
    assert!(large.len() > 1);
    for (x, y, w, h) in [(0, 0, 17, 13), (3, 2, 8, 10), (16, 12, 1, 1)] {
        let text = format!("crop x={x} y={y} size={w}x{h}");
        let made = try_run(vec![group(&[&text])], large.clone()).expect("it lies within all of them");
        for (given, made) in large.iter().zip(made) {
            let cut = Picture::made(Size { width: w, height: h }, |u, v| given.inside(x + u, y + v));
            assert_eq!(made, cut, "{text}");
        }
        let small = vec![large[0].clone(), random(1, (2, 40))];
        let error = try_run(vec![group(&[&text])], small).expect_err("the second one is too narrow");
        assert!(error.contains(&format!("{w}x{h} at {x},{y}")) && error.contains("2x40"), "{error}");
    }
}

/// Solves two equations with two unknowns by Cramer's rule.
fn came_from(m: &[f64; 6], x: i64, y: i64) -> [f64; 2] {
    let (x, y) = (x as f64 - m[2], y as f64 - m[5]);
    let by = m[0] * m[4] - m[1] * m[3];
    [(x * m[4] - m[1] * y) / by, (m[0] * y - x * m[3]) / by]
}

/// The bilinear mean of the four pixels around a position.
fn mixed(picture: &Picture, [x, y]: [f64; 2]) -> Pixel {
    let (left, top) = (x.floor(), y.floor());
    let (right, bottom) = (left + 1.0, top + 1.0);
    std::array::from_fn(|channel| {
        let tap = |x: f64, y: f64| f64::from(picture.inside(x as i64, y as i64)[channel]);
        let upper = tap(left, top) * (right - x) + tap(right, top) * (x - left);
        let lower = tap(left, bottom) * (right - x) + tap(right, bottom) * (x - left);
        level(upper * (bottom - y) + lower * (y - top))
    })
}

#[test]
fn warp_mixes_four_pixels_where_the_map_came_from() {
    for m in [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 2.0, 0.0, 1.0, -1.0],
        [0.9, -0.2, 4.0, 0.2, 0.9, -2.0],
        [0.3, 0.4, 3.25, -2.0, 1.5, 6.0],
        [-1.0, 0.0, 8.0, 0.0, 40.0, 3.0],
    ] {
        let numbers: Vec<String> = m.iter().map(f64::to_string).collect();
        check(&format!("warp m={}", numbers.join(",")), 1, |picture| {
            Picture::made(picture.size, |x, y| mixed(picture, came_from(&m, x, y)))
        });
    }
    check("warp m=1,0,0,0,1,0", 0, Picture::clone);
}

#[test]
fn a_map_without_a_way_back_is_refused_with_its_numbers() {
    let flat = refusal("warp m=1,2,0,2,4,0");
    assert!(flat.contains("1.0 * 4.0 - 2.0 * 2.0 is 0.0"), "{flat}");
    let endless = refusal("warp m=1e200,0,0,0,1e200,0");
    assert!(endless.contains("is inf"), "{endless}");
}
