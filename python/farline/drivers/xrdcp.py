"""xrdcp and the XRootD server: files, also over several streams.

The server refuses to run as root. Where farline is root it is given another name in a user
namespace, in which it still owns root's files. xrdcp waits for minutes for a server that is not
there, unless told otherwise in its environment.
"""

from __future__ import annotations

import os
from pathlib import Path

from farline.drivers.destination import refuse_empty, refuse_names
from farline.drivers.driver import Abilities, Driver, Figures, Task, refuse
from farline.drivers.places import Here, InHost, Standing
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of

MOST_STREAMS = 15
_OTHER_ID = "65534"


class Xrdcp(Driver):
    """xrdcp of XRootD 5."""

    name = "xrdcp"
    title = "Files by XRootD"
    program = "xrdcp"
    server_program = "xrootd"
    package = (
        "the Debian packages xrootd-client, xrootd-client-plugins, xrootd-server and "
        "xrootd-server-plugins"
    )
    usual_port = 1094
    version_pattern = r"v?(\d+\.\d+\S*)"
    abilities = Abilities(
        "mover",
        {
            "streams": "-S",
            "copy.concurrency": "--parallel",
            "copy.overwrite": "-f",
            "block_bytes": "XRD_CPCHUNKSIZE",
        },
        several_sources=False,
        places=(Here, InHost, Standing),
    )

    def defaults(self, document: object) -> dict[str, object]:
        """Its own chunk."""
        return {"block_bytes": 8 << 20}

    def check(self, task: Task) -> None:
        """Streams beside the first one; a folder's name of a far end that nobody sees."""
        if task.get("streams", 1) > MOST_STREAMS:
            raise refuse(self.name, "streams", f"has {MOST_STREAMS} at most")
        if any(pair.is_folder for pair in task.files) and not task.is_started:
            raise refuse(
                self.name, "copy.sources", "copies folders only to and from servers it starts"
            )
        # In its names, those of files here too, a question mark begins words for the server.
        refuse_names(self.name, task, "names with a question mark", lambda name: "?" not in name)
        refuse_empty(self.name, task)

    def prepare(self, task: Task) -> None:
        """The server's configuration: its own folder, with a link to that of the copy.

        A configuration parts its words at blanks and knows variables; a link has neither.
        """
        (task.folder / "admin").mkdir(exist_ok=True)
        link = self._link(task)
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self._folder(task))
        lines = [f"all.export {task.folder}"]
        lines += [f"all.{name}path {task.folder / 'admin'}" for name in ("admin", "pid")]
        lines += [f"xrd.port {task.port}", "xrd.allow host *"]
        (task.folder / "xrootd.cf").write_text("\n".join([*lines, ""]), "utf-8")

    def _folder(self, task: Task) -> str:
        """The folder at the server that is read or written."""
        (pair,) = task.files
        path = pair.destination if task.forward else pair.source
        return path if pair.is_folder else str(Path(path).parent)

    def _link(self, task: Task) -> Path:
        """What leads to it; a folder that is pulled keeps its name, so it has the one it gets."""
        (pair,) = task.files
        is_pulled = pair.is_folder and not task.forward
        return task.folder / "shown" / (Path(pair.destination).name if is_pulled else "folder")

    def server_words(self, task: Task, program: str) -> list[str]:
        """A server for this run, under another name than root's."""
        family = "v6" if ":" in task.address else "v4"
        words = [program, "-c", str(task.folder / "xrootd.cf"), "-n", "farline", "-I", family]
        if os.geteuid() != 0:
            return words
        return ["unshare", "--user", f"--map-user={_OTHER_ID}", f"--map-group={_OTHER_ID}", *words]

    def client_words(self, task: Task, program: str) -> list[str]:
        """One file, or what is in one folder."""
        words = [program, "-f", "--nopbar"]
        # Its own streams are beside the one that it always has.
        words += ["-S", str(task.get("streams"))] if task.get("streams", 1) > 1 else []
        words += task.flag("--parallel", "copy.concurrency")
        (pair,) = task.files
        if not pair.is_folder:
            if task.forward:
                return [*words, pair.source, self._far(task, pair.destination)]
            return [*words, self._far(task, pair.source), pair.destination]
        # By its name a folder would become a folder of that name.
        far = f"{self._root(task)}{self._link(task)}/"
        if not task.forward:
            return [*words, "-r", far, f"{Path(pair.destination).parent}/"]
        inside = sorted(str(path) for path in Path(pair.source).iterdir())
        return [*words, "-r", *inside, far]

    def _root(self, task: Task) -> str:
        return f"root://{task.host}:{task.port}/"

    def _far(self, task: Task, path: str) -> str:
        """A file at the server: by the link at one of this run."""
        if task.is_started:
            path = str(self._link(task) / Path(path).name)
        return self._root(task) + (path if path.startswith("/") else "/" + path)

    def client_environment(self, task: Task) -> dict[str, str]:
        """Short waits, and the chunk."""
        return {
            "XRD_CONNECTIONRETRY": "1",
            "XRD_CONNECTIONWINDOW": "5",
            "XRD_STREAMTIMEOUT": str(round(task.get("copy.stall_timeout_s", 30))),
            "XRD_CPCHUNKSIZE": str(task.get("block_bytes")),
        }

    def read(self, task: Task, ended: Ended) -> Figures:
        """It prints no figure."""
        if ended.exit_code:
            # People know the folder, not the link by which the server reaches it.
            link, folder = (str(self._link(task)), self._folder(task)) if task.files else ("", "")
            words = [line.replace(link, folder) if link else line for line in ended.last_words]
            raise failure_of(self.name, ended, words)
        return Figures()
