// Functions whose built-in forms are too inaccurate, or are undefined for values that occur here.

// Tests the bits, because compilers may assume that a value equals itself.
fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u;
}

// The bits are in a variable, because a constant must not be infinite.
fn infinity() -> f32 {
    var bits = 0x7f800000u;
    return bitcast<f32>(bits);
}

// n / d for d up to 2^31. Software drivers divide integers one lane at a time; this function computes eight lanes at a
// time, as an estimate, a correction of the estimate, and a last correction by at most 1.
fn quotient(n: u32, d: u32) -> u32 {
    let share = 1.0 / f32(d);
    var q = u32(f32(n) * share);
    q += bitcast<u32>(i32(floor(f32(bitcast<i32>(n - q * d)) * share)));
    let rest = bitcast<i32>(n - q * d);
    q = select(q, q - 1u, rest < 0);
    return select(q, q + 1u, rest >= bitcast<i32>(d));
}

// e to the power of v, for v up to 88: 2^n times a polynomial. 0 below -87.7; NaN stays NaN. Within 2e-7 of the result;
// the built-in exp is within 4e-6 on llvmpipe.
// Programs have another exponential, `exp_each` (program/math.wgsl), which has the steps and the bits of its host twin,
// clamps values at both ends and computes subnormal numbers. Softmax needs none of that, and `exp_of` takes half as
// many steps.
fn exp_of(v: f32) -> f32 {
    let x = select(v, -88.0, v < -88.0);
    let n = floor(fma(x, 1.44269504, 0.5));
    let e = i32(n);
    // Subtracts n times the logarithm of 2 in two steps. The second step uses 2n, because compilers merge two products
    // with the same n, and the digits that the second step adds are lost (an error of 1.7e-6 instead of 2e-7 on
    // llvmpipe).
    let r = fma(f32(e << 1u), 1.06097220e-4, fma(n, -0.693359375, x));
    var y = fma(1.9875691500e-4, r, 1.3981999507e-3);
    y = fma(y, r, 8.3334519073e-3);
    y = fma(y, r, 4.1665795894e-2);
    y = fma(y, r, 1.6666665459e-1);
    y = fma(y, r, 5.0000001201e-1);
    y = fma(y, r * r, r) + 1.0;
    return y * bitcast<f32>((e + 127) << 23u);
}

// The natural logarithm of a normal v above 0: a polynomial around 1, and the exponent. NaN and infinity stay. Within
// 3e-7 of the result; the built-in log is within 6e-5 on llvmpipe.
// Programs have another logarithm, `log_each`, which accepts any value; `log_of` is for sums of exponentials, which are
// ordinary numbers.
fn log_of(v: f32) -> f32 {
    let bits = bitcast<u32>(v);
    let shifted = bits - 0x3f3504f3u;
    let n = f32(bitcast<i32>(shifted) >> 23u);
    let r = bitcast<f32>((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    var y = fma(7.0376836292e-2, r, -1.1514610310e-1);
    y = fma(y, r, 1.1676998740e-1);
    y = fma(y, r, -1.2420140846e-1);
    y = fma(y, r, 1.4249322787e-1);
    y = fma(y, r, -1.6668057665e-1);
    y = fma(y, r, 2.0000714765e-1);
    y = fma(y, r, -2.4999993993e-1);
    y = fma(y, r, 3.3333331174e-1);
    let z = r * r;
    y = fma(n, -2.12194440e-4, y * r * z);
    y = fma(-0.5, z, y) + r;
    return select(fma(n, 0.693359375, y), v, bits >= 0x7f800000u);
}
