//! Filters of single pixels.

use super::darkroom::{Picture, check, gray, level, settings, try_make};

/// Applies a function of one channel to red, green and blue.
fn channels(f: impl Fn(f64) -> f64) -> impl Fn(&Picture) -> Picture {
    move |picture| picture.map(|[r, g, b, a]| [level(f(r.into())), level(f(g.into())), level(f(b.into())), a])
}

/// Applies a function of three channels to red, green and blue.
fn colors(f: impl Fn([f64; 3]) -> [f64; 3]) -> impl Fn(&Picture) -> Picture {
    move |picture| {
        picture.map(|[r, g, b, a]| {
            let [r, g, b] = f([r, g, b].map(f64::from)).map(level);
            [r, g, b, a]
        })
    }
}

#[test]
fn invert_is_255_minus_the_value_and_keeps_alpha() {
    check("invert", 0, |picture| picture.map(|[r, g, b, a]| [255 - r, 255 - g, 255 - b, a]));
}

#[test]
fn brightness_adds_parts_of_full() {
    for amount in [0.0, 0.1, -0.1, 0.039_215_7, 0.5, -0.5, 1.0, -1.0, 8.0, -8.0] {
        check(&format!("brightness amount={amount}"), 0, channels(|v| v + 255.0 * amount));
    }
    check("brightness", 0, Picture::clone);
}

#[test]
fn contrast_multiplies_around_its_pivot() {
    for (amount, pivot) in [(1.2, 0.0), (0.0, 0.0), (0.0, 0.5), (-1.0, 0.5), (100.0, 0.3), (-100.0, 1.0), (0.7, 1.0)] {
        let formula = channels(move |v| (v - 255.0 * pivot) * amount + 255.0 * pivot);
        check(&format!("contrast amount={amount} pivot={pivot}"), 0, formula);
    }
    check("contrast", 0, Picture::clone);
}

#[test]
fn gamma_bends_and_leaves_the_ends() {
    for value in [2.2, 0.45, 0.01, 100.0] {
        check(&format!("gamma value={value}"), 0, channels(|v| 255.0 * (v / 255.0).powf(1.0 / value)));
    }
    check("gamma", 0, Picture::clone);
}

#[test]
fn saturation_moves_away_from_luma() {
    for amount in [0.7, 0.0, 1.0, -1.0, 3.0, 16.0, -16.0] {
        let formula = colors(|[r, g, b]| {
            let luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
            [r, g, b].map(|v| luma + amount * (v - luma))
        });
        check(&format!("saturation amount={amount}"), 1, formula);
    }
    check("saturation", 0, Picture::clone);
}

#[test]
fn hue_turns_the_plane_of_i_and_q() {
    const T: [[f64; 3]; 3] = [[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]];
    /// Solves by Cramer's rule: each unknown is a quotient of determinants.
    fn solve(t: [[f64; 3]; 3], y: [f64; 3]) -> [f64; 3] {
        let det = |m: [[f64; 3]; 3]| {
            m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
        };
        std::array::from_fn(|column| {
            let mut with = t;
            (0..3).for_each(|row| with[row][column] = y[row]);
            det(with) / det(t)
        })
    }
    for degrees in [0.0, 30.0, 120.0, -77.5, 180.0, 3600.0, -3600.0] {
        let formula = colors(move |rgb| {
            let [y, i, q] = T.map(|row| row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2]);
            let (sin, cos) = f64::to_radians(degrees).sin_cos();
            solve(T, [y, i * cos + q * sin, q * cos - i * sin])
        });
        check(&format!("hue degrees={degrees}"), 1, formula);
    }
    check("hue", 0, Picture::clone);
}

#[test]
fn colormatrix_sums_all_four_channels_and_a_constant() {
    let identity = [1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0.];
    let swap = [0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0., 1., 0.];
    let mixed: [f64; 20] = std::array::from_fn(|i| (i * 7 % 11) as f64 / 8.0 - 0.6);
    let huge: [f64; 20] = std::array::from_fn(|i| if i % 5 == 4 { -300.0 } else { 400.0 });
    let zero = [0.0; 20];
    for (m, tolerance) in [(identity, 0), (swap, 0), (mixed, 1), (huge, 1), (zero, 0)] {
        let text = m.map(|f| f.to_string()).join(",");
        check(&format!("colormatrix m={text}"), tolerance, |picture| {
            picture.map(|p| {
                let row = |row: usize| {
                    let m = &m[5 * row..][..5];
                    p.iter().zip(m).map(|(v, f)| f64::from(*v) * f).sum::<f64>() + 255.0 * m[4]
                };
                std::array::from_fn(|channel| level(row(channel)))
            })
        });
    }
}

#[test]
fn a_colormatrix_that_would_overflow_is_refused_with_its_numbers_by_the_graph_and_when_it_is_made() {
    // The largest sum that fits and the smallest that does not, in the third row.
    for (factor, fits) in [("411.2", true), ("-411.2", true), ("411.3", false), ("-411.3", false), ("1e300", false)] {
        let row = [factor; 5].join(",");
        let text = format!("colormatrix m=0,0,0,0,0,0,0,0,0,0,{row},0,0,0,0,0");
        let (entry, settings) = settings(&text);
        assert_eq!((entry.check)(&settings).is_ok(), fits, "{factor}");
        match try_make(&text) {
            Ok(_) => assert!(fits, "{factor}"),
            Err(error) => {
                let error = error.to_string();
                assert!(!fits && error.contains("row 3 of m is too large"), "{factor}: {error}");
                assert!(error.contains("the limit is 2056"), "{error}");
                assert!(factor != "411.3" || error.contains("add up to 2056.5"), "{error}");
            }
        }
    }
}

#[test]
fn grayscale_is_opencvs_to_the_bit() {
    check("grayscale", 0, |picture| picture.map(|p| [gray(p), gray(p), gray(p), p[3]]));
}

#[test]
fn threshold_is_white_where_gray_is_above_the_level() {
    for level in [0.5, 0.0, 1.0, 0.2, 0.999] {
        check(&format!("threshold level={level}"), 0, |picture| {
            picture.map(|p| {
                let v = if f64::from(gray(p)) > 255.0 * level { 255 } else { 0 };
                [v, v, v, p[3]]
            })
        });
    }
}

#[test]
fn posterize_rounds_to_the_nearest_of_its_levels() {
    for levels in [2, 3, 4, 100, 256] {
        // The nearest level by comparing each; no value is halfway between two.
        let spaced: Vec<f64> = (0..levels).map(|step| 255.0 * f64::from(step) / f64::from(levels - 1)).collect();
        let nearest = |v: f64| spaced.iter().copied().min_by(|a, b| (v - a).abs().total_cmp(&(v - b).abs()));
        check(&format!("posterize levels={levels}"), 0, channels(|v| nearest(v).expect("there are levels")));
    }
    check("posterize levels=256", 0, Picture::clone);
}
