//! Features of libraries, and no code.
//!
//! What it does: every room depends on it through `spec`, so that each library is built with the features that the
//! whole workspace asks of it, whichever part a command builds: `cargo test -p farline-mover`, the extension and
//! `cargo xtask` share what is built.
//!
//! What it must not do: have code, or be a place for libraries that no room uses.
//!
//! In and out: nothing. Start with `Cargo.toml`, which has the list; `scripts/same_features.py`, part of `make lint`,
//! says when a line is missing.
