//! Builds programs from elementwise nodes: chooses the order of steps, and the tensor of each input.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::node::{ExprNode, OpKind, SharedNode};
use super::super::plan::Cluster;
use super::NodeTensors;
use crate::ops::program::{ElementwiseProgram, Instruction, ProgramInput, ProgramStep, Walk};
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

/// A program with the tensors that it reads.
pub(super) struct BoundProgram {
    pub(super) program: ElementwiseProgram,
    pub(super) tensors: Vec<Tensor>,
}

/// The program of a cluster over the shape of its root.
pub(super) fn of_cluster(cluster: &Cluster, made: &NodeTensors) -> BoundProgram {
    let mut writing = ProgramBuilder {
        shape: cluster.root.shape.clone(),
        written: BoundProgram {
            program: ElementwiseProgram {
                inputs: Vec::new(),
                steps: Vec::new(),
                constants: Vec::new(),
                out: cluster.root.dtype,
            },
            tensors: Vec::new(),
        },
        steps: BTreeMap::new(),
    };
    if let Some(product) = &cluster.ends {
        writing.step(product, Instruction::Given);
    }
    for node in &cluster.nodes {
        let act = match &node.kind {
            OpKind::Unary(op, a) => Instruction::Unary(*op, writing.number(a, made)),
            OpKind::Binary(op, a, b) => Instruction::Binary(*op, writing.number(a, made), writing.number(b, made)),
            OpKind::Select(c, a, b) => {
                Instruction::Select(writing.number(c, made), writing.number(a, made), writing.number(b, made))
            }
            OpKind::Cast(a) => Instruction::Cast(writing.number(a, made)),
            _ => unreachable!("a cluster is elementwise"),
        };
        writing.step(node, act);
    }
    writing.written
}

/// The program that reads a tensor by strides and an offset, counted in values.
pub(super) fn of_strides(tensor: &Tensor, shape: &Shape, offset: usize, strides: &[usize]) -> BoundProgram {
    let walk = Walk::of(shape, strides);
    let input = ProgramInput { dtype: tensor.dtype(), offset: tensor.offset() + offset, walk };
    BoundProgram { program: ElementwiseProgram::plain(input), tensors: vec![tensor.clone()] }
}

/// The program that reads a tensor unchanged.
pub(super) fn of_tensor(tensor: &Tensor) -> BoundProgram {
    let input = ProgramInput { dtype: tensor.dtype(), offset: tensor.offset(), walk: Walk::Run };
    BoundProgram { program: ElementwiseProgram::plain(input), tensors: vec![tensor.clone()] }
}

struct ProgramBuilder {
    shape: Shape,
    written: BoundProgram,
    steps: BTreeMap<*const ExprNode, u16>,
}

impl ProgramBuilder {
    fn step(&mut self, node: &SharedNode, act: Instruction) {
        self.written.program.steps.push(ProgramStep { act, dtype: node.dtype });
        self.steps.insert(Arc::as_ptr(node), self.written.program.steps.len() as u16 - 1);
    }

    /// The number of a node's step. A node outside the cluster becomes an input.
    fn number(&mut self, node: &SharedNode, made: &NodeTensors) -> u16 {
        if let Some(number) = self.steps.get(&Arc::as_ptr(node)) {
            return *number;
        }
        if let OpKind::Constant(bits) = node.kind {
            let constants = &mut self.written.program.constants;
            constants.push(bits);
            let act = Instruction::Constant(constants.len() as u16 - 1);
            self.step(node, act);
            return self.steps[&Arc::as_ptr(node)];
        }
        let tensor = made.of(node);
        let walk = Walk::of(&self.shape, &node.shape.strides_as(&self.shape));
        let input = ProgramInput { dtype: node.dtype, offset: tensor.offset(), walk };
        let inputs = &mut self.written.program.inputs;
        let known = inputs.iter().zip(&self.written.tensors);
        let known = known.map(|(known, of)| *known == input && of.memory_id() == tensor.memory_id());
        let place = known.enumerate().find_map(|(at, same)| same.then_some(at)).unwrap_or_else(|| {
            inputs.push(input);
            self.written.tensors.push(tensor.clone());
            inputs.len() - 1
        });
        let act = Instruction::Input(place as u16);
        self.step(node, act);
        self.steps[&Arc::as_ptr(node)]
    }
}
