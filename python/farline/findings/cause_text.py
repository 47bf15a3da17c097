"""A cause in words that need no knowledge of the fit: what, how much, from what, what to do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from farline.findings.bound_terms import Bools, PairTable, Term
from farline.findings.diagnosis import FILES_REACHED, Diagnosis, Named, window_bytes
from farline.findings.finding import STREAMS_MAX, counted, percent
from farline.findings.infrastructure_finding import Cause, Part
from farline.models.buffer_need import BUFFER_PER_WINDOW, buffer_bytes
from farline.spec.units import rate_human, size_human

FITS_AS_WELL = {
    "site": "one factor at every RTT",
    "io": "a ceiling at one rate",
    "window": "a small window",
}
"""What a site's fault may be, as a thing that measurements fit."""

Words = tuple[str, Part, tuple[str, ...], tuple[str, ...]]
"""Line, part, evidence, remedies."""


def cause(diagnosis: Diagnosis, named: Named) -> Cause:
    """The cause that may be said of what was found."""
    kind, subject = named.name
    if kind == "files":
        raise ValueError("file transfers that nobody is known to hold back are no cause")
    gain_bps, share = diagnosis.gain(diagnosis.best, named.terms)
    line, part, evidence, remedies = _WORDS[kind](diagnosis, named)
    if named.kind_open:
        line = f"{line}; {_not_told(diagnosis, named)}"
    held = np.logical_or.reduce([_held(diagnosis, term) for term in named.terms])
    return Cause(
        kind,
        part,
        subject if isinstance(subject, str) else None,
        line,
        gain_bps,
        share,
        named.strength,
        (*evidence, basis(diagnosis.table, held)),
        remedies,
        named.kind_open,
        subject if isinstance(subject, tuple) else (),
    )


def basis(table: PairTable, held: Bools) -> str:
    """What rows rest on: how many measurements, of how many paths, over which RTTs, which rates."""
    rows = [row for row, one in zip(table.rows, held.tolist(), strict=True) if one]
    if not rows:
        return "no single path shows it"
    rates = [row.mean_bps for row in rows]
    own = len({(row.sender, row.receiver) for row in rows})
    every = len({(row.sender, row.receiver) for row in table.rows})
    paths = f"{own} of {every} paths" if own < every else counted(own, "path")
    return (
        f"{counted(sum(row.n for row in rows), 'measurement')} of {paths}, RTT "
        f"{_ms(min(row.rtt_ms for row in rows))} to {_ms(max(row.rtt_ms for row in rows))}, means "
        f"{rate_human(min(rates))} to {rate_human(max(rates))}"
    )


def _ms(rtt_ms: float) -> str:
    return f"{rtt_ms:g} ms"


def _held(diagnosis: Diagnosis, term: Term) -> Bools:
    return diagnosis.best.holds(diagnosis.table, term)


def _not_told(diagnosis: Diagnosis, named: Named) -> str:
    """What a site's fault may be as well."""
    rivals = diagnosis.names_of(named.rival.fit) if named.rival else {}
    others = {kind for kind, subject in rivals if subject == named.name[1]} | {
        kind for kind, subject in diagnosis.names_of(diagnosis.best) if subject == named.name[1]
    }
    others -= {named.name[0]}
    words = [FITS_AS_WELL[kind] for kind in sorted(others) if kind in FITS_AS_WELL]
    own = FITS_AS_WELL[named.name[0]]
    return f"the measurements fit {' or '.join(words) or 'other causes'} as well as {own}"


def _usual(diagnosis: Diagnosis, named: Named, mask: Bools) -> tuple[float, float]:
    """Mean rate of rows, and what it would be with the cause mended."""
    table = diagnosis.table
    lift = diagnosis.mended(diagnosis.best, named.terms) - diagnosis.best.log_rate(table)
    rates = table.rate_bps[mask]
    return float(np.mean(rates)), float(np.mean(rates * np.exp(lift[mask])))


def _ends(term: Term, site: str) -> str:
    word = {"any": "to and from", "sender": "from", "receiver": "to"}[term.role]
    return f"{word} {site}"


def _site_words(diagnosis: Diagnosis, named: Named) -> Words:
    term, site = named.terms[0], str(named.name[1])
    now, usual = _usual(diagnosis, named, term.mask(diagnosis.table))
    line = (
        f"all transfers {_ends(term, site)} reach {percent(now / usual)} of what other sites "
        f"reach at the same RTTs: {rate_human(now)} instead of {rate_human(usual)}"
    )
    remedies = (
        f"at {site}: run `farline host` on its hosts; compare NICs, CPUs, kernel parameters and "
        "the uplink of the site with those of a fast site",
    )
    return line, "whole", (), remedies


def _path_words(diagnosis: Diagnosis, named: Named) -> Words:
    subject = named.name[1]
    one, other = subject if isinstance(subject, tuple) else ("", "")
    now, usual = _usual(diagnosis, named, named.terms[0].mask(diagnosis.table))
    line = (
        f"between {one} and {other} rates are {percent(now / usual)} of what these two sites "
        f"reach with others: {rate_human(now)} instead of {rate_human(usual)}"
    )
    remedy = f"check the route between {one} and {other} for losses, a small MTU or a detour"
    return line, "network", (), (remedy,)


def _io_words(diagnosis: Diagnosis, named: Named) -> Words:
    if named.name[1] is None:
        return _all_files_words(diagnosis, named)
    term, site, table = named.terms[0], str(named.name[1]), diagnosis.table
    held = _held(diagnosis, term)
    now, usual = _usual(diagnosis, named, held)
    only_files = bool(term.files_only or table.is_file.all())
    part: Part = "file system" if only_files else "host"
    what = "file transfers" if only_files else "all transfers"
    if term.law == "share":
        how = f"reach {percent(now / usual)} of what others reach"
    else:
        level = rate_human(math.exp(diagnosis.best.number(term)))
        how = f"stay at {level} whatever the RTT"
    line = (
        f"{what} {_ends(term, site)} {how}: {rate_human(now)} on average, where "
        f"{rate_human(usual)} is typical at the same RTTs"
    )
    if term.files_only:
        memory = table.rate_bps[table.touches(table.sites.index(site)) & ~table.is_file]
        network = f"memory to memory, the same site reaches {rate_human(float(np.mean(memory)))}"
        evidence: tuple[str, ...] = (network,) if len(memory) else ()
    else:
        evidence = ()
    return line, part, (*evidence, *_stated(diagnosis, site)), _io_remedies(site, part, term)


def _io_remedies(site: str, part: Part, term: Term) -> tuple[str, ...]:
    if part == "host":
        return (
            (
                f"check NIC, CPUs and bus of the hosts of {site} with `farline host`, or use more "
                "hosts"
            ),
        )
    more = "use more files at once and more stripes if the limit is per process"
    doubt = (
        ()
        if term.files_only
        else ((f"first measure memory to memory with {site}, to rule out the host"),)
    )
    return (*doubt, f"check the file system of {site} and the hosts' connection to it; {more}")


def _stated(diagnosis: Diagnosis, site: str) -> tuple[str, ...]:
    """What is known of a site's own limits."""
    limits = diagnosis.measured.limits.get(site)
    if limits is None:
        return ()
    known = (("host", limits.host_bps), ("read", limits.read_bps), ("write", limits.write_bps))
    words = [f"{name} {rate_human(value)}" for name, value in known if value]
    return (f"limits known for {site}: {', '.join(words)}",) if words else ()


def _all_files_words(diagnosis: Diagnosis, named: Named) -> Words:
    now, usual = _usual(diagnosis, named, diagnosis.table.is_file)
    share = diagnosis.share_of_file_limits or FILES_REACHED
    line = (
        f"file systems and hosts limit all file transfers to {rate_human(now)}: {percent(share)} "
        f"of what they reach without the network; memory to memory would allow {rate_human(usual)}"
    )
    return line, "file system", (), ("faster file systems, or more of their servers in parallel",)


def _tool_words(diagnosis: Diagnosis, named: Named) -> Words:
    now, usual = _usual(diagnosis, named, diagnosis.table.is_file)
    line = (
        f"file transfers reach {percent(now / usual)} of what memory to memory reaches on the "
        f"same paths: {rate_human(now)} instead of {rate_human(usual)}"
    )
    share = diagnosis.share_of_file_limits
    if share is None:
        why = "their rates fall with RTT as the network's do; the limits of file systems would not"
    else:
        why = (
            f"hosts and file systems alone reach more: file transfers use {percent(share)} of that"
        )
    remedies = ("more files at once (concurrency), larger blocks, overlapped reading and sending",)
    return line, "tool", (why,), remedies


def _window_words(diagnosis: Diagnosis, named: Named) -> Words:
    term, table = named.terms[0], diagnosis.table
    who = "all hosts" if named.name[1] is None else f"the hosts of {named.name[1]}"
    of = "each stream" if table.streams_known else "a transfer"
    held = _held(diagnosis, term)
    now, usual = _usual(diagnosis, named, held)
    most = float(np.max(np.exp(diagnosis.mended(diagnosis.best, named.terms))[held]))
    streams = float(np.max(table.streams[held]))
    rtt_s = float(np.max(table.rtt_ms[held])) / 1e3
    wanted = most * rtt_s / 8 / streams
    if term.law == "buffer":
        size = "its socket buffer"
        each = math.exp(diagnosis.best.number(term)) / 8e3 * float(np.nanmedian(table.buffer_bytes))
    else:
        each = window_bytes(diagnosis.best.number(term))
        size = size_human(each)
    line = (
        f"{who} keep at most {size} of {of} in flight: above an RTT of "
        f"{_ms(float(np.min(table.rtt_ms[held])))} rates fall as 1/RTT, to {rate_human(now)} on "
        f"average instead of {rate_human(usual)}"
    )
    buffers = (
        f"buffers of {size_human(BUFFER_PER_WINDOW * wanted)} per stream: set the largest value "
        f"of net.ipv4.tcp_rmem and net.ipv4.tcp_wmem to {buffer_bytes(wanted)}"
    )
    times = max(1.0, wanted / each)
    more = _more_streams(math.ceil(streams * times), "until then, more streams")
    if not table.streams_known:
        more = (f"until then, {math.ceil(times)} times as many streams",) if times > 1 else ()
    return line, "host", _window_doubt(diagnosis, term, held), (buffers, *more)


def _more_streams(wanted: int, why: str) -> tuple[str, ...]:
    """The remedy, where farline takes so many streams."""
    return (f"{why}: -P {wanted}",) if wanted <= STREAMS_MAX else ()


def _window_doubt(diagnosis: Diagnosis, term: Term, held: Bools) -> tuple[str, ...]:
    """What speaks for buffers against losses, which make TCP fall as 1/RTT too."""
    buffers = diagnosis.table.buffer_bytes[held]
    known = buffers[np.isfinite(buffers)]
    if term.law == "buffer":
        return ("rates grow in proportion to the socket buffer",)
    if len(known):
        return (f"socket buffers of {size_human(float(np.median(known)))} were requested",)
    return (
        (
            "steady losses would look the same: a run with larger buffers, or its retransmissions, "
            "would show which it is"
        ),
    )


def _loss_words(diagnosis: Diagnosis, named: Named) -> Words:
    term = named.terms[0]
    held = _held(diagnosis, term)
    now, usual = _usual(diagnosis, named, held)
    power = term.shape if term.law == "loss" else 1.0
    line = (
        f"rates fall with RTT to the power of −{power:.2g}, as TCP's do with packet loss: "
        f"{rate_human(now)} on average instead of {rate_human(usual)}"
    )
    why = "small buffers would make them fall as 1/RTT, slow start hardly at all"
    if term.law == "window":
        why = "socket buffers are far larger than the data in flight, so they are not the limit"
    remedies = (
        "look for the losses: `farline probe HOST` counts retransmissions per path",
        "a congestion control that is less sensitive to losses: -C bbr; or more streams",
    )
    return line, "network", (why,), remedies


def _streams_words(diagnosis: Diagnosis, named: Named) -> Words:
    term, table = named.terms[0], diagnosis.table
    wanted = diagnosis.streams_wanted(diagnosis.best, term)
    counts = np.unique(table.streams)
    means = [
        f"{count:g}: {rate_human(float(np.mean(table.rate_bps[table.streams == count])))}"
        for count in counts
    ]
    which = "file transfers" if term.files_only else "rates"
    if term.shape:
        how = "as flows that share a link do"
    else:
        how = f"by {rate_human(math.exp(diagnosis.best.number(term)))} each"
    line = (
        f"{which} grow with streams whatever the RTT, {how}; {wanted} streams would fill the link"
    )
    remedies = _more_streams(wanted, "more streams")
    return (
        line,
        "tool" if term.files_only else "host",
        (f"by streams {', '.join(means)}",),
        remedies,
    )


_WORDS: dict[str, Callable[[Diagnosis, Named], Words]] = {
    "site": _site_words,
    "path": _path_words,
    "io": _io_words,
    "tool": _tool_words,
    "window": _window_words,
    "loss": _loss_words,
    "streams": _streams_words,
}
