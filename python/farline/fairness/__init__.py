"""How fairly a line is shared: rates, delays and losses of two sides in, measures out.

What it does: the measures of fairness, each with its source (`measures`: Jain's index, max-min
shares and the distance from them, harm; `dynamics`: convergence, RTT fairness); what the wire
counters of a router say of each side (`wire`); and what a whole experiment comes to, load by load,
with intervals over repetitions (`contest`: curves, knee, harm beside that of a reference).

What it must not do: run, read a store, draw, judge in words (`findings.contention_text` does). It
needs neither numpy nor pandas: sequences of numbers in, numbers out.

In: `Trial`s (who ran, at which load, what the wire saw), or plain rates. Out: `Contest` with a
`Point` per load. All rates are bits per second of one kind, on the wire or of payload; shares, harm
and indices are plain numbers, not per cent.

```text
link samples ─► wire.seen_by ─┐
stream samples ─► wire.Seen ──┴─► Trial ─► contest.contests ─► Contest(points, knee, plateau)
```

Start with measures.py, then contest.py.
"""
