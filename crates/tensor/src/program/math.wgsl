// Functions of one value, or of four at once: `vF`, `vI` and `vU` are f32, i32 and u32, or vectors of four of them.
// The twin of host/math.rs: the same steps in the same order, so that both sides make the same bits where a driver
// multiplies and adds one by one. NaN and infinities are made at run time, since WGSL takes no constants of them.

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
    // The twin adds and takes off a large number, which compilers of shaders may leave out; the bits are the same.
    let whole = round(x * vF(1.44269504088896340736));
    let power = vI(whole);
    let r = x - whole * vF(0.6933594) - whole * vF(-2.1219444e-4);
    let series = (((vF(0.0013814318) * r + vF(0.008368852)) * r + vF(0.0416684)) * r + vF(0.1666652)) * r + vF(0.49999994);
    let near = vF(1.0) + (r + r * r * series);
    let half = power >> bitcast<vU>(vI(1));
    let value = near * power_of_two(half) * power_of_two(power - half);
    return select(value, given, not_number(given));
}

fn log_each(x: vF) -> vF {
    let subnormal = x < vF(1.17549435e-38);
    let scaled = select(x, x * vF(8388608.0), subnormal);
    let above_root = bitcast<vU>(scaled) - vU(0x3f3504f3u);
    let power = vF(bitcast<vI>(above_root) >> bitcast<vU>(vI(23))) - select(vF(0.0), vF(23.0), subnormal);
    let f = bitcast<vF>((above_root & vU(0x007fffffu)) + vU(0x3f3504f3u)) - vF(1.0);
    let square = f * f;
    var series = vF(0.067465596);
    series = series * f + vF(-0.11679643);
    series = series * f + vF(0.11890336);
    series = series * f + vF(-0.12405138);
    series = series * f + vF(0.14219223);
    series = series * f + vF(-0.16668007);
    series = series * f + vF(0.20002134);
    series = series * f + vF(-0.2500001);
    series = series * f + vF(0.33333313);
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
    var series = vF(-0.005717037);
    series = series * square + vF(0.020650579);
    series = series * square + vF(-0.053743497);
    series = series * square + vF(0.13331491);
    series = series * square + vF(-0.33333284);
    let near = x + x * square * series;
    let far = with_sign(vF(1.0) - vF(2.0) / (exp_each(size + size) + vF(1.0)), x);
    return select(select(far, near, size < vF(0.625)), x, not_number(x));
}

fn sigmoid_each(x: vF) -> vF {
    let small = exp_each(-abs(x));
    return select(vF(1.0), small, x < vF(0.0)) / (vF(1.0) + small);
}

fn silu_each(x: vF) -> vF {
    return x * sigmoid_each(x);
}

fn erf_each(x: vF) -> vF {
    let size = abs(x);
    let square = x * x;
    var series = vF(8.185091e-5);
    series = series * square + vF(-8.0977025e-4);
    series = series * square + vF(0.005196952);
    series = series * square + vF(-0.026857706);
    series = series * square + vF(0.11283664);
    series = series * square + vF(-0.37612632);
    series = series * square + vF(0.12837917);
    let near = x + x * series;
    let within = select(size, vF(4.1), size > vF(4.1));
    var missing = vF(2.1445592e-5);
    missing = missing * within + vF(-4.385302e-4);
    missing = missing * within + vF(0.004190857);
    missing = missing * within + vF(-0.02517181);
    missing = missing * within + vF(0.10836156);
    missing = missing * within + vF(0.6332724);
    missing = missing * within + vF(1.129552);
    missing = missing * within + vF(-1.8246048e-4);
    let far = with_sign(vF(1.0) - exp_each(-missing), x);
    return select(select(far, near, size < vF(0.95)), x, not_number(x));
}

fn gelu_each(x: vF) -> vF {
    return vF(0.5) * x * (vF(1.0) + erf_each(x * vF(0.70710678118654752440)));
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

// The smaller and the larger of two; NaN if either is.
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

// Floats as whole numbers: cut towards 0 and held within the type, 0 of NaN.
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

// Half floats, rounded to the nearest, halves to even. Drivers differ in how they pack, so it is written out.
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
