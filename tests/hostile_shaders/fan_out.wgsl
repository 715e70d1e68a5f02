fn step0(x: vec4f) -> vec4f { return sin(x * 1.5); }
fn step1(x: vec4f) -> vec4f { return step0(x * 0.5) + step0(x + 0.01); }
fn step2(x: vec4f) -> vec4f { return step1(x * 0.5) + step1(x + 0.02); }
fn step3(x: vec4f) -> vec4f { return step2(x * 0.5) + step2(x + 0.03); }
fn step4(x: vec4f) -> vec4f { return step3(x * 0.5) + step3(x + 0.04); }
fn step5(x: vec4f) -> vec4f { return step4(x * 0.5) + step4(x + 0.05); }
fn step6(x: vec4f) -> vec4f { return step5(x * 0.5) + step5(x + 0.06); }
fn step7(x: vec4f) -> vec4f { return step6(x * 0.5) + step6(x + 0.07); }
fn step8(x: vec4f) -> vec4f { return step7(x * 0.5) + step7(x + 0.08); }
fn step9(x: vec4f) -> vec4f { return step8(x * 0.5) + step8(x + 0.09); }
fn step10(x: vec4f) -> vec4f { return step9(x * 0.5) + step9(x + 0.10); }
fn step11(x: vec4f) -> vec4f { return step10(x * 0.5) + step10(x + 0.11); }
fn step12(x: vec4f) -> vec4f { return step11(x * 0.5) + step11(x + 0.12); }
fn step13(x: vec4f) -> vec4f { return step12(x * 0.5) + step12(x + 0.13); }
fn step14(x: vec4f) -> vec4f { return step13(x * 0.5) + step13(x + 0.14); }
fn step15(x: vec4f) -> vec4f { return step14(x * 0.5) + step14(x + 0.15); }
fn step16(x: vec4f) -> vec4f { return step15(x * 0.5) + step15(x + 0.16); }
fn step17(x: vec4f) -> vec4f { return step16(x * 0.5) + step16(x + 0.17); }
fn step18(x: vec4f) -> vec4f { return step17(x * 0.5) + step17(x + 0.18); }
fn pixel(c: vec4f) -> vec4f { return step18(c); }
