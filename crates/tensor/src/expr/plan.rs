//! Decides which ops of an expression become one kernel.
//!
//! Owns the grouping: which nodes are computed inside another's kernel, and which are made as tensors of their own.
//! Does not know sides but for how many buffers a kernel may bind.
//!
//! Always: every node is computed once, unless nobody needs it; the order is one in which operands come first; what is
//! grouped has one result.
//!
//! Three kinds of ops take others in. Elementwise ops of one shape become one program. A program whose only user goes
//! through rows (a reduction, softmax, layer norm) becomes the way in which that reads. A product whose only user is a
//! program of its shape is ended by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::node::{Kind, Node, Shared};
use crate::dtype::DType;

/// What is made as a tensor, in order.
pub(super) struct Stage {
    /// The node whose values are made.
    pub(super) node: Shared,
    /// The elementwise nodes that are computed on the way, the last one first to be used: none where there are none.
    pub(super) cluster: Option<Cluster>,
}

/// Elementwise nodes that are computed together.
pub(super) struct Cluster {
    /// The one whose value leaves it.
    pub(super) root: Shared,
    /// All of them, operands first.
    pub(super) nodes: Vec<Shared>,
    /// The product that they end, where they do.
    pub(super) ends: Option<Shared>,
}

/// The most ops in one kernel: a text much longer takes compilers seconds, and a uniform has room for so many constants.
const MOST_STEPS: usize = 256;
/// The most that a kernel that goes through rows computes on the way: its text reads in several places, and a chain of
/// 400 took a software driver 3 s to compile.
const MOST_STEPS_IN_ROWS: usize = 32;
/// The most that ends a product, whose text ends in as many places as a tile has results.
const MOST_STEPS_OF_ENDS: usize = 16;

/// A node's address: nodes live as long as the plan that names them.
type Key = *const Node;

fn key(node: &Shared) -> Key {
    Arc::as_ptr(node)
}

/// Plans an expression. `most_buffers` is how many tensors a kernel may read and write in all.
pub(super) fn plan(root: &Shared, fuse: bool, most_buffers: usize) -> Vec<Stage> {
    let order = in_order(root);
    let mut users: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
    for node in &order {
        for operand in node.operands() {
            users.entry(key(operand)).or_default().push(key(node));
        }
    }
    let by_key: BTreeMap<Key, &Shared> = order.iter().map(|node| (key(node), node)).collect();
    let mut alone: BTreeSet<Key> = BTreeSet::new();
    loop {
        let homes = if fuse { homes(&order, &users, &by_key, &alone) } else { all_alone(&order) };
        let stages = stages(&order, &homes);
        // Where a kernel would bind too much, one of its nodes is made by itself, and everything is asked anew.
        let cuts: Vec<Key> = stages.iter().flat_map(|stage| cuts(stage, most_buffers)).collect();
        let before = alone.len();
        alone.extend(cuts);
        if alone.len() == before {
            return stages;
        }
    }
}

/// Every node that is needed, operands first.
fn in_order(root: &Shared) -> Vec<Shared> {
    fn visit(node: &Shared, seen: &mut BTreeSet<Key>, order: &mut Vec<Shared>) {
        if seen.insert(key(node)) {
            for operand in node.operands() {
                visit(operand, seen, order);
            }
            order.push(Arc::clone(node));
        }
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    visit(root, &mut seen, &mut order);
    order
}

/// Where each node is computed: the key of the stage whose kernel does; its own where it is made by itself.
type Homes = BTreeMap<Key, Key>;

fn all_alone(order: &[Shared]) -> Homes {
    order.iter().map(|node| (key(node), key(node))).collect()
}

fn homes(
    order: &[Shared],
    users: &BTreeMap<Key, Vec<Key>>,
    by_key: &BTreeMap<Key, &Shared>,
    alone: &BTreeSet<Key>,
) -> Homes {
    let mut homes = Homes::new();
    // Shapes of programs, and the stages that end a product already.
    let (mut shapes, mut ending): (BTreeMap<Key, Key>, BTreeSet<Key>) = (BTreeMap::new(), BTreeSet::new());
    for node in order.iter().rev() {
        let own = key(node);
        let used_by = users.get(&own).map_or(&[][..], Vec::as_slice);
        // A reshape is read through only together with what it reshapes, which nobody else may want.
        let read_through = match &node.kind {
            Kind::Reshape(of) => users[&key(of)].len() == 1 && !alone.contains(&key(of)),
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

/// The stage whose kernel could compute a node on the way.
fn home_of(
    node: &Shared,
    users: &[Key],
    by_key: &BTreeMap<Key, &Shared>,
    homes: &Homes,
    shapes: &BTreeMap<Key, Key>,
    ending: &mut BTreeSet<Key>,
) -> Option<Key> {
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
        // The one operand that is gone through row by row.
        let [user] = users else { return None };
        let reads_rows = match &by_key[user].kind {
            Kind::Reduce { of, .. } => of.dtype.is_float() && key(of) == key(node),
            Kind::Softmax { of, .. } | Kind::LayerNorm { of, .. } => key(of) == key(node),
            Kind::Reshape(_) => reshape_into_rows(*user, homes, by_key),
            _ => false,
        };
        return (reads_rows && node.dtype.is_float()).then_some(home);
    }
    if let (Kind::Reshape(of), [user]) = (&node.kind, users) {
        // In memory order nothing changes: whoever goes through rows reads through it.
        let into_rows = matches!(by_key[user].kind, Kind::Reduce { .. }) && of.is_elementwise() && of.dtype.is_float();
        return into_rows.then_some(home);
    }
    if let (Kind::Matmul(_), [_]) = (&node.kind, users) {
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

/// Whether a reshape was taken in by a reduction.
fn reshape_into_rows(reshape: Key, homes: &Homes, by_key: &BTreeMap<Key, &Shared>) -> bool {
    homes.get(&reshape).is_some_and(|home| *home != reshape && matches!(by_key[home].kind, Kind::Reduce { .. }))
}

fn stages(order: &[Shared], homes: &Homes) -> Vec<Stage> {
    let mut inside: BTreeMap<Key, Vec<Shared>> = BTreeMap::new();
    for node in order {
        inside.entry(homes[&key(node)]).or_default().push(Arc::clone(node));
    }
    let made = order.iter().filter(|node| homes[&key(node)] == key(node));
    made.map(|node| {
        let all = inside.remove(&key(node)).unwrap_or_default();
        let ends = all.iter().find(|one| matches!(one.kind, Kind::Matmul(_)) && key(one) != key(node)).cloned();
        let nodes: Vec<Shared> = all.into_iter().filter(|one| one.is_elementwise()).collect();
        let root = nodes.last().cloned();
        let cluster = root.map(|root| Cluster { root, nodes, ends });
        Stage { node: Arc::clone(node), cluster }
    })
    .collect()
}

/// Nodes that had better be made by themselves, where the stage's kernel would be too long or bind more than it may.
fn cuts(stage: &Stage, most: usize) -> Vec<Key> {
    match &stage.cluster {
        Some(Cluster { nodes, ends: Some(product), .. }) if nodes.len() > MOST_STEPS_OF_ENDS => vec![key(product)],
        Some(Cluster { nodes, root, .. }) if !stage.node.is_elementwise() && nodes.len() > MOST_STEPS_IN_ROWS => {
            vec![key(root)]
        }
        Some(cluster) if cluster.nodes.len() > MOST_STEPS => cluster.shorter(),
        Some(cluster) if stage.binds() > most => fewer(stage, cluster, most).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn fewer(stage: &Stage, cluster: &Cluster, most: usize) -> Option<Key> {
    // The product first: ending it is worth least.
    if let Some(product) = &cluster.ends {
        return Some(key(product));
    }
    // Then the node that takes the most away and can be made in one kernel itself.
    let candidates = cluster.nodes.iter().filter(|node| key(node) != key(&cluster.root));
    let reads = candidates.map(|node| (cluster.reads(node).len(), key(node)));
    let fitting = reads.filter(|(reads, _)| *reads > 1 && *reads < most);
    let best = fitting.max_by_key(|(reads, _)| *reads).map(|(_, node)| node);
    best.or_else(|| (key(&cluster.root) != key(&stage.node)).then(|| key(&cluster.root)))
}

impl Stage {
    /// Buffers that its kernel binds, of a kernel with a program in it.
    fn binds(&self) -> usize {
        let Some(cluster) = &self.cluster else { return 0 };
        // Beside what the program reads: the result, and what the kernel around it binds.
        let others = match &self.node.kind {
            Kind::LayerNorm { gamma, beta, .. } => 1 + usize::from(gamma.is_some()) + usize::from(beta.is_some()),
            _ => 1 + 2 * usize::from(cluster.ends.is_some()),
        };
        cluster.reads(&cluster.root).len() + others
    }
}

impl Cluster {
    /// Nodes that each need at most half of the steps that a kernel may have, and together most of all.
    fn shorter(&self) -> Vec<Key> {
        let (mut steps, mut cuts): (BTreeMap<Key, usize>, Vec<Key>) = (BTreeMap::new(), Vec::new());
        for node in &self.nodes {
            let own = 1 + node.operands().into_iter().filter_map(|operand| steps.get(&key(operand))).sum::<usize>();
            let is_long = own >= MOST_STEPS / 2 && key(node) != key(&self.root);
            if is_long {
                cuts.push(key(node));
            }
            // Whoever uses what is made by itself only reads it.
            steps.insert(key(node), if is_long { 0 } else { own });
        }
        cuts
    }

    /// What is read from outside to compute one of its nodes. A tensor is one, however often it was written down.
    fn reads(&self, node: &Shared) -> BTreeSet<(Key, u64, usize)> {
        let inside: BTreeSet<Key> = self.nodes.iter().chain(&self.ends).map(key).collect();
        let (mut reads, mut seen, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![node]);
        while let Some(node) = next.pop() {
            let elementwise = node.is_elementwise() && seen.insert(key(node));
            for operand in node.operands().into_iter().filter(|_| elementwise) {
                if inside.contains(&key(operand)) {
                    next.push(operand);
                } else {
                    reads.insert(match &operand.kind {
                        Kind::Leaf(tensor) => (std::ptr::null(), tensor.memory_id(), tensor.offset()),
                        _ => (key(operand), 0, 0),
                    });
                }
            }
        }
        reads
    }
}

#[cfg(test)]
mod tests {
    use crate::{Context, Expr, Reduction};

    use super::*;

    /// What is made by itself, with how many nodes on the way, and what it ends.
    fn shown(expr: &Expr, most: usize) -> Vec<String> {
        let stages = plan(expr.node.as_ref().unwrap(), true, most);
        let made = stages.iter().filter(|stage| !matches!(stage.node.kind, Kind::Leaf(_)));
        made.map(|Stage { node, cluster }| {
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
        assert_eq!(shown(&a.matmul(&a).relu().sum(0), 8), ["matmul: ", "sum: relu"], "one or the other");
    }

    #[test]
    fn what_two_kernels_use_is_made_once() {
        let context = Context::on_host();
        let a = context.zeros(&[4, 4], DType::F32).unwrap().lazy();
        let shared = a.exp();
        assert_eq!(shown(&shared.add(shared.neg()), 8), ["add: exp neg add"], "in one kernel it is a step");
        assert_eq!(shown(&shared.div(shared.sum(0)), 8), ["exp: exp", "sum: ", "div: div"]);
        let row = context.zeros(&[4], DType::F32).unwrap().lazy().exp();
        assert_eq!(shown(&a.add(row), 8), ["exp: exp", "add: add"], "not once for every row");
    }

    #[test]
    fn what_a_reduction_and_somebody_else_use_is_made_once() {
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
            assert!(stages.iter().all(|stage| stage.binds() <= most), "{most}: {:?}", shown(&sum, most));
        }
        assert_eq!(shown(&sum, 4).len(), 4, "eight adds, two in each");
    }
}
