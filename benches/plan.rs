//! How planning time grows with the graph.
//!
//! Three shapes of up to 10,000 handlers: a chain, a ladder of diamonds, and a chain whose handlers prefer alternating
//! spaces, which is hard for the minimum cut. Times are medians of several runs, in milliseconds, for each step of
//! `vramp plan`.

use std::fmt::Write as _;
use std::time::Instant;

use vramp::prelude::*;

fn chain(handlers: usize) -> String {
    let mut text = "pattern".to_owned();
    for at in 0..handlers.saturating_sub(2) {
        text += [" ! invert", " ! blur sigma=2", " ! gamma 2.2", " ! saturation 0.7"][at % 4];
    }
    text + " ! null"
}

fn ladder(handlers: usize) -> String {
    let mut text = "pattern name=x0\n".to_owned();
    let rungs = handlers.saturating_sub(2) / 3;
    for rung in 0..rungs {
        let _ = write!(
            text,
            "x{rung}. ! blur ! m{rung}.a\nx{rung}. ! invert ! m{rung}.b\nmix name=m{rung} ! x{}.\n",
            rung + 1
        );
        let _ = writeln!(text, "identity name=x{}", rung + 1);
    }
    let _ = writeln!(text, "x{rungs}. ! null");
    text
}

fn torn(handlers: usize) -> String {
    let mut text = "raw path=- size=320x180".to_owned();
    for at in 0..handlers.saturating_sub(2) {
        text += match at % 9 {
            3 => " ! download ! upload",
            8 => " ! wgsl code=f",
            5 => " ! blur sigma=9",
            _ => " ! invert",
        };
    }
    text + " ! png path=out.png"
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let registry = vramp::registry();
    let catalog = registry.catalog();
    let profile = Profile::shipped("integrated").expect("it ships");
    println!(
        "{:8} {:>9} {:>10} {:>10} {:>10} {:>10}",
        "shape", "handlers", "read ms", "check ms", "plan ms", "text ms"
    );
    for (name, shape) in [("chain", chain as fn(usize) -> String), ("ladder", ladder), ("torn", torn)] {
        for handlers in [10, 100, 1_000, 10_000] {
            let text = shape(handlers);
            let mut times: [Vec<f64>; 4] = Default::default();
            let mut planned = 0;
            for _ in 0..if handlers > 1_000 { 5 } else { 15 } {
                let mut lap = {
                    let mut since = Instant::now();
                    move || {
                        let ms = since.elapsed().as_secs_f64() * 1e3;
                        since = Instant::now();
                        ms
                    }
                };
                let spec = vramp::read(&text, catalog).expect("the shape reads");
                times[0].push(lap());
                let graph = Graph::check(&spec, catalog, &vramp::plan::catalog::NoProbe).expect("the shape checks");
                times[1].push(lap());
                let plan = Plan::decide(&graph, &profile, &RunOptions::new()).expect("the shape plans");
                times[2].push(lap());
                planned = plan.handlers.len();
                std::hint::black_box(plan.to_text(false));
                times[3].push(lap());
            }
            let [read, check, plan, print] = times.map(median);
            println!("{name:8} {planned:>9} {read:>10.3} {check:>10.3} {plan:>10.3} {print:>10.3}");
        }
    }
}
