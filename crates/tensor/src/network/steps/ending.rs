//! Recognises the elementwise program that follows a convolution as a residual and an activation that the host's loops
//! apply themselves. Other programs run over the finished output.

use crate::ops::dtype::DType;
use crate::ops::program::{Binary, ElementwiseProgram, Instruction, Unary, Walk};

use super::super::host::{Activation, Finish, Residual};

/// How a host's loop finishes its results, and the program's input that is the residual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ending {
    pub(super) finish: Finish,
    pub(super) residual: Option<u16>,
}

/// The value of a step of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Constant(f32),
    /// An input that is read like the results.
    Side(u16),
    /// 1 if the results, with this residual, are below 0.
    IsBelowZero(Option<u16>),
    Chain(Chain),
}

/// The results, with a residual before and after an activation.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Chain {
    before: Option<u16>,
    act: Act,
    after: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    /// Multiplied and added to.
    Linear {
        scale: f32,
        shift: f32,
    },
    /// Linear, within limits.
    Limited {
        scale: f32,
        shift: f32,
        low: f32,
        high: f32,
    },
    Done(Activation),
}

const SAME: Act = Act::Linear { scale: 1.0, shift: 0.0 };

/// The ending that a program describes; `None` for other programs.
pub(super) fn recognised(program: &ElementwiseProgram) -> Option<Ending> {
    if program.out != DType::F32 {
        return None;
    }
    let mut forms: Vec<Form> = Vec::with_capacity(program.steps.len());
    for step in &program.steps {
        let of = |at: u16| forms[usize::from(at)];
        forms.push(match step.act {
            Instruction::Given => Form::Chain(Chain { before: None, act: SAME, after: None }),
            Instruction::Constant(at) if step.dtype == DType::F32 => {
                Form::Constant(f32::from_bits(program.constants[usize::from(at)]))
            }
            Instruction::Input(at) => {
                let input = &program.inputs[usize::from(at)];
                let is_like_results = input.walk == Walk::Run && input.offset == 0 && input.dtype == DType::F32;
                is_like_results.then_some(Form::Side(at))?
            }
            Instruction::Unary(op, a) => unary(op, of(a))?,
            Instruction::Binary(op, a, b) => binary(op, of(a), of(b)).or_else(|| match op {
                Binary::Add | Binary::Mul | Binary::Max | Binary::Min => binary(op, of(b), of(a)),
                _ => None,
            })?,
            Instruction::Cast(a) if matches!(of(a), Form::IsBelowZero(_)) => of(a),
            Instruction::Select(c, a, b) => select(of(c), of(a), of(b))?,
            Instruction::Constant(_) | Instruction::Cast(_) => return None,
        });
    }
    let Some(Form::Chain(Chain { before, act, after })) = forms.last().copied() else { return None };
    let activation = act.activation()?;
    let (residual, input) = match (before, after) {
        (None, None) => (Residual::None, None),
        (Some(input), None) => (Residual::BeforeActivation, Some(input)),
        (None, Some(input)) => (Residual::AfterActivation, Some(input)),
        (Some(_), Some(_)) => return None,
    };
    // Inputs that are not the residual would be read by nothing.
    let reads_all = program.inputs.len() == usize::from(input.is_some());
    reads_all.then_some(Ending { finish: Finish { activation, residual }, residual: input })
}

fn unary(op: Unary, of: Form) -> Option<Form> {
    let Form::Chain(chain @ Chain { act: SAME, after: None, .. }) = of else { return None };
    let done = |activation| Some(Form::Chain(Chain { act: Act::Done(activation), ..chain }));
    match op {
        Unary::Relu => done(Activation::Relu),
        Unary::Sigmoid => done(Activation::Sigmoid),
        Unary::Silu => done(Activation::Silu),
        _ => None,
    }
}

fn binary(op: Binary, a: Form, b: Form) -> Option<Form> {
    match (op, a, b) {
        (Binary::Add, Form::Chain(chain @ Chain { after: None, .. }), Form::Side(side)) => {
            Some(Form::Chain(if chain.act == SAME && chain.before.is_none() {
                Chain { before: Some(side), ..chain }
            } else {
                Chain { after: Some(side), ..chain }
            }))
        }
        (Binary::Less, Form::Chain(Chain { before, act: SAME, after: None }), Form::Constant(0.0)) => {
            Some(Form::IsBelowZero(before))
        }
        (_, Form::Chain(chain @ Chain { after: None, .. }), Form::Constant(by)) => {
            Some(Form::Chain(Chain { act: chain.act.by(op, by)?, ..chain }))
        }
        (Binary::Mul, Form::Chain(x @ Chain { act: SAME, after: None, .. }), Form::Chain(gate)) => {
            if gate.before != x.before || gate.after.is_some() {
                return None;
            }
            let activation = match gate.act.activation()? {
                Activation::Sigmoid => Activation::Silu,
                Activation::HardSigmoid { alpha, beta } if is_near(alpha, 1.0 / 6.0) && is_near(beta, 0.5) => {
                    Activation::HardSwish
                }
                _ => return None,
            };
            Some(Form::Chain(Chain { act: Act::Done(activation), ..x }))
        }
        _ => None,
    }
}

/// x below 0 times a slope, x elsewhere.
fn select(condition: Form, below: Form, above: Form) -> Option<Form> {
    let (Form::IsBelowZero(before), Form::Chain(below), Form::Chain(above)) = (condition, below, above) else {
        return None;
    };
    let Act::Linear { scale, shift: 0.0 } = below.act else { return None };
    let same = |chain: Chain| chain.before == before && chain.after.is_none();
    if !same(below) || !same(above) || above.act != SAME {
        return None;
    }
    Some(Form::Chain(Chain { act: Act::Done(Activation::LeakyRelu(scale)), ..above }))
}

fn is_near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-6 * b.abs()
}

impl Act {
    fn by(self, op: Binary, by: f32) -> Option<Act> {
        Some(match (self, op) {
            (Act::Linear { scale, shift }, Binary::Mul) => Act::Linear { scale: scale * by, shift: shift * by },
            (Act::Linear { scale, shift }, Binary::Add) => Act::Linear { scale, shift: shift + by },
            (Act::Linear { scale, shift }, Binary::Max) => Act::Limited { scale, shift, low: by, high: f32::INFINITY },
            (Act::Linear { scale, shift }, Binary::Min) => {
                Act::Limited { scale, shift, low: f32::NEG_INFINITY, high: by }
            }
            (Act::Limited { scale, shift, low, high }, Binary::Max) if by <= high => {
                Act::Limited { scale, shift, low: low.max(by), high }
            }
            (Act::Limited { scale, shift, low, high }, Binary::Min) if by >= low => {
                Act::Limited { scale, shift, low, high: high.min(by) }
            }
            // relu6(x + 3) / 6
            (Act::Limited { scale, shift, low: 0.0, high }, Binary::Mul) if by > 0.0 && high.is_finite() => {
                Act::Limited { scale: scale * by, shift: shift * by, low: 0.0, high: high * by }
            }
            (Act::Limited { .. }, Binary::Div) if by > 0.0 => return self.by(Binary::Mul, 1.0 / by),
            _ => return None,
        })
    }

    fn activation(self) -> Option<Activation> {
        match self {
            SAME => Some(Activation::None),
            Act::Done(activation) => Some(activation),
            Act::Limited { scale: 1.0, shift: 0.0, low, high } => Some(Activation::Clip { low, high }),
            Act::Limited { scale, shift, low: 0.0, high } if is_near(high, 1.0) => {
                Some(Activation::HardSigmoid { alpha: scale, beta: shift })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::program::{ProgramInput, ProgramStep};

    use super::*;

    /// A program of floats: instructions, constants, and the number of inputs that are read like the results.
    fn program(acts: &[Instruction], constants: &[f32], inputs: usize) -> ElementwiseProgram {
        let input = ProgramInput { dtype: DType::F32, offset: 0, walk: Walk::Run };
        ElementwiseProgram {
            inputs: vec![input; inputs],
            steps: acts.iter().map(|act| ProgramStep { act: *act, dtype: DType::F32 }).collect(),
            constants: constants.iter().map(|value| value.to_bits()).collect(),
            out: DType::F32,
        }
    }

    #[test]
    fn usual_activations_are_recognised() {
        use Instruction::{Binary as B, Constant as C, Given, Input, Select as S, Unary as U};
        let limits = [Given, C(0), B(Binary::Max, 0, 1), C(1), B(Binary::Min, 2, 3)];
        let relu6 = recognised(&program(&limits, &[0.0, 6.0], 0)).unwrap();
        assert_eq!(relu6.finish.activation, Activation::Clip { low: 0.0, high: 6.0 });

        let swish = [
            Given,
            C(0),
            B(Binary::Mul, 0, 1),
            C(1),
            B(Binary::Add, 2, 3),
            C(2),
            B(Binary::Max, 4, 5),
            C(3),
            B(Binary::Min, 6, 7),
            B(Binary::Mul, 0, 8),
        ];
        let swish = recognised(&program(&swish, &[1.0 / 6.0, 0.5, 0.0, 1.0], 0)).unwrap();
        assert_eq!(swish.finish.activation, Activation::HardSwish);

        let leaky = [Given, C(0), B(Binary::Less, 0, 1), C(1), B(Binary::Mul, 0, 3), S(2, 4, 0)];
        let leaky = recognised(&program(&leaky, &[0.0, 0.25], 0)).unwrap();
        assert_eq!(leaky.finish.activation, Activation::LeakyRelu(0.25));

        let added = [Given, Input(0), B(Binary::Add, 1, 0), U(Unary::Relu, 2)];
        let added = recognised(&program(&added, &[], 1)).unwrap();
        assert_eq!((added.finish.residual, added.residual), (Residual::BeforeActivation, Some(0)));
    }

    #[test]
    fn other_programs_are_not_recognised() {
        use Instruction::{Binary as B, Constant as C, Given, Input};
        let scaled = [Given, C(0), B(Binary::Mul, 0, 1)];
        assert_eq!(recognised(&program(&scaled, &[2.0], 0)), None);
        let twice = [Given, Input(0), B(Binary::Add, 0, 1), Input(1), B(Binary::Add, 2, 3), B(Binary::Add, 4, 3)];
        assert_eq!(recognised(&program(&twice, &[], 2)), None);
    }
}
