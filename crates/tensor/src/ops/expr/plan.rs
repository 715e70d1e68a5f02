//! Decides which ops of an expression share a kernel: which nodes are computed in the kernel of another node, and which
//! nodes become tensors of their own. The only fact about the host or device that planning uses is how many buffers a
//! kernel may bind.
//!
//! Ops are joined by three rules. Elementwise ops of one shape become one program. If the only user of a program goes
//! through rows (a reduction, softmax, layer norm), the program becomes the function through which the user's kernel
//! reads. If the only user of a product is a program of the product's shape, the program becomes the function that
//! finishes the product's results.
//!
//! Groups are first made as large as these rules allow, and then cut (`cut`) if a kernel would be too long or bind too
//! many buffers. A cut changes which nodes share a kernel, so the grouping is repeated a few times. The time grows with
//! the size of the expression. Nothing recurses, so that an expression may be as deep as memory allows.
//!
//! Invariants: every node that is needed is computed once. Operands come before their users. A group has one result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cut::cuts;
use super::node::{ExprNode, OpKind, SharedNode};
use crate::ops::dtype::DType;

/// A tensor to compute.
pub(super) struct PlanStage {
    /// The node whose values are computed.
    pub(super) node: SharedNode,
    /// The elementwise nodes that are computed in the stage's kernel, if there are any.
    pub(super) cluster: Option<Cluster>,
}

/// Elementwise nodes that are computed together.
pub(super) struct Cluster {
    /// The node whose value leaves the cluster.
    pub(super) root: SharedNode,
    /// All nodes of the cluster, operands first.
    pub(super) nodes: Vec<SharedNode>,
    /// The product whose results the cluster finishes, if any.
    pub(super) ends: Option<SharedNode>,
}

/// The number of rounds after which nodes that a group uses several times are computed separately. A group in which
/// every node is used once needs no second cut. Trees of any size take 2 rounds, and random nets of 2,000 ops took 3 or
/// 4 rounds.
const PATIENT_ROUNDS: usize = 12;

/// A node's address. The expression keeps its nodes alive during planning, so that addresses stay valid.
pub(super) type NodeAddress = *const ExprNode;

pub(super) fn key(node: &SharedNode) -> NodeAddress {
    Arc::as_ptr(node)
}

/// Plans an expression. `most_buffers` is the maximum number of tensors that a kernel may bind, inputs and outputs
/// together.
pub(super) fn plan(root: &SharedNode, fuse: bool, most_buffers: usize) -> Vec<PlanStage> {
    in_rounds(root, fuse, most_buffers).0
}

/// The plan, and the number of rounds that planning took.
fn in_rounds(root: &SharedNode, fuse: bool, most_buffers: usize) -> (Vec<PlanStage>, usize) {
    let order = in_order(root);
    let mut users: BTreeMap<NodeAddress, Vec<NodeAddress>> = BTreeMap::new();
    for node in &order {
        for operand in node.operands() {
            users.entry(key(operand)).or_default().push(key(node));
        }
    }
    let by_key: BTreeMap<NodeAddress, &SharedNode> = order.iter().map(|node| (key(node), node)).collect();
    let is_shared = |node: &NodeAddress| users.get(node).is_some_and(|users| users.len() > 1);
    let mut alone: BTreeSet<NodeAddress> = BTreeSet::new();
    let mut round = 0;
    loop {
        round += 1;
        let homes = if fuse { homes(&order, &users, &by_key, &alone) } else { all_alone(&order) };
        let stages = stages(&order, &homes);
        // If a kernel is too long or binds too many buffers, some of its nodes are computed separately, and the
        // grouping is repeated.
        let before = alone.len();
        for stage in &stages {
            let cuts = cuts(stage, most_buffers);
            if round > PATIENT_ROUNDS && !cuts.is_empty() {
                alone.extend(stage.cluster.iter().flat_map(|cluster| &cluster.nodes).map(key).filter(is_shared));
            }
            alone.extend(cuts);
        }
        if alone.len() == before {
            return (stages, round);
        }
    }
}

/// A node that is being visited, with its unvisited operands; the operand to visit next is last.
fn begun(node: &SharedNode) -> (&SharedNode, Vec<&SharedNode>) {
    (node, node.operands().into_iter().rev().collect())
}

/// Every node that is needed, operands first.
fn in_order(root: &SharedNode) -> Vec<SharedNode> {
    let (mut seen, mut order) = (BTreeSet::from([key(root)]), Vec::new());
    let mut open = vec![begun(root)];
    while let Some((node, operands)) = open.last_mut() {
        match operands.pop() {
            Some(operand) if seen.insert(key(operand)) => open.push(begun(operand)),
            Some(_) => {}
            None => {
                order.push(Arc::clone(node));
                open.pop();
            }
        }
    }
    order
}

/// Maps each node to the node in whose kernel it is computed. A node that is computed separately is mapped to itself.
type Homes = BTreeMap<NodeAddress, NodeAddress>;

fn all_alone(order: &[SharedNode]) -> Homes {
    order.iter().map(|node| (key(node), key(node))).collect()
}

fn homes(
    order: &[SharedNode],
    users: &BTreeMap<NodeAddress, Vec<NodeAddress>>,
    by_key: &BTreeMap<NodeAddress, &SharedNode>,
    alone: &BTreeSet<NodeAddress>,
) -> Homes {
    let mut homes = Homes::new();
    // `shapes` maps each program to the node that determines the shape of the program. `ending` has the stages that
    // already finish a product.
    let (mut shapes, mut ending): (BTreeMap<NodeAddress, NodeAddress>, BTreeSet<NodeAddress>) =
        (BTreeMap::new(), BTreeSet::new());
    for node in order.iter().rev() {
        let own = key(node);
        let used_by = users.get(&own).map_or(&[][..], Vec::as_slice);
        // A kernel reads through a reshape only if the operand of the reshape has no other user.
        let read_through = match &node.kind {
            OpKind::Reshape(of) => users[&key(of)].len() == 1 && !alone.contains(&key(of)),
            _ => true,
        };
        let home = home_of(node, used_by, by_key, &homes, &shapes, &mut ending);
        let home = home.filter(|_| !alone.contains(&own) && read_through);
        let home = home.unwrap_or(own);
        if node.is_elementwise() {
            shapes.entry(home).or_insert(own);
        }
        homes.insert(own, home);
    }
    homes
}

/// The stage whose kernel could compute a node, if there is one.
fn home_of(
    node: &SharedNode,
    users: &[NodeAddress],
    by_key: &BTreeMap<NodeAddress, &SharedNode>,
    homes: &Homes,
    shapes: &BTreeMap<NodeAddress, NodeAddress>,
    ending: &mut BTreeSet<NodeAddress>,
) -> Option<NodeAddress> {
    let first = users.first()?;
    let home = *homes.get(first)?;
    if !users.iter().all(|user| homes.get(user) == Some(&home)) {
        return None;
    }
    let all_elementwise = users.iter().all(|user| by_key[user].is_elementwise());
    if node.is_elementwise() && all_elementwise {
        let like = shapes.get(&home)?;
        return (by_key[like].shape == node.shape).then_some(home);
    }
    let stage = by_key[&home];
    if node.is_elementwise() {
        // The node must be the operand that its only user reads row by row.
        let [user] = users else { return None };
        let reads_rows = match &by_key[user].kind {
            OpKind::Reduce { of, .. } => of.dtype.is_float() && key(of) == key(node),
            OpKind::Softmax { of, .. } | OpKind::LayerNorm { of, .. } => key(of) == key(node),
            OpKind::Reshape(_) => reshape_into_rows(*user, homes, by_key),
            _ => false,
        };
        return (reads_rows && node.dtype.is_float()).then_some(home);
    }
    if let (OpKind::Reshape(of), [user]) = (&node.kind, users) {
        // A reshape keeps the memory order, so kernels over rows can read through a reshape.
        let into_rows =
            matches!(by_key[user].kind, OpKind::Reduce { .. }) && of.is_elementwise() && of.dtype.is_float();
        return into_rows.then_some(home);
    }
    if let (OpKind::Matmul(_), [_]) = (&node.kind, users) {
        let like = shapes.get(&home)?;
        let ends = all_elementwise
            && stage.is_elementwise()
            && by_key[like].shape == node.shape
            && stage.dtype == DType::F32
            && ending.insert(home);
        return ends.then_some(home);
    }
    None
}

/// True if a reduction absorbed the reshape.
fn reshape_into_rows(reshape: NodeAddress, homes: &Homes, by_key: &BTreeMap<NodeAddress, &SharedNode>) -> bool {
    homes.get(&reshape).is_some_and(|home| *home != reshape && matches!(by_key[home].kind, OpKind::Reduce { .. }))
}

fn stages(order: &[SharedNode], homes: &Homes) -> Vec<PlanStage> {
    let mut inside: BTreeMap<NodeAddress, Vec<SharedNode>> = BTreeMap::new();
    for node in order {
        inside.entry(homes[&key(node)]).or_default().push(Arc::clone(node));
    }
    let made = order.iter().filter(|node| homes[&key(node)] == key(node));
    made.map(|node| {
        let all = inside.remove(&key(node)).unwrap_or_default();
        let ends = all.iter().find(|one| matches!(one.kind, OpKind::Matmul(_)) && key(one) != key(node)).cloned();
        let nodes: Vec<SharedNode> = all.into_iter().filter(|one| one.is_elementwise()).collect();
        let root = nodes.last().cloned();
        let cluster = root.map(|root| Cluster { root, nodes, ends });
        PlanStage { node: Arc::clone(node), cluster }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::cut::MOST_STEPS;
    use super::*;
    use crate::ops::context::Context;
    use crate::ops::expr::Expr;
    use crate::ops::reduction::Reduction;

    /// The stages as text: the name of each stage, the nodes in its kernel, and whether it finishes a product.
    fn shown(expr: &Expr, most: usize) -> Vec<String> {
        let stages = plan(expr.node.as_ref().unwrap(), true, most);
        let made = stages.iter().filter(|stage| !matches!(stage.node.kind, OpKind::Leaf(_)));
        made.map(|PlanStage { node, cluster }| {
            let on_the_way = cluster.iter().flat_map(|cluster| &cluster.nodes).map(|node| node.name());
            let names: Vec<&str> = on_the_way.collect();
            let ends = cluster.iter().any(|cluster| cluster.ends.is_some());
            format!("{}{}: {}", node.name(), if ends { " ending matmul" } else { "" }, names.join(" "))
        })
        .collect()
    }

    #[test]
    fn chains_become_one_and_rows_and_products_take_them_in() {
        let context = Context::on_host();
        let a = context.zeros(&[4, 4], DType::F32).unwrap().lazy();
        let chain = a.mul(2.0).add(1.0).relu();
        assert_eq!(shown(&chain, 8), ["relu: mul add relu"]);
        assert_eq!(shown(&chain.softmax(-1), 8), ["softmax: mul add relu"]);
        assert_eq!(shown(&chain.reduce_all(Reduction::Sum), 8), ["sum: mul add relu"]);
        assert_eq!(shown(&a.matmul(&a).add(&a).relu(), 8), ["relu ending matmul: add relu"]);
        assert_eq!(
            shown(&a.matmul(&a).relu().sum(0), 8),
            ["matmul: ", "sum: relu"],
            "the relu is a part of one kernel only"
        );
    }

    #[test]
    fn what_two_kernels_use_is_made_once() {
        let context = Context::on_host();
        let a = context.zeros(&[4, 4], DType::F32).unwrap().lazy();
        let shared = a.exp();
        assert_eq!(
            shown(&shared.add(shared.neg()), 8),
            ["add: exp neg add"],
            "a node with two users is one step of their kernel"
        );
        assert_eq!(shown(&shared.div(shared.sum(0)), 8), ["exp: exp", "sum: ", "div: div"]);
        let row = context.zeros(&[4], DType::F32).unwrap().lazy().exp();
        assert_eq!(shown(&a.add(row), 8), ["exp: exp", "add: add"], "exp is not computed again for every row");
    }

    #[test]
    fn values_that_a_reduction_and_another_op_use_are_computed_once() {
        let context = Context::on_host();
        let shared = context.zeros(&[4, 4], DType::F32).unwrap().lazy().exp();
        let shares = shared.div(shared.reduce_all(Reduction::Sum));
        assert_eq!(shown(&shares, 8), ["exp: exp", "reshape: ", "sum: ", "div: div"]);
    }

    #[test]
    fn wide_trees_are_cut_into_kernels_of_bounded_length() {
        let context = Context::on_host();
        let x = context.tensor(&[1.0_f32; 4], &[4]).unwrap();
        let mut row: Vec<Expr> = (0..2048_u16).map(|at| x.lazy().add(f32::from(at))).collect();
        while row.len() > 1 {
            row = row.chunks(2).map(|pair| pair[0].add(&pair[1])).collect();
        }
        let stages = plan(row[0].node.as_ref().unwrap(), true, 8);
        let lengths = stages.iter().filter_map(|stage| stage.cluster.as_ref()).map(|cluster| cluster.nodes.len());
        let lengths: Vec<usize> = lengths.collect();
        assert!(lengths.iter().all(|length| *length <= MOST_STEPS) && lengths.len() < 100, "{lengths:?}");
        let sum = row[0].run().unwrap().read::<f32>().unwrap();
        assert_eq!(sum, [(0..2048_u16).map(|at| f32::from(at) + 1.0).sum::<f32>(); 4]);
    }

    #[test]
    fn a_kernel_that_would_bind_too_much_is_cut() {
        let context = Context::on_host();
        let parts: Vec<Expr> = (0..9).map(|_| context.zeros(&[4], DType::F32).unwrap().lazy()).collect();
        let sum = parts[1..].iter().fold(parts[0].clone(), |sum, part| sum.add(part));
        assert_eq!(shown(&sum, 16).len(), 1);
        for most in [3, 4, 8] {
            let stages = plan(sum.node.as_ref().unwrap(), true, most);
            assert!(stages.iter().all(|stage| cuts(stage, most).is_empty()), "{most}: {:?}", shown(&sum, most));
        }
        assert_eq!(shown(&sum, 4).len(), 4, "eight adds, two per kernel");
    }

    /// A random net of ops, each of which uses recent and old results.
    fn net(leaves: usize, ops: usize, mut seed: u64) -> Expr {
        let context = Context::on_host();
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut made: Vec<Expr> = (0..leaves).map(|_| context.zeros(&[4], DType::F32).unwrap().lazy()).collect();
        for _ in 0..ops {
            let (last, reach) = (made.len() - 1, [3, 30, made.len()][random(3)].min(made.len()));
            let (a, b) = (made[last - random(reach)].clone(), made[last - random(reach)].clone());
            made.push(if random(4) == 0 { a.relu() } else { a.add(b) });
        }
        // Every result is used.
        made[1..].iter().fold(made[0].clone(), |sum, one| sum.add(one))
    }

    #[test]
    fn any_net_is_planned_within_the_limits_and_in_few_rounds() {
        for (seed, most) in (0..24).zip([4, 8, 16, 64].into_iter().cycle()) {
            let net = net(1 + seed as usize * 3, 500, seed);
            let (stages, rounds) = in_rounds(net.node.as_ref().unwrap(), true, most);
            assert!(stages.iter().all(|stage| cuts(stage, most).is_empty()), "{seed}, {most}");
            assert!(rounds <= PATIENT_ROUNDS + 4, "{seed}, {most}: {rounds} rounds");
            let all: Vec<NodeAddress> =
                stages.iter().flat_map(|stage| &stage.cluster).flat_map(|it| &it.nodes).map(key).collect();
            assert_eq!(
                all.iter().collect::<BTreeSet<_>>().len(),
                all.len(),
                "{seed}, {most}: each node is computed once"
            );
        }
    }

    #[test]
    fn a_wide_tree_takes_as_many_rounds_as_a_small_one() {
        for count in [100, 1_000, 30_000] {
            let context = Context::on_host();
            let mut row: Vec<Expr> = (0..count).map(|_| context.zeros(&[1], DType::F32).unwrap().lazy()).collect();
            while row.len() > 1 {
                row = row.chunks(2).map(|pair| pair[1..].iter().fold(pair[0].clone(), |a, b| a.add(b))).collect();
            }
            assert_eq!(
                in_rounds(row[0].node.as_ref().unwrap(), true, 8).1,
                2,
                "{count}: the second round cuts nothing"
            );
        }
    }
}
