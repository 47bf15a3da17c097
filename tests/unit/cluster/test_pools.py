"""How several nodes are written as one end of a copy, and what is not taken for such."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from farline.cluster import copy_job
from farline.cluster.nodes import get_nodes
from farline.copying import CopyRequest
from farline.copying.locations import SshHost, ThisHost, read_location
from farline.copying.pools import Node, NodePool, read_nodes
from farline.errors import FarlineError, SystemFailure, UsageError
from farline.tools import never_stop
from farline.tools.ssh import RemoteCommand
from farline.tools.ssh_command import SshCommand
from farline.tools.step_command import StepCommand, filled, read_template
from tests.support.steps import finished


@pytest.fixture
def pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of pools, not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "farline").mkdir()
    return tmp_path / "farline" / "pools.toml"


def pool(text: str) -> tuple[NodePool, str]:
    """What a location is as a pool."""
    location = read_location(text)
    assert isinstance(location.host, NodePool), location
    return location.host, location.path


def test_nodes_are_written_with_commas_ranges_and_addresses_for_data() -> None:
    names = [node.name for node in read_nodes("dtn[1-3,7].example.org,other")]
    assert names == [*(f"dtn{number}.example.org" for number in (1, 2, 3, 7)), "other"]
    assert [node.name for node in read_nodes("n[008-010]")] == ["n008", "n009", "n010"]
    assert read_nodes("a%10.0.0.1,b") == (Node("a", "10.0.0.1"), Node("b"))
    assert [node.name for node in read_nodes("alice@a,b,bob@c")] == ["alice@a", "alice@b", "bob@c"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a,a", "is named twice"),
        ("a%10.0.0.1,a%10.0.0.2", "a is named twice"),
        ("n[1-2", "a bracket has no other end"),
        ("n1-2],m[1-2]", "a bracket has no other end"),
        ("n[3-1]", "is not a range"),
        ("n[x]", "is not a node"),
        ("n[1-99999]", "is not a range"),
        ("a b,c", "is not a node"),
        ("-oProxyCommand=x,b", "is not a node"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        read_nodes(text)


def test_locations_of_several_nodes_are_told_from_all_others(pools: Path) -> None:
    host, path = pool("dtn[1-8]:/archive/")
    assert (host.engine, len(host.nodes), path) == ("ssh", 8, "/archive/")
    host, path = pool("slurm:xfer:8/data/")
    assert (host.engine, host.count, host.settings["partition"], path) == (
        "slurm", 8, "xfer", "/data/",
    )  # fmt: skip
    host, path = pool("slurm:xfer:2-8/data/")
    assert (host.least, host.count, path) == (2, 8, "/data/")
    host, path = pool("testbed:nodes:sink-[1-4]/tmp/x")
    assert (host.engine, host.settings["bed"], len(host.nodes)) == ("testbed", "nodes", 4)
    for plain in ("dtn:/archive/", "[::1]:/x", "alice@[fe80::1%eth0]:x", "slurm:xfer"):
        assert isinstance(read_location(plain).host, SshHost), plain
    for local in ("a,b", "./a,b:/x", "x[1-2]/y", "/a:b"):
        assert isinstance(read_location(local).host, ThisHost), local


def test_addresses_for_data_may_be_of_ipv6() -> None:
    host, path = pool("dtn1%::1,dtn2%2001:db8::2:/data/a:/b")
    assert host.nodes == (Node("dtn1", "::1"), Node("dtn2", "2001:db8::2"))
    assert path == "/data/a:/b"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("dtns:data", "dtns:data: several nodes need a path from the root, as in dtns:/data"),
        ("dtn[1-2]:", r"several nodes need a path from the root, as in dtn\[1-2\]:/data"),
        ("dtn1,dtn2:x/y", "several nodes need a path from the root, as in dtn1,dtn2:/x/y"),
        ("slurm:xfer:2", "a path from the root, as in slurm:xfer:8/data"),
        ("slurm:xfer:2:/data", "a path from the root, as in slurm:xfer:8/data"),
        ("slurm:xfer:0/data", "after the partition come a number of nodes"),
    ],
)
def test_nodes_without_a_path_from_the_root_are_no_host(pools: Path, text: str, what: str) -> None:
    pools.write_text('[dtns]\nnodes = ["dtn1"]\n')
    with pytest.raises(UsageError, match=what):
        read_location(text)


def test_a_file_of_pools_that_cannot_be_read_is_named_once(pools: Path) -> None:
    pools.write_bytes(b'p = "\xff"')
    with pytest.raises(UsageError, match=r"pools.toml: not valid UTF-8 text$"):
        read_location("p:/x")
    pools.unlink()
    pools.mkdir()
    with pytest.raises(UsageError, match=r"pools.toml: Is a directory$"):
        read_location("p:/x")


def test_a_pool_has_a_name_and_any_engine(pools: Path) -> None:
    pools.write_text(
        '[dtns]\nnodes = ["dtn[1-2]%10.0.0.1", "dtn9"]\n'
        '[batch]\nslurm = "xfer"\ncount = 4\nlicenses = "wan:1"\nlogin = "login.site"\n'
        '[pbs]\nnodes = ["a", "b"]\ncommand = "pbsdsh -n {index} -- {argv}"\n'
    )
    assert [node.name for node in pool("dtns:/x")[0].nodes][-1] == "dtn9"
    batch = pool("batch:/x")[0]
    assert (batch.engine, batch.count, batch.settings["licenses"]) == ("slurm", 4, "wan:1")
    nodes = finished(get_nodes(pool("pbs:/x")[0], None, [], None, never_stop))
    assert isinstance(nodes.command, StepCommand)
    assert nodes.command.farline("b", "copy", "--order") == [
        "pbsdsh", "-n", "1", "--", "farline", "copy", "--order",
    ]  # fmt: skip
    # What has no pool's name is a host, as ever.
    assert isinstance(read_location("other:/x").host, SshHost)


def test_nodes_know_what_farline_is_called_there(pools: Path) -> None:
    pools.write_text(
        '[mpi]\nnodes = ["a"]\ncommand = "mpirun -n 1 {argv}"\nfarline = "env A=1 farline"\n'
        '[dtns]\nnodes = ["a"]\nfarline = "/opt/farline"\n'
        '[odd]\nnodes = ["a"]\ncommand = "x {argv}"\nfarline = "a \'b"\n'
    )

    def words(name: str, ssh: SshCommand | None) -> list[str]:
        nodes = finished(get_nodes(pool(f"{name}:/x")[0], ssh, [], None, never_stop))
        return list(nodes.command.farline("a", "copy"))

    assert words("mpi", None)[3:] == ["env", "A=1", "farline", "copy"]
    assert words("mpi", SshCommand(remote_farline="/mine"))[3:] == ["/mine", "copy"]
    assert words("dtns", None)[-1] == "/opt/farline copy"
    assert words("dtns", SshCommand(remote_farline="/mine"))[-1] == "/mine copy"
    with pytest.raises(UsageError, match="No closing quotation"):
        words("odd", None)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[p]\n", "give either nodes, or slurm"),
        ('[p]\nnodes = ["a"]\nslurm = "x"\n', "give either nodes, or slurm"),
        ('[p]\nslurm = "x"\n', "count: 1 to 1024"),
        ('[p]\nslurm = "x"\ncount = 2\nleast = 3\n', "least: 1 to 2"),
        ('[p]\nnodes = ["a"]\nlicenses = "x"\n', "licenses: works only with slurm"),
        ('[p]\nnodes = ["a"]\nnode = 1\n', "node is unknown; allowed: nodes, slurm"),
        ('[p]\nnodes = "a"\n', "nodes: must be list"),
        ("p = 3\n", "is not a table"),
        ("[p\n", "pools.toml"),
        ('[p]\nslurm = "x"\ncount = 1\nlogin = "a"\nvia = "b {argv}"\n', "login or via"),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused_by_file_and_name(
    pools: Path, text: str, what: str
) -> None:
    pools.write_text(text)
    with pytest.raises(UsageError, match=what) as refused:
        read_location("p:/x")
    assert str(pools) in refused.value.message


def test_of_a_page_of_mpirun_its_first_sentence_is_told() -> None:
    rule = "-" * 74
    page = [
        rule,
        "mpirun was unable to find the specified executable file, and therefore",
        "did not launch the job.  This error was first reported for process",
        "Node:       vm",
        "Executable: farline",
        rule,
    ]
    command = StepCommand(nodes=("n1",), addresses=("n1",))
    told = command.why_ended("n1", "farline", 134, page, b"").message
    assert told.endswith(
        "134: mpirun was unable to find the specified executable file, and therefore did not "
        "launch the job"
    )
    told = command.why_ended("n1", "farline", 255, ["ssh: no such host", *page], b"").message
    assert "ssh: no such host; mpirun was unable" in told and "--" not in told
    assert "cut off" in command.why_ended("n1", "f", 255, ["cut off", rule], b"").message


def test_a_template_says_where_the_program_goes() -> None:
    assert filled(("x", "{node}", "{argv}"), ["a b", "c"], "n1") == ["x", "n1", "a b", "c"]
    assert filled(("ssh", "h", "{command}"), ["a b", "c"]) == ["ssh", "h", "'a b' c"]
    with pytest.raises(UsageError, match=r"\{argv\} is missing"):
        read_template("pbsdsh -n {index}")
    with pytest.raises(UsageError, match="No closing quotation"):
        read_template("x '{argv}")


def test_ssh_nodes_have_their_own_address_for_data() -> None:
    host, _ = pool("a%10.0.0.1,b:/x")
    nodes = finished(get_nodes(host, SshCommand(), [], None, never_stop))
    assert nodes.command.host_name("a", "a") == "10.0.0.1"
    assert nodes.command.farline("a", "serve")[:1] == ["ssh"]


def test_slurm_without_its_commands_says_what_to_install(
    pools: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    host, _ = pool("slurm:xfer:2/x")
    with pytest.raises(FarlineError, match="install the package slurm-client"):
        finished(get_nodes(host, None, [], None, never_stop))


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"max_harm": 0.2}, "--max-harm: cannot be combined with several nodes"),
        ({"tune": "auto"}, "--tune auto: cannot be combined with several nodes"),
    ],
)
def test_what_does_not_go_with_several_nodes_is_refused(
    settings: dict[str, object], what: str
) -> None:
    request = CopyRequest.between("dtn[1-2]:/a/", "x[1-2]:/b", **settings)
    with pytest.raises(UsageError, match=what):
        copy_job(request)


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ("0", "allowed: 1 to 9999"),
        ("4stm-1str-2n-1str-3n", "both sides must have as many"),
        ("many", "is not a setting of nodes"),
    ],
)
def test_a_number_of_nodes_is_one_or_a_setting(nodes: str, what: str) -> None:
    request = CopyRequest.between("dtn[1-2]:/a/", "x[1-2]:/b")
    with pytest.raises(UsageError, match=what):
        copy_job(request, nodes)
    with pytest.raises(UsageError, match="neither end has several nodes"):
        copy_job(CopyRequest.between("/a/", "/b"), "2")
    two = CopyRequest.between("dtn[1-2]:/a/", "x[1-2]:/b", spec={"streams": 2})
    with pytest.raises(UsageError, match="state different streams"):
        copy_job(two, "4stm-1str-2n-1str-2n")


def test_this_host_beside_nodes_is_reached_by_the_address_that_leads_to_them() -> None:
    peers = ["nowhere.invalid", "127.0.0.1"]
    nodes = finished(get_nodes(ThisHost(), None, peers, None, never_stop))
    (host,) = nodes.hosts
    assert nodes.command.host_name(host.target, "x") == "127.0.0.1"
    assert nodes.command.farline(host.target, "copy")[0] == sys.executable


def test_an_engine_that_starts_nothing_is_not_taken_for_ssh() -> None:
    step = StepCommand(nodes=("n1",), addresses=("n1",))
    said = ["srun: error: Application launch failed", "srun: Job step aborted"]
    why = step.why_ended("n1", "farline", 255, said, b"")
    assert (why.exit_code, why.message) == (5, f"n1: {said[0]}; {said[1]}")
    assert SshCommand().why_ended("n1", "farline", 255, said, b"").message.startswith("ssh n1: ")


@pytest.mark.parametrize(
    ("copy", "locations", "own", "what"),
    [
        ({"delete": 3}, ("n[1-2]:/a", "b"), "source", "no node sees all that the sources have"),
        ({"delete": 3}, ("n[1-2]:/a", "m[1-2]:/b"), "both", "no node sees all that the sources"),
        (
            {"remove_source_files": True}, ("a/", "n[1-2]:/b"), "destination",
            "--remove-source-files: cannot be",
        ),
        ({"hard_links": True}, ("a/", "n[1-2]:/b"), "destination", "--hard-links: cannot be"),
        ({}, ("a/", "slurm:x:2-4/b"), "destination", "slurm:PARTITION:4, or leave least out"),
    ],
)  # fmt: skip
def test_what_needs_the_view_of_all_nodes_is_refused_with_disks_of_their_own(
    copy: dict[str, object], locations: tuple[str, str], own: str, what: str
) -> None:
    request = CopyRequest.between(*locations, spec={"copy": copy}, own_disks=own)
    with pytest.raises(UsageError, match=what):
        copy_job(request)
    plain = CopyRequest.between("a/", "n[1-2]:/b", own_disks="destination")
    with pytest.raises(UsageError, match="--nodes: cannot be combined with --own-disks"):
        copy_job(plain, "2")


def test_a_command_of_a_pool_that_does_not_start_is_no_ssh(pools: Path) -> None:
    pools.write_text('[p]\nnodes = ["a"]\ncommand = "/nonexistent/on {node} {argv}"\n')
    nodes = finished(get_nodes(pool("p:/x")[0], None, [], None, never_stop))
    with pytest.raises(FarlineError, match=r"No such file or directory; check the command") as told:
        RemoteCommand(nodes.command, "a", ["copy", "--order"])
    assert "ssh" not in told.value.message


def test_a_host_without_a_cluster_is_told_from_a_wrong_partition(
    pools: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    salloc = tmp_path / "salloc"
    salloc.write_text(
        "#!/bin/sh\necho 'salloc: fatal: Could not establish a configuration source' >&2\nexit 1\n"
    )
    salloc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SystemFailure, match="belongs to no cluster; run farline on a login node"):
        finished(get_nodes(pool("slurm:xfer:2/x")[0], None, [], None, never_stop))
