//! Filters that read the neighbours of a pixel.

use super::darkroom::{Picture, check, gray, level, settings, try_make};

/// The weights by their definition: outer taps first, rounding errors go to the next tap, and the centre gets the rest
/// of
/// 256.
fn gaussian(sigma: f64, size: i64) -> Vec<i64> {
    let reach = size / 2;
    let bell = |i: i64| (-((i * i) as f64) / (2.0 * sigma * sigma)).exp();
    let sum: f64 = (-reach..=reach).map(bell).sum();
    let mut weights = vec![0; size as usize];
    let (mut left_over, mut rest) = (0.0, 256);
    for i in 0..reach {
        let g = 256.0 * bell(reach - i) / sum;
        let w = (g + left_over).round_ties_even();
        left_over += g - w;
        weights[i as usize] = w as i64;
        weights[(size - 1 - i) as usize] = w as i64;
        rest -= 2 * w as i64;
    }
    weights[reach as usize] = rest;
    weights
}

#[test]
fn blur_is_the_gaussian_of_its_definition_to_the_bit() {
    for (text, sigma, size) in [
        ("blur", 2.0, 13),
        ("blur sigma=0.8", 0.8, 7),
        ("blur sigma=5", 5.0, 31),
        ("blur sigma=5 size=3", 5.0, 3),
        ("blur sigma=2 size=1", 2.0, 1),
        ("blur sigma=0.01", 0.01, 1),
        ("blur sigma=0.01 size=5", 0.01, 5),
        ("blur sigma=100", 100.0, 601),
        ("blur sigma=3 size=1023", 3.0, 1023),
    ] {
        let weights = gaussian(sigma, size);
        let reach = size / 2;
        check(text, 0, |picture| {
            // Horizontally into exact sums, then vertically: (sum w_y w_x v + 32768) >> 16.
            let (w, h) = (i64::from(picture.size.width), i64::from(picture.size.height));
            let across: Vec<[i64; 4]> = (0..w * h)
                .map(|at| {
                    std::array::from_fn(|channel| {
                        let value =
                            |i: usize| i64::from(picture.at(at % w + i.cast_signed() as i64 - reach, at / w)[channel]);
                        weights.iter().enumerate().map(|(i, weight)| weight * value(i)).sum()
                    })
                })
                .collect();
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let value = |i: usize| {
                        across[((y + i.cast_signed() as i64 - reach).clamp(0, h - 1) * w + x) as usize][channel]
                    };
                    let sum: i64 = weights.iter().enumerate().map(|(i, weight)| weight * value(i)).sum();
                    ((sum + 32_768) >> 16) as u8
                })
            })
        });
    }
}

/// A weighted sum of a square, plus a bias in levels.
fn convolved(picture: &Picture, weights: &[f64], bias: f64) -> Picture {
    let reach = i64::from(weights.len().isqrt() as u32 / 2);
    let places: Vec<_> = (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y))).collect();
    Picture::made(picture.size, |x, y| {
        let sum = |channel: usize| {
            let value = |(dx, dy): &(i64, i64)| f64::from(picture.at(x + dx, y + dy)[channel]);
            places.iter().zip(weights).map(|(place, weight)| weight * value(place)).sum::<f64>() + bias
        };
        [level(sum(0)), level(sum(1)), level(sum(2)), picture.at(x, y)[3]]
    })
}

#[test]
fn sharpen_moves_away_from_four_neighbours_and_keeps_alpha() {
    for (amount, tolerance) in
        [(1.0, 0), (0.5, 0), (0.3, 1), (-0.25, 0), (-0.1, 1), (16.0, 0), (15.9, 1), (-16.0, 0), (-1e-9, 0)]
    {
        let weights = [0.0, -amount, 0.0, -amount, 1.0 + 4.0 * amount, -amount, 0.0, -amount, 0.0];
        check(&format!("sharpen amount={amount}"), tolerance, |picture| convolved(picture, &weights, 0.0));
    }
    check("sharpen", 0, |picture| convolved(picture, &[0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0], 0.0));
    check("sharpen amount=0", 0, Picture::clone);
}

#[test]
fn convolve_weighs_divides_and_adds() {
    let emboss = "-2,-1,0,-1,1,1,0,1,2";
    let sobel = "-1,0,1,-2,0,2,-1,0,1";
    let five: Vec<String> = (0..25).map(|i| (i * 7 % 9 - 3).to_string()).collect();
    let seven: Vec<String> = (0..49).map(|i| format!("0.{}", i * 37 % 83)).collect();
    for (kernel, divisor, bias, tolerance) in [
        (emboss, None, 0.0, 0),
        (emboss, Some(4.0), 128.0, 0),
        (emboss, Some(-1.0), 255.0, 0),
        (emboss, Some(3.0), -0.7, 1),
        (sobel, None, 0.0, 0),
        (sobel, None, 65_536.0, 0),
        (sobel, Some(1.1), -65_536.0, 1),
        ("1,1,1,1,1,1,1,1,1", None, 0.0, 1),
        ("0,0,0,0,0,0,0,0,0", None, 77.4, 1),
        ("0.1,0.2,-0.3,0,0,0,0,0,0", None, 0.0, 1),
        ("2056,0,0,0,0,0,0,0,0", Some(1.0), 0.0, 0),
        (&five.join(","), None, 0.0, 1),
        (&seven.join(","), None, 12.25, 1),
        (&seven.join(","), Some(1.0), -2000.0, 1),
    ] {
        let numbers: Vec<f64> = kernel.split(',').map(|weight| weight.parse().expect("a number")).collect();
        let sum: f64 = numbers.iter().sum();
        let by = divisor.unwrap_or(if sum.abs() < 1e-9 { 1.0 } else { sum });
        let weights: Vec<f64> = numbers.iter().map(|weight| weight / by).collect();
        let divided = divisor.map_or_else(String::new, |divisor| format!(" divisor={divisor}"));
        let text = format!("convolve kernel={kernel}{divided} bias={bias}");
        check(&text, tolerance, |picture| convolved(picture, &weights, bias));
    }
}

#[test]
fn a_kernel_that_would_overflow_is_refused_with_its_numbers_by_the_graph_and_when_it_is_made() {
    for (weight, rest, fits) in [
        ("2056", "", true),
        ("-2056", "", true),
        ("2057", "", false),
        ("-4000", " divisor=1.9", false),
        ("-4000", " divisor=-2", true),
        ("1900", " bias=-60000", false),
        ("1e308", " divisor=-1e-9", false),
        ("1e-300", " divisor=1e9", true),
    ] {
        let divisor = if rest.contains("divisor") { "" } else { " divisor=1" };
        let text = format!("convolve kernel=0,0,{weight},0,0,0,0,0,0{divisor}{rest}");
        let (entry, settings) = settings(&text);
        assert_eq!((entry.check)(&settings).is_ok(), fits, "{text}");
        let error = try_make(&text).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.is_empty(), fits, "{text}: {error}");
        assert!(fits || error.contains("too large for 32-bit fixed point"), "{text}: {error}");
        assert!(weight != "2057" || error.contains("add up to 2057; the limit is 2056"), "{error}");
        assert!(weight != "1900" || error.contains("the limit is 1820"), "{error}");
    }
    // The sum of these is infinite, and dividing by it would give 0.
    let text = format!("convolve kernel={}", ["1e308"; 9].join(","));
    assert!(try_make(&text).err().expect("it is refused").to_string().contains("too large"));
    let zero = try_make("convolve kernel=1,1,1,1,1,1,1,1,1 divisor=0").err().expect("it is refused").to_string();
    assert!(zero.contains("must not be 0"), "{zero}");
}

#[test]
fn edges_are_half_the_sum_of_both_gradients_of_gray() {
    check("edges", 0, |picture| {
        // Mirrors at the border; an axis of one pixel has only that pixel.
        let mirrored = |at: i64, side: u32| {
            let last = i64::from(side) - 1;
            if last == 0 { 0 } else { last - (last - at.abs()).abs() }
        };
        let gray =
            |x, y| i64::from(gray(picture.at(mirrored(x, picture.size.width), mirrored(y, picture.size.height))));
        Picture::made(picture.size, |x, y| {
            let (mut along, mut down) = (0, 0);
            for i in -1..=1 {
                let weight = 2 - i64::abs(i);
                along += weight * (gray(x + 1, y + i) - gray(x - 1, y + i));
                down += weight * (gray(x + i, y + 1) - gray(x + i, y - 1));
            }
            let v = level((along.abs().min(255) + down.abs().min(255)) as f64 / 2.0);
            [v, v, v, picture.at(x, y)[3]]
        })
    });
}

/// The square of this side around a pixel, in one channel.
fn square(picture: &Picture, (x, y): (i64, i64), side: i64, channel: usize) -> Vec<u8> {
    let reach = side / 2;
    let places = (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (x + dx, y + dy)));
    places.map(|(x, y)| picture.at(x, y)[channel]).collect()
}

#[test]
fn boxblur_is_the_mean_of_its_square_to_the_bit() {
    for (text, side) in [("boxblur", 9), ("boxblur size=1", 1), ("boxblur size=3", 3), ("boxblur size=31", 31)] {
        check(text, 0, |picture| {
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let values = square(picture, (x, y), side, channel);
                    level(values.iter().map(|v| f64::from(*v)).sum::<f64>() / (side * side) as f64)
                })
            })
        });
    }
    // Squares far larger than the image: their mean is that of the rows' means.
    for side in [257, 259, 1023] {
        check(&format!("boxblur size={side}"), 0, |picture| {
            let (w, h) = (i64::from(picture.size.width), i64::from(picture.size.height));
            let sums: Vec<[i64; 4]> = (0..w * h)
                .map(|at| {
                    std::array::from_fn(|channel| {
                        let value = |dx: i64| i64::from(picture.at(at % w + dx, at / w)[channel]);
                        (-(side / 2)..=side / 2).map(value).sum()
                    })
                })
                .collect();
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let row = |dy: i64| sums[((y + dy).clamp(0, h - 1) * w + x) as usize][channel];
                    let sum: i64 = (-(side / 2)..=side / 2).map(row).sum();
                    ((2 * sum + side * side) / (2 * side * side)) as u8
                })
            })
        });
    }
}

#[test]
fn median_is_the_middle_value_of_its_square() {
    for (text, side) in [("median", 3), ("median size=3", 3), ("median size=5", 5)] {
        check(text, 0, |picture| {
            Picture::made(picture.size, |x, y| {
                std::array::from_fn(|channel| {
                    let mut values = square(picture, (x, y), side, channel);
                    values.sort_unstable();
                    values[values.len() / 2]
                })
            })
        });
    }
}
