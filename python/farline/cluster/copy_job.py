"""The job of a copy, whether its ends have several nodes or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from farline.cluster.own_disks import own_disk_sessions
from farline.cluster.sessions import check_nodes, node_sessions
from farline.copying import CopyJob, CopyRequest
from farline.errors import FarlineError, UsageError
from farline.models.end_to_end import MOST_OF_EACH, NodeSetting
from farline.tools import StopQuestion, never_stop

if TYPE_CHECKING:
    from farline.copying.live_tuning import MakeTuner


def copy_job(
    request: CopyRequest,
    nodes: str | None = None,
    should_stop: StopQuestion = never_stop,
    make_tuner: MakeTuner | None = None,
) -> CopyJob:
    """The job; `nodes` is how many nodes of each end are used at most, or a whole setting.

    Raises:
        UsageError: for a setting that makes no sense, or does not go with the rest.
    """
    if not request.is_over_nodes:
        if nodes is not None:
            raise UsageError(
                "--nodes: neither end has several nodes; name them as dtn[1-8]:/path, "
                "slurm:PARTITION:N/path, or by a pool of pools.toml"
            )
        return CopyJob(request, should_stop=should_stop, make_tuner=make_tuner)
    if request.own_disks is not None:
        if nodes is not None:
            raise UsageError(
                "--nodes: cannot be combined with --own-disks, where every node has files of its "
                "own; name the nodes that are to be used, as in dtn[1-4]:/path"
            )
        check_nodes(request)
        return CopyJob(request, own_disk_sessions(request), should_stop)
    setting, streams = _setting(nodes, request.spec)
    if streams is not None:
        request = replace(request, spec={**request.spec, "streams": streams})
    return CopyJob(request, node_sessions(request, setting), should_stop)


def _setting(text: str | None, spec: Mapping[str, object]) -> tuple[NodeSetting | None, int | None]:
    """The setting, and the streams that it states."""
    if text is None:
        return None, None
    if text.isdecimal():
        if not 1 <= int(text) <= MOST_OF_EACH:
            raise UsageError(f"--nodes {text}: allowed: 1 to {MOST_OF_EACH}")
        return NodeSetting(int(text), 1, 1), None
    try:
        setting = NodeSetting.of_label(text)
    except FarlineError as error:
        raise UsageError(f"--nodes: {error.message}, or as a number of nodes") from None
    if "streams" in spec and spec["streams"] != setting.streams:
        raise UsageError(f"--streams {spec['streams']} and --nodes {text} state different streams")
    return setting, setting.streams
