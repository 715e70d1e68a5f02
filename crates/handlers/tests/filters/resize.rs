//! Resizing: sizes, factors and both simple filters.

use vramp_plan::catalog::NoProbe;
use vramp_plan::{Content, Graph, Plan, Profile, RunOptions, Size};

use super::darkroom::{Picture, check, group, level, make, random, refusal, try_run};

fn nearest(picture: &Picture, to: Size) -> Picture {
    let from = |at: i64, source: u32, made: u32| at * i64::from(source) / i64::from(made);
    Picture::made(to, |x, y| picture.at(from(x, picture.size.width, to.width), from(y, picture.size.height, to.height)))
}

fn bilinear(picture: &Picture, to: Size) -> Picture {
    let place = |at: i64, source: u32, made: u32| {
        let place = (at as f64 + 0.5) * f64::from(source) / f64::from(made) - 0.5;
        let place = place.clamp(0.0, f64::from(source - 1));
        (place.floor() as i64, place.fract())
    };
    Picture::made(to, |x, y| {
        let ((x, right), (y, down)) =
            (place(x, picture.size.width, to.width), place(y, picture.size.height, to.height));
        std::array::from_fn(|channel| {
            let v = |dx: i64, dy: i64| f64::from(picture.at(x + dx, y + dy)[channel]);
            let along = |dy: i64| v(0, dy) * (1.0 - right) + v(1, dy) * right;
            level(along(0) * (1.0 - down) + along(1) * down)
        })
    })
}

#[test]
fn resize_to_a_size_takes_the_nearest_or_mixes_two_along_each_axis() {
    for (width, height) in [(1, 1), (3, 2), (17, 13), (40, 70), (200, 5)] {
        let to = Size { width, height };
        check(&format!("resize size={to} filter=nearest"), 0, |picture| nearest(picture, to));
        check(&format!("resize size={to}"), 1, |picture| bilinear(picture, to));
    }
}

#[test]
fn resize_by_a_factor_rounds_each_side_half_up_to_at_least_one() {
    for (scale, from, to) in [
        ("0.5", (3, 3), (2, 2)),
        ("0.5", (1, 5), (1, 3)),
        ("0.5", (4, 2), (2, 1)),
        ("1.5", (1, 3), (2, 5)),
        ("0.1", (4, 5), (1, 1)),
        ("0.0001", (640, 480), (1, 1)),
        ("0.25", (6, 9), (2, 2)),
        ("1", (17, 13), (17, 13)),
        ("1000", (65, 1), (65_000, 1000)),
    ] {
        let [from, to] = [from, to].map(|(width, height)| Size { width, height });
        assert_eq!(make(&format!("resize scale={scale}")).size(from), to, "{scale} of {from}");
    }
    for scale in ["0.5", "0.333", "1.7", "2"] {
        let factor: f64 = scale.parse().expect("a number");
        let side = |n: u32| ((f64::from(n) * factor + 0.5).floor() as u32).max(1);
        let to = |size: Size| Size { width: side(size.width), height: side(size.height) };
        check(&format!("resize scale={scale} filter=nearest"), 0, |picture| nearest(picture, to(picture.size)));
        check(&format!("resize scale={scale}"), 1, |picture| bilinear(picture, to(picture.size)));
    }
    check("resize scale=1", 0, Picture::clone);
}

#[test]
fn resize_makes_the_size_that_was_planned() {
    let registry = vramp_handlers::registry();
    let catalog = registry.catalog();
    let profile = Profile::shipped("cpu").expect("it ships");
    for scale in ["0.5", "0.333", "0.1", "0.0005", "1.7", "2.5", "3"] {
        for from in [(1, 1), (3, 5), (101, 33), (639, 479)].map(|(width, height)| Size { width, height }) {
            let text = format!("pattern size={from} ! resize scale={scale} ! null");
            let reading = vramp_plan::read_text(&text, catalog);
            let graph = Graph::check(&reading.spec, catalog, &NoProbe).unwrap_or_else(|e| panic!("{e}"));
            let plan = Plan::decide(&graph, &profile, &RunOptions::new()).unwrap_or_else(|e| panic!("{e}"));
            let to_null = plan.links.iter().find(|link| plan.handlers[link.to.handler].kind() == "null");
            let Content::Video(planned) = to_null.expect("it is linked").content else { panic!("{text}: no pictures") };
            assert_eq!(make(&format!("resize scale={scale}")).size(from), planned.size, "{text}");
        }
    }
}

#[test]
fn resize_without_a_size_or_a_factor_is_refused() {
    let error = refusal("resize");
    assert!(error.contains("size") && error.contains("scale"), "{error}");
}

#[test]
fn a_factor_that_makes_a_side_too_long_fails_the_frame_with_both_sizes() {
    let pictures = vec![random(1, (70, 1))];
    let error = try_run(vec![group(&["resize scale=1000"])], pictures).expect_err("65,536 is the longest side");
    assert!(error.contains("scaling 70x1 gives 70000x1000") && error.contains("at most 65536"), "{error}");
}
