//! Checks that the graph has no cycle and computes the running order of its handlers.

use std::collections::BTreeSet;

use crate::graph::order::running_order;
use crate::text::Mistake;

use super::GraphChecker;

impl GraphChecker<'_> {
    /// The running order of the handlers. Reports a mistake if there is a cycle.
    pub(super) fn order(&mut self) -> Vec<usize> {
        let n = self.handlers.len();
        let (order, waiting) = running_order(n, self.links.iter().map(|l| (l.from, l.to)));
        if order.len() < n
            && let Some(cycle) = self.cycle(&waiting)
        {
            let path: Vec<_> = cycle.iter().chain(&cycle[..1]).take(12).map(|v| self.names[*v].as_str()).collect();
            let more = if cycle.len() > 11 { " -> ..." } else { "" };
            self.mistakes.push(
                Mistake::new(
                    format!("the graph has a cycle: {}{more}", path.join(" -> ")),
                    "expected links that lead from sources to sinks",
                )
                .at(self.spec.handlers()[cycle[0]].place.0.clone())
                .help("remove one of these links"),
            );
        }
        order
    }

    /// Finds a cycle among the handlers that still wait for input: follows links backwards until a handler is visited
    /// twice.
    fn cycle(&self, waiting: &[usize]) -> Option<Vec<usize>> {
        let mut feeder = vec![None; waiting.len()];
        for link in self.links.iter().filter(|l| waiting[l.to] > 0 && waiting[l.from] > 0) {
            feeder[link.to].get_or_insert(link.from);
        }
        let mut at = (0..waiting.len()).find(|v| feeder[*v].is_some())?;
        let mut seen = BTreeSet::new();
        while seen.insert(at) {
            at = feeder[at]?;
        }
        let mut cycle = vec![at];
        let mut v = feeder[at]?;
        while v != at {
            cycle.push(v);
            v = feeder[v]?;
        }
        cycle.reverse();
        let first = (0..cycle.len()).min_by_key(|i| cycle[*i])?;
        cycle.rotate_left(first);
        Some(cycle)
    }
}
