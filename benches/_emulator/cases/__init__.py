"""Groups of cases of the benches emulator-accuracy and emulator-throughput: one file each.

Each file gives functions from an `Effort` to rows. A row's limit stands beside the case that
makes it.
"""
