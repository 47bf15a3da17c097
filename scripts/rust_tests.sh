#!/usr/bin/env bash
# Builds the Rust tests, and of the examples those that tests run. The others, a third of the programs, are looked at by
# clippy; of doctests there are none.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo test --locked --quiet --no-run --tests
cargo build --locked --quiet --example soak --example udt_peer
