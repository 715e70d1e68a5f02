//! Colour adjustments: the tables and matrices of brightness, contrast, gamma, invert, posterize, saturation, hue and
//! colormatrix.
//!
//! Tables and matrices are computed in double precision on the CPU, once per setting. `table` and `matrix` apply them
//! to pixels. Levels are 0..=255. In settings, 1 is full.

use crate::sample::Chance;

use super::table::{LookupTable, table_of};

/// A colour matrix. Each of the rows r, g, b, a has the factors of r, g, b, a and of a full channel (255).
pub type ColorMatrix = [f64; 20];

pub const IDENTITY: ColorMatrix = [1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0.];

/// `v + 255 amount`.
pub fn brightness(amount: f64) -> LookupTable {
    table_of(|v| v + 255.0 * amount)
}

/// `(v - 255 pivot) amount + 255 pivot`.
pub fn contrast(amount: f64, pivot: f64) -> LookupTable {
    table_of(|v| (v - 255.0 * pivot) * amount + 255.0 * pivot)
}

/// `255 (v / 255)^(1 / value)`.
pub fn gamma(value: f64) -> LookupTable {
    table_of(|v| 255.0 * (v / 255.0).powf(1.0 / value))
}

/// `255 - v`.
pub fn invert() -> LookupTable {
    table_of(|v| 255.0 - v)
}

/// The nearest of `levels` levels that are equally spaced from 0 to 255. If `levels` is less than two, two levels are
/// used.
pub fn posterize(levels: u16) -> LookupTable {
    let last = f64::from(levels.max(2) - 1);
    table_of(|v| (v * last / 255.0).round() * 255.0 / last)
}

/// `L + amount (v - L)`, where L is the luma with the weights of BT.709, without rounding.
pub fn saturation(amount: f64) -> ColorMatrix {
    const LUMA: [f64; 3] = [0.2126, 0.7152, 0.0722];
    of_colors(std::array::from_fn(|to| {
        std::array::from_fn(|from| (1.0 - amount) * LUMA[from] + if to == from { amount } else { 0.0 })
    }))
}

/// Rotates the chroma plane of Y, I, Q by an angle: `T^-1 R T`, where T converts r, g, b to Y, I, Q, and R rotates I
/// and Q.
pub fn hue(degrees: f64) -> ColorMatrix {
    const T: Three = [[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]];
    let (sin, cos) = degrees.to_radians().sin_cos();
    let turn = [[1.0, 0.0, 0.0], [0.0, cos, sin], [0.0, -sin, cos]];
    of_colors(product(&inverse(&T), &product(&turn, &T)))
}

/// A matrix of the twenty given numbers. Returns `None` if there are not twenty numbers, or if a number is not finite.
pub fn colormatrix(numbers: &[f64]) -> Option<ColorMatrix> {
    ColorMatrix::try_from(numbers).ok().filter(|m| m.iter().all(|f| f.is_finite()))
}

/// The table of a random adjustment, or random entries.
pub(super) fn drawn(chance: &mut Chance) -> LookupTable {
    match chance.below(6) {
        0 => brightness(chance.between(-0.5, 0.5)),
        1 => contrast(chance.between(-1.0, 2.0), 0.5),
        2 => gamma(chance.between(0.2, 2.4)),
        3 => posterize(2 + chance.below(255) as u16),
        4 => std::array::from_fn(|_| chance.below(256) as u8),
        _ => invert(),
    }
}

type Three = [[f64; 3]; 3];

/// A matrix that changes red, green and blue and keeps alpha.
fn of_colors(m: Three) -> ColorMatrix {
    let mut matrix = IDENTITY;
    for (row, factors) in matrix.chunks_exact_mut(5).zip(m) {
        row[..3].copy_from_slice(&factors);
    }
    matrix
}

fn product(a: &Three, b: &Three) -> Three {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

/// The inverse by cofactors, which for three rows is as exact as doubles are.
fn inverse(m: &Three) -> Three {
    // The cofactor of entry i, j. Cyclic indices give the right signs.
    let cofactor = |i: usize, j: usize| {
        let after = |di: usize, dj: usize| m[(i + di) % 3][(j + dj) % 3];
        after(1, 1) * after(2, 2) - after(1, 2) * after(2, 1)
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * cofactor(0, j)).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| cofactor(j, i) / determinant))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &ColorMatrix, b: &ColorMatrix) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn settings_that_change_nothing_give_what_changes_nothing() {
        let same = table_of(|v| v);
        assert_eq!([brightness(0.0), contrast(1.0, 0.3), gamma(1.0)], [same; 3]);
        assert!(near(&saturation(1.0), &IDENTITY));
        assert!(near(&hue(0.0), &IDENTITY));
        assert!(near(&hue(360.0), &IDENTITY));
    }

    #[test]
    fn turning_the_hue_twice_is_turning_it_by_the_sum() {
        let three = |m: ColorMatrix| -> Three { std::array::from_fn(|i| std::array::from_fn(|j| m[5 * i + j])) };
        let twice = product(&three(hue(50.0)), &three(hue(-170.0)));
        assert!(near(&of_colors(twice), &hue(-120.0)));
    }

    #[test]
    fn gray_stays_gray_whatever_the_saturation_and_hue() {
        for m in [saturation(0.0), saturation(3.0), hue(77.0)] {
            assert!(m.chunks_exact(5).take(3).all(|row| (row[0] + row[1] + row[2] - 1.0).abs() < 1e-12));
        }
    }

    #[test]
    fn a_colormatrix_has_twenty_finite_numbers() {
        assert_eq!(colormatrix(&IDENTITY), Some(IDENTITY));
        assert_eq!(colormatrix(&IDENTITY[1..]), None);
        assert_eq!(colormatrix(&[f64::NAN; 20]), None);
    }
}
