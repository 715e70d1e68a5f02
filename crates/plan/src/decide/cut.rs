//! Maximum flow and minimum cut by Dinic's algorithm, over integer capacities.
//!
//! The code does not recurse, since a chain of 10,000 handlers is a path of 10,000 edges. The same edges in the same
//! order give the same cut.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Network {
    /// The vertex to which each edge leads. Edges come in pairs: `e ^ 1` is the reverse of `e`.
    to: Vec<u32>,
    left: Vec<u64>,
    edges: Vec<Vec<u32>>,
}

impl Network {
    pub fn new(vertices: usize) -> Network {
        Network { to: Vec::new(), left: Vec::new(), edges: vec![Vec::new(); vertices] }
    }

    pub fn vertex(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// Adds an edge with a capacity for each direction.
    pub fn edge(&mut self, from: usize, to: usize, there: u64, back: u64) {
        if from == to || there == 0 && back == 0 {
            return;
        }
        let at = self.to.len() as u32;
        self.to.extend([to as u32, from as u32]);
        self.left.extend([there, back]);
        self.edges[from].push(at);
        self.edges[to].push(at + 1);
    }

    /// Pushes the maximum flow from `source` to `sink` and returns the amount of flow.
    pub fn saturate(&mut self, source: usize, sink: usize) -> u64 {
        let mut flow = 0;
        let mut level = vec![u32::MAX; self.edges.len()];
        let mut next = vec![0usize; self.edges.len()];
        while self.levels(source, sink, &mut level) {
            next.fill(0);
            flow += self.blocking_flow(source, sink, &level, &mut next);
        }
        flow
    }

    /// After [`Network::saturate`]: the vertices that can still reach the sink.
    pub fn reaches(&self, sink: usize) -> Vec<bool> {
        let mut reaches = vec![false; self.edges.len()];
        reaches[sink] = true;
        let mut queue = VecDeque::from([sink]);
        while let Some(v) = queue.pop_front() {
            for &e in &self.edges[v] {
                // Edge `e` leaves v, and its partner `e ^ 1` leads into v.
                let u = self.to[e as usize] as usize;
                if self.left[e as usize ^ 1] > 0 && !reaches[u] {
                    reaches[u] = true;
                    queue.push_back(u);
                }
            }
        }
        reaches
    }

    fn levels(&self, source: usize, sink: usize, level: &mut [u32]) -> bool {
        level.fill(u32::MAX);
        level[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(v) = queue.pop_front() {
            if v == sink {
                return true;
            }
            for &e in &self.edges[v] {
                let to = self.to[e as usize] as usize;
                if self.left[e as usize] > 0 && level[to] == u32::MAX {
                    level[to] = level[v] + 1;
                    queue.push_back(to);
                }
            }
        }
        false
    }

    fn blocking_flow(&mut self, source: usize, sink: usize, level: &[u32], next: &mut [usize]) -> u64 {
        let mut flow = 0;
        let mut path: Vec<u32> = Vec::new();
        let mut v = source;
        loop {
            if v == sink {
                let pushed = path.iter().map(|e| self.left[*e as usize]).min().unwrap_or(0);
                let mut tight = 0;
                for (at, &e) in path.iter().enumerate().rev() {
                    self.left[e as usize] -= pushed;
                    self.left[e as usize ^ 1] += pushed;
                    if self.left[e as usize] == 0 {
                        tight = at;
                    }
                }
                flow += pushed;
                // Continue from the first edge that is now full, not from the source, because the path before this edge
                // is still valid.
                v = self.to[path[tight] as usize ^ 1] as usize;
                path.truncate(tight);
                continue;
            }
            let step = self.edges[v][next[v]..]
                .iter()
                .position(|&e| self.left[e as usize] > 0 && level[self.to[e as usize] as usize] == level[v] + 1);
            match step {
                Some(offset) => {
                    next[v] += offset;
                    let e = self.edges[v][next[v]];
                    path.push(e);
                    v = self.to[e as usize] as usize;
                }
                None => {
                    next[v] = self.edges[v].len();
                    let Some(e) = path.pop() else { return flow };
                    v = self.to[e as usize ^ 1] as usize;
                    next[v] += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petgraph::algo::maximum_flow::dinics;
    use petgraph::graph::{DiGraph, NodeIndex};
    use proptest::prelude::*;

    /// The sum of the capacities from the source's side to the sink's side.
    fn cut_capacity(edges: &[(usize, usize, u64, u64)], reaches: &[bool]) -> u64 {
        edges
            .iter()
            .map(|&(a, b, there, back)| match (reaches[a], reaches[b]) {
                (false, true) => there,
                (true, false) => back,
                _ => 0,
            })
            .sum()
    }

    proptest! {
        #[test]
        fn the_flow_is_what_petgraph_finds_and_the_cut_carries_exactly_that(
            edges in prop::collection::vec((0usize..8, 0usize..8, 0u64..20, 0u64..20), 0..40)
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|e| e.0 != e.1).collect();
            let mut network = Network::new(8);
            let mut oracle = DiGraph::<(), u64>::new();
            let nodes: Vec<NodeIndex> = (0..8).map(|_| oracle.add_node(())).collect();
            for &(a, b, there, back) in &edges {
                network.edge(a, b, there, back);
                oracle.add_edge(nodes[a], nodes[b], there);
                oracle.add_edge(nodes[b], nodes[a], back);
            }
            let flow = network.saturate(0, 1);
            let (expected, _) = dinics(&oracle, nodes[0], nodes[1]);
            prop_assert_eq!(flow, expected);
            let reaches = network.reaches(1);
            prop_assert!(reaches[1] && !reaches[0]);
            prop_assert_eq!(cut_capacity(&edges, &reaches), flow);
        }
    }

    #[test]
    fn a_path_of_a_hundred_thousand_edges_does_not_overflow_the_stack() {
        let n = 100_000;
        let mut network = Network::new(n);
        for v in 1..n {
            network.edge(v - 1, v, 7, 0);
        }
        assert_eq!(network.saturate(0, n - 1), 7);
    }
}
