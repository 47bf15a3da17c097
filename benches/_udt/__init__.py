"""Speaks UDT with farline and with libudt: what the benches udt-* and the tests of interop share.

What it does: builds two programs with one command line, the C++ peer over libudt in
`tests/interop/libudt_peer` and its twin over farline's own sockets, the example `udt_peer` of
`crates/transport`; starts them on this machine or inside hosts of a testbed; reads what they say.
What it must not do: judge what came of it; tests and benches do.

In: options of the peers' command line (`tests/interop/libudt_peer/options.hpp`). Out: `peers.Said`,
what an end printed.

Where to start: `peers.exchange`, then `versus` (pairs of ours and libudt's runs to rows) and
`haul` (steady rates of `farline probe --transport udt` over emulated paths).
"""
