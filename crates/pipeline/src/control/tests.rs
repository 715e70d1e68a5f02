//! Tests of settings that change: every refusal has its words, and a refused change changes nothing.
