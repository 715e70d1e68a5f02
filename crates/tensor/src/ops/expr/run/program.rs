//! Makes programs of elementwise nodes.
//!
//! Owns the order of steps, and which tensor is which input.
//! Does not run them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::node::{Kind, Node, Shared};
use super::super::plan::Cluster;
use super::Made;
use crate::ops::program::{Act, Input, Program, Step, Walk};
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

/// A program with the tensors that it reads.
pub(super) struct Written {
    pub(super) program: Program,
    pub(super) tensors: Vec<Tensor>,
}

/// The program of a cluster, walking through `shape`.
pub(super) fn of_cluster(cluster: &Cluster, made: &Made) -> Written {
    let mut writing = Writing {
        shape: cluster.root.shape.clone(),
        written: Written {
            program: Program { inputs: Vec::new(), steps: Vec::new(), constants: Vec::new(), out: cluster.root.dtype },
            tensors: Vec::new(),
        },
        steps: BTreeMap::new(),
    };
    if let Some(product) = &cluster.ends {
        writing.step(product, Act::Given);
    }
    for node in &cluster.nodes {
        let act = match &node.kind {
            Kind::Unary(op, a) => Act::Unary(*op, writing.number(a, made)),
            Kind::Binary(op, a, b) => Act::Binary(*op, writing.number(a, made), writing.number(b, made)),
            Kind::Select(c, a, b) => {
                Act::Select(writing.number(c, made), writing.number(a, made), writing.number(b, made))
            }
            Kind::Cast(a) => Act::Cast(writing.number(a, made)),
            _ => unreachable!("a cluster is elementwise"),
        };
        writing.step(node, act);
    }
    writing.written
}

/// The program that reads a tensor by strides and an offset, counted in its own values.
pub(super) fn of_strides(tensor: &Tensor, shape: &Shape, offset: usize, strides: &[usize]) -> Written {
    let walk = Walk::of(shape, strides);
    let input = Input { dtype: tensor.dtype(), offset: tensor.offset() + offset, walk };
    Written { program: Program::plain(input), tensors: vec![tensor.clone()] }
}

/// The program that reads a tensor as it is.
pub(super) fn of_tensor(tensor: &Tensor) -> Written {
    let input = Input { dtype: tensor.dtype(), offset: tensor.offset(), walk: Walk::Run };
    Written { program: Program::plain(input), tensors: vec![tensor.clone()] }
}

struct Writing {
    shape: Shape,
    written: Written,
    steps: BTreeMap<*const Node, u16>,
}

impl Writing {
    fn step(&mut self, node: &Shared, act: Act) {
        self.written.program.steps.push(Step { act, dtype: node.dtype });
        self.steps.insert(Arc::as_ptr(node), self.written.program.steps.len() as u16 - 1);
    }

    /// The step that a node is, which is the reading of a tensor where it is none of the cluster's.
    fn number(&mut self, node: &Shared, made: &Made) -> u16 {
        if let Some(number) = self.steps.get(&Arc::as_ptr(node)) {
            return *number;
        }
        if let Kind::Constant(bits) = node.kind {
            let constants = &mut self.written.program.constants;
            constants.push(bits);
            let act = Act::Constant(constants.len() as u16 - 1);
            self.step(node, act);
            return self.steps[&Arc::as_ptr(node)];
        }
        let tensor = made.of(node);
        let walk = Walk::of(&self.shape, &node.shape.strides_as(&self.shape));
        let input = Input { dtype: node.dtype, offset: tensor.offset(), walk };
        let inputs = &mut self.written.program.inputs;
        let known = inputs.iter().zip(&self.written.tensors);
        let known = known.map(|(known, of)| *known == input && of.memory_id() == tensor.memory_id());
        let place = known.enumerate().find_map(|(at, same)| same.then_some(at)).unwrap_or_else(|| {
            inputs.push(input);
            self.written.tensors.push(tensor.clone());
            inputs.len() - 1
        });
        let act = Act::Input(place as u16);
        self.step(node, act);
        self.steps[&Arc::as_ptr(node)]
    }
}
