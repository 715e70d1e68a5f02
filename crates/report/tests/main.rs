//! The integration tests of vramp-report, as one binary.

mod layout;
