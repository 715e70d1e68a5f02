// Functions of one value, or of four at once: `vF`, `vI` and `vU` are f32, i32 and u32, or vectors of four of them.
// This file is the twin of host/math.rs: it takes the same steps in the same order, so that host and device compute the
// same bits if the driver does not fuse multiply and add. NaN and infinities are built at run time, because WGSL has no
// constants for them. Kernels over rows have their own exponential and logarithm (device/math.wgsl), which cover a
// smaller range in fewer steps, and may be fused, because their bits need not equal those of a twin.

fn not_number(x: vF) -> vB {
    return (bitcast<vU>(x) & vU(0x7fffffffu)) > vU(0x7f800000u);
}

fn infinite(like: vF) -> vF {
    return bitcast<vF>((bitcast<vU>(like) & vU(0u)) | vU(0x7f800000u));
}

fn no_number(like: vF) -> vF {
    return bitcast<vF>((bitcast<vU>(like) & vU(0u)) | vU(0x7fc00000u));
}

fn with_sign(size: vF, sign: vF) -> vF {
    return bitcast<vF>((bitcast<vU>(size) & vU(0x7fffffffu)) | (bitcast<vU>(sign) & vU(0x80000000u)));
}

fn power_of_two(power: vI) -> vF {
    return bitcast<vF>(bitcast<vU>((power + vI(127)) << bitcast<vU>(vI(23))));
}

fn exp_each(given: vF) -> vF {
    var x = select(given, vF(89.0), given > vF(89.0));
    x = select(x, vF(-105.0), x < vF(-105.0));
    // The twin rounds by adding and subtracting a large number, which shader compilers may remove; `round` gives the
    // same bits.
    let whole = round(x * vF(1.44269504088896340736));
    let power = vI(whole);
    let r = x - whole * vF(0.6933594) - whole * vF(-2.1219444e-4);
    let square = r * r;
    let low = vF(0.49999994) + vF(0.1666652) * r;
    let high = (vF(0.0416684) + vF(0.008368852) * r) + square * vF(0.0013814318);
    let near = vF(1.0) + (r + square * (low + square * high));
    let half = power >> bitcast<vU>(vI(1));
    let value = near * power_of_two(half) * power_of_two(power - half);
    return select(value, given, not_number(given));
}

// 2 to a power from -120 to 120.
fn two_to(power: vF) -> vF {
    let whole = round(power);
    let r = power - whole;
    let square = r * r;
    let near = vF(1.0) + vF(0.693147) * r;
    let far = (vF(0.24022242) + vF(0.055507336) * r) + square * (vF(0.009671513) + vF(0.0013264727) * r);
    return (near + square * far) * power_of_two(vI(whole));
}

fn log_each(x: vF) -> vF {
    let subnormal = x < vF(1.17549435e-38);
    let scaled = select(x, x * vF(8388608.0), subnormal);
    let above_root = bitcast<vU>(scaled) - vU(0x3f3504f3u);
    let power = vF(bitcast<vI>(above_root) >> bitcast<vU>(vI(23))) - select(vF(0.0), vF(23.0), subnormal);
    let f = bitcast<vF>((above_root & vU(0x007fffffu)) + vU(0x3f3504f3u)) - vF(1.0);
    let square = f * f;
    let fourth = square * square;
    let low = (vF(0.33333313) + vF(-0.2500001) * f) + square * (vF(0.20002134) + vF(-0.16668007) * f);
    let high = (vF(0.14219223) + vF(-0.12405138) * f) + square * (vF(0.11890336) + vF(-0.11679643) * f);
    let series = low + fourth * (high + fourth * vF(0.067465596));
    let small = power * vF(-2.1219444e-4) - vF(0.5) * square + f * square * series;
    var value = power * vF(0.6933594) + (f + small);
    value = select(value, x, bitcast<vU>(x) == vU(0x7f800000u));
    value = select(value, no_number(x), x < vF(0.0));
    value = select(value, -infinite(x), x == vF(0.0));
    return select(value, x, not_number(x));
}

fn tanh_each(x: vF) -> vF {
    let size = abs(x);
    let square = x * x;
    let fourth = square * square;
    let low = vF(-0.33333284) + vF(0.13331491) * square;
    let high = (vF(-0.053743497) + vF(0.020650579) * square) + fourth * vF(-0.005717037);
    let near = size + size * square * (low + fourth * high);
    var power = size * vF(2.88539008177792681472);
    power = select(power, vF(30.0), power > vF(30.0));
    let far = vF(1.0) - vF(2.0) / (two_to(power) + vF(1.0));
    return select(with_sign(select(near, far, size >= vF(0.65)), x), x, not_number(x));
}

fn sigmoid_each(x: vF) -> vF {
    let small = exp_each(-abs(x));
    return select(vF(1.0), small, x < vF(0.0)) / (vF(1.0) + small);
}

fn silu_each(x: vF) -> vF {
    return x * sigmoid_each(x);
}

fn gelu_each(x: vF) -> vF {
    let size = abs(x);
    let square = x * x;
    let low = vF(-1.1511088) * size + square * (vF(-0.45916432) + vF(-0.052666606) * size);
    let high = (vF(0.007363124) + vF(-4.069798e-4) * size) + square * (vF(-5.769712e-5) + vF(8.858414e-6) * size);
    let there = size < vF(6.0);
    let power = select(vF(0.0), low + square * square * high, there);
    let beyond = select(vF(0.0), vF(0.5) * two_to(power), there);
    return x * select(vF(1.0) - beyond, beyond, x < vF(0.0));
}

fn erf_each(x: vF) -> vF {
    let size = abs(x);
    let square = x * x;
    let fourth = square * square;
    let early = vF(1.1283791) + vF(-0.37612325) * square;
    let middle = (vF(0.1128018) + vF(-0.02671131) * square) + fourth * (vF(0.0049175506) + vF(-5.631419e-4) * square);
    let near = size * (early + fourth * middle);
    let low = (vF(-0.0037793336) + vF(-1.6123842) * size) + square * (vF(-0.94387233) + vF(-0.12810853) * size);
    let power = low + fourth * (vF(0.021397013) + vF(-0.0016694079) * size);
    let far = vF(1.0) - two_to(select(vF(-30.0), power, size < vF(4.0)));
    return select(with_sign(select(near, far, size >= vF(1.0)), x), x, not_number(x));
}

fn pow_each(x: vF, y: vF) -> vF {
    let size = exp_each(y * log_each(abs(x)));
    let half = y * vF(0.5);
    let is_whole = floor(y) == y;
    let is_odd = is_whole & (floor(half) != half);
    let signed = select(size, with_sign(size, x), is_odd);
    let value = select(signed, no_number(x), (x < vF(0.0)) & (floor(y) != y));
    return select(value, vF(1.0), (y == vF(0.0)) | (x == vF(1.0)));
}

// The smaller and the larger of two values; NaN if either is NaN.
fn min_each(x: vF, y: vF) -> vF {
    return select(select(y, x, x <= y), x + y, not_number(x) | not_number(y));
}

fn max_each(x: vF, y: vF) -> vF {
    return select(select(y, x, x >= y), x + y, not_number(x) | not_number(y));
}

fn quantized_each(x: vF, scale: vF) -> vF {
    let ratio = x / scale;
    let whole = clamp(round(ratio), vF(-127.0), vF(127.0));
    return select(whole, vF(0.0), not_number(ratio));
}

// Floats as integers: truncated and saturated, 0 for NaN.
fn to_signed(x: vF) -> vI {
    let within = vI(clamp(x, vF(-2147483648.0), vF(2147483520.0)));
    return select(select(within, vI(2147483647), x >= vF(2147483648.0)), vI(0), not_number(x));
}

fn to_unsigned(x: vF) -> vU {
    let within = vU(clamp(x, vF(0.0), vF(4294967040.0)));
    return select(select(within, vU(4294967295u), x >= vF(4294967296.0)), vU(0u), not_number(x));
}

fn low_byte_signed(x: vI) -> vI {
    return (x << bitcast<vU>(vI(24))) >> bitcast<vU>(vI(24));
}

// Half floats, rounded to nearest, ties to even. Drivers round differently in `pack2x16float`, so the rounding is
// written out.
fn to_half(x: vF) -> vU {
    let bits = bitcast<vU>(x);
    let sign = (bits >> vU(16u)) & vU(0x8000u);
    let size = bits & vU(0x7fffffffu);
    let normal = (size + vU(0xfffu) + ((size >> vU(13u)) & vU(1u)) - vU(0x38000000u)) >> vU(13u);
    let subnormal = bitcast<vU>(bitcast<vF>(size) + vF(0.5)) - vU(0x3f000000u);
    var half = select(normal, subnormal, size < vU(0x38800000u));
    half = select(half, vU(0x7c00u), size >= vU(0x477ff000u));
    half = select(half, vU(0x7e00u), size > vU(0x7f800000u));
    return sign | half;
}

fn from_half(half: vU) -> vF {
    let sign = (half & vU(0x8000u)) << vU(16u);
    let size = half & vU(0x7fffu);
    let normal = (size << vU(13u)) + vU(0x38000000u);
    let subnormal = bitcast<vU>(vF(size) * vF(5.9604644775390625e-8));
    var bits = select(normal, subnormal, size < vU(0x400u));
    bits = select(bits, (size << vU(13u)) | vU(0x7f800000u), size >= vU(0x7c00u));
    return bitcast<vF>(sign | bits);
}

fn round_half(x: vF) -> vF {
    return from_half(to_half(x));
}
