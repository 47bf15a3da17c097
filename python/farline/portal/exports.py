"""A reservation as the documents of systems that reserve networks.

- `oscars`: the body of `POST /protected/hold` of ESnet's OSCARS (github.com/esnet/oscars, 2026-03).
- `nsi`: the criteria of `reserve` in NSI Connection Service 2.0 (OGF GFD.237, section 6), as
  OpenNSA takes them for `POST /connections`.
- `sense`: the intent of SENSE's "dnc" service, as sense-o-py-client sends it.

Names of sites stand where these systems want ports: who sends the document puts theirs in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from farline.portal.reservations import Reservation

MEGA = 1_000_000


def export(one: Reservation, target: str) -> dict[str, Any]:
    """The document for one of `FORMATS`."""
    return FORMATS[target](one)


def _mbps(one: Reservation) -> int:
    """Whole Mbit/s, rounded up: these systems know nothing smaller."""
    return math.ceil(one.rate_bps / MEGA)


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _oscars(one: Reservation) -> dict[str, Any]:
    mbps = _mbps(one)
    return {
        "connectionId": one.id,
        "description": one.label or f"farline {one.id}",
        "username": one.user,
        "begin": int(one.start_s),
        "end": math.ceil(one.end_s),
        "heldUntil": int(one.held_until_s),
        "mode": "AUTOMATIC",
        "phase": "RESERVED" if one.phase in ("reserved", "active") else "HELD",
        "junctions": [{"device": one.source}, {"device": one.destination}],
        "fixtures": [],
        "pipes": [
            {
                "a": one.source, "z": one.destination, "mbps": mbps, "azMbps": mbps, "zaMbps": 0,
                "ero": [], "exclude": [], "protect": False, "pceMode": "BEST",
            }
        ],
    }  # fmt: skip


def _nsi(one: Reservation) -> dict[str, Any]:
    return {
        "connectionId": one.id,
        "description": one.label or f"farline {one.id}",
        "criteria": {
            "version": 0,
            "schedule": {"startTime": _iso(one.start_s), "endTime": _iso(math.ceil(one.end_s))},
            "p2ps": {
                "capacity": _mbps(one),
                "directionality": "Unidirectional",
                "symmetricPath": False,
                "sourceSTP": one.source,
                "destSTP": one.destination,
            },
        },
    }


def _sense(one: Reservation) -> dict[str, Any]:
    return {
        "service": "dnc",
        "alias": one.label or f"farline {one.id}",
        "data": {
            "type": "Multi-Path P2P VLAN",
            "connections": [
                {
                    "name": one.id,
                    "terminals": [{"uri": one.source}, {"uri": one.destination}],
                    "bandwidth": {
                        "qos_class": "guaranteedCapped",
                        "capacity": str(_mbps(one)),
                        "unit": "mbps",
                    },
                    "schedule": {
                        "start": _iso(one.start_s),
                        "end": _iso(math.ceil(one.end_s)),
                        "duration": f"{math.ceil(one.end_s - one.start_s)}s",
                    },
                }
            ],
        },
    }


FORMATS: dict[str, Callable[[Reservation], dict[str, Any]]] = {
    "oscars": _oscars,
    "nsi": _nsi,
    "sense": _sense,
}
"""What a reservation can be exported for."""
