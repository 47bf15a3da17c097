"""The verbs: where each lives, its line in the list, and the group that it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Verb:
    """Where a command lives, and its line in the list."""

    module: str
    help: str
    title: str = "Commands"
    """Heading of the group of commands that it stands in."""


@runtime_checkable
class HasVerbs(Protocol):
    """A group whose commands stand in a table: they are listed without being imported."""

    verbs: Mapping[str, Verb]


_COPY = "Copy files"
_FILES = "Manage files on other hosts"
_MEASURE = "Measure a path"
_RESULTS = "Look at results"
_PLAN = "Predict and emulate"
_SHELL = "Use in a shell"

COMMANDS: dict[str, Verb] = {
    "copy": Verb("farline.cli.copy.command", "Copy files and folders between hosts.", _COPY),
    "adjust": Verb("farline.cli.adjust", "Change a copy while it runs.", _COPY),
    "estimate": Verb("farline.cli.estimate", "Estimate how long a copy will take.", _COPY),
    "check": Verb("farline.cli.check", "Check files against the receipt of their copy.", _COPY),
    "ls": Verb("farline.cli.ls", "List a folder on another host.", _FILES),
    "stat": Verb("farline.cli.stat", "Show a file on another host and its checksums.", _FILES),
    "cat": Verb("farline.cli.cat", "Print a file on another host.", _FILES),
    "mkdir": Verb("farline.cli.mkdir", "Make a folder on another host.", _FILES),
    "rename": Verb("farline.cli.rename", "Rename a file on another host.", _FILES),
    "rm": Verb("farline.cli.rm", "Remove files on another host.", _FILES),
    "serve": Verb("farline.cli.serve", "Serve copies and measurements to other hosts.", _COPY),
    "portal": Verb("farline.cli.portal", "Serve a web portal and a REST API.", _COPY),
    "ticket": Verb("farline.cli.ticket", "Make, list and revoke tickets of this server.", _COPY),
    "trust": Verb("farline.cli.trust", "Remember or forget another host's server.", _COPY),
    "bootstrap": Verb(
        "farline.cli.bootstrap", "Send a program for copies to a host without farline.", _COPY
    ),
    "probe": Verb("farline.cli.probe", "Measure throughput to a host once.", _MEASURE),
    "profile": Verb("farline.cli.profile", "Measure over a grid of settings.", _MEASURE),
    "fairness": Verb(
        "farline.cli.fairness", "Measure what a transfer takes from others on a line.", _MEASURE
    ),
    "tune": Verb("farline.cli.tune", "Find how many streams a path needs.", _MEASURE),
    "app-perf": Verb(
        "farline.cli.app_perf", "Measure how fast a host can receive and use data.", _MEASURE
    ),
    "host": Verb("farline.cli.host", "Check this host for limits on a path.", _MEASURE),
    "nodes": Verb("farline.cli.nodes", "Show what transfer nodes have.", _MEASURE),
    "storage": Verb("farline.cli.storage", "Measure what a file system can do.", _MEASURE),
    "tools": Verb("farline.cli.tools", "List the tools that farline can drive.", _MEASURE),
    "runs": Verb("farline.cli.runs", "List recorded runs.", _RESULTS),
    "show": Verb("farline.cli.show", "Show one run.", _RESULTS),
    "report": Verb("farline.cli.report", "Draw a campaign as one HTML page.", _RESULTS),
    "export": Verb("farline.cli.export", "Write runs as CSV, Parquet or JSON.", _RESULTS),
    "store": Verb("farline.cli.store", "Check or migrate the store of runs.", _RESULTS),
    "analyze": Verb("farline.cli.analyze", "Analyse existing measurements and logs.", _RESULTS),
    "model": Verb("farline.cli.model", "Predict the throughput of a transport.", _PLAN),
    "reproduce": Verb("farline.cli.reproduce", "Reproduce the figures of the papers.", _PLAN),
    "testbed": Verb("farline.cli.testbed", "Emulate a network on this machine.", _PLAN),
    "import-config": Verb(
        "farline.cli.import_config", "Convert other tools' configurations.", _SHELL
    ),
    "completion": Verb(
        "farline.cli.completion", "Complete farline's commands with the Tab key.", _SHELL
    ),
    "man": Verb("farline.cli.man", "Show or write the manual pages.", _SHELL),
}
