//! vramp.
