"""Congestion controls under test: published formulas, the BPF sources as plain C, and real runs.

```text
reference.py   each algorithm as published: pure functions of the window, time and loss
native.py      bpf/*.bpf.c compiled for this machine, driven ACK by ACK without a kernel
shim/          what those sources include, as far as a plain C compiler needs it
sender.py      a program: sends over TCP and prints its window every few milliseconds
runs.py        a sender and a receiver over a testbed; windows as arrays
```

In: names, windows, losses. Out: windows over time. Start with reference.py.
"""
