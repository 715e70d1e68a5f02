//! Built-in handlers.
