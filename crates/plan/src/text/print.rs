//! Prints a graph in the pipeline grammar.
//!
//! Every setting that the graph gives is printed with its key, even if its value is the default. Handlers come in the
//! graph's order, so that default names stay the same when the text is read again.

use std::fmt::{self, Write};

use crate::graph::{GraphSpec, HandlerSpec, LinkEnd, LinkSpec};
use crate::words::{OnError, Policy};

/// Prints a graph in the pipeline grammar: one chain per line, then the links that are in no chain.
///
/// Reading the result gives the same graph, provided that the graph has at least one handler, that its kinds, keys,
/// ports and names satisfy [`is_name`](crate::is_name), that its names are unique, and that its depths are in range.
/// Only the builder can make a link with a depth but without a policy. Neither text form can express such a link, so
/// the link is printed with the policy `lossless`, which waits instead of dropping frames.
pub fn write_text(spec: &GraphSpec) -> String {
    let mut out = String::new();
    print(spec, &mut out).expect("writing to a string cannot fail");
    out
}

/// The printed policy of a link. A link with a depth needs a policy.
pub(super) fn printed_policy(link: &LinkSpec) -> Option<Policy> {
    link.policy.or(link.depth.map(|_| Policy::Lossless))
}

fn print(spec: &GraphSpec, out: &mut String) -> fmt::Result {
    let handlers = spec.handlers();
    // For each handler, the link from the previous handler, which is printed inside a chain. If there are several such
    // links, only the first link is printed there.
    let mut into: Vec<Option<&LinkSpec>> = vec![None; handlers.len()];
    let mut others = Vec::new();
    for link in spec.links() {
        let (from, to) = (link.from.handler.0, link.to.handler.0);
        let in_order = from + 1 == to && link.from.port.is_none() && link.to.port.is_none();
        match into.get_mut(to) {
            Some(slot @ None) if in_order => *slot = Some(link),
            _ => others.push(link),
        }
    }
    for (index, handler) in handlers.iter().enumerate() {
        match into[index] {
            Some(link) => {
                out.push(' ');
                print_link(link, out)?;
                out.push(' ');
            }
            None if index > 0 => out.push('\n'),
            None => {}
        }
        print_handler(handler, out)?;
    }
    if !handlers.is_empty() {
        out.push('\n');
    }
    let names = spec.names();
    for link in others {
        print_ref(&names, &link.from, out)?;
        out.push(' ');
        print_link(link, out)?;
        out.push(' ');
        print_ref(&names, &link.to, out)?;
        out.push('\n');
    }
    Ok(())
}

fn print_handler(handler: &HandlerSpec, out: &mut String) -> fmt::Result {
    out.push_str(&handler.kind);
    if let Some(name) = &handler.name {
        write!(out, " name={name}")?;
    }
    for (key, setting) in &handler.settings {
        write!(out, " {key}=")?;
        print_value(&setting.value, out);
    }
    if handler.on_error != OnError::default() {
        write!(out, " on-error={}", handler.on_error)?;
    }
    Ok(())
}

fn print_link(link: &LinkSpec, out: &mut String) -> fmt::Result {
    match (printed_policy(link), link.depth) {
        (None, _) => write!(out, "!"),
        (Some(policy), None) => write!(out, "!{{{policy}}}"),
        (Some(policy), Some(depth)) => write!(out, "!{{{policy} depth={depth}}}"),
    }
}

fn print_ref(names: &[String], end: &LinkEnd, out: &mut String) -> fmt::Result {
    // A handler id from another graph has no name here. The checker reports such an id; printing must not panic.
    let name = names.get(end.handler.0).map_or("?", String::as_str);
    write!(out, "{name}.{}", end.port.as_deref().unwrap_or_default())
}

fn print_value(value: &str, out: &mut String) {
    let special = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '!' | ';' | '"');
    // A `#` at the start of a value would not start a comment, but would look like a comment.
    if !value.is_empty() && !value.starts_with('#') && !value.contains(special) {
        out.push_str(value);
        return;
    }
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}
