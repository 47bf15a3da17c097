"""Programs that stand for tools which no package brings, and tools that lie.

They do on one machine what the real ones do between two, and print what these were recorded to
print.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

_FDT = """
import shutil, socket, sys, time
from pathlib import Path
words = sys.argv[1:]
if "-V" in words:
    print("2026-11-21 20:00:07 INFO lia.util.net.copy.FDT printVersion FDT 0.27.0-202411112030")
    sys.exit(0)
value = lambda flag: words[words.index(flag) + 1]
if "-c" not in words:
    with socket.create_server(("127.0.0.1", int(value("-p")))) as server:
        time.sleep(60)
    sys.exit(1)
try:
    socket.create_connection((value("-c"), int(value("-p")))).close()
except OSError as error:
    print(f"java.net.ConnectException: {error}", file=sys.stderr)
    sys.exit(1)
folder = Path(value("-d"))
sources = [Path(word) for word in words[words.index("-d") + 2:]]
size = 0
names = [name for one in sources for name in ([one] if one.is_file() else one.rglob("*"))]
for name in names:
    # As the real one: no file keeps the folder that it was in.
    if name.is_file():
        shutil.copy(name, folder / name.name)
size = sum(name.stat().st_size for name in names if name.is_file())
print("2026-11-21 20:00:07 INFO lia.util.net.copy.FDTReaderSession reportStatus "
      "Net Out: 19.216 Gb/s\\tAvg: 19.216 Gb/s")
print("DATE=20261121200007.807000 HOST=vm PROG=fdt START=20261121200002.667000 BUFFER=0 "
      f"BLOCK=1048576 NBYTES={size} STREAMS=2 DEST=[127.0.0.1] TYPE=RETR CODE=226")
"""

_BBCP = """
import shutil, socket, subprocess, sys
words = sys.argv[1:]
if "--version" in words:
    print("14.04.14.00.1")
    sys.exit(0)
source, destination = (word.partition(":")[2] or word for word in words[-2:])
login = words[words.index("-S") + 1].split(" ")
try:
    far = next(host for host in (word.rpartition(":")[0] for word in words[-2:]) if host)
    socket.getaddrinfo(far.strip("[]"), None)
except OSError:
    print("bbcp: Unable to connect to  (null) ;  Name or service not known", file=sys.stderr)
    sys.exit(2)
if subprocess.run(login[:-1] + ["true"]).returncode:
    sys.exit(255)
if "-r" in words:
    # A folder's own name comes with it, and a destination that is missing is not made.
    inside = destination if source.endswith("/.") else f"{destination}/{source.split('/')[-1]}"
    if subprocess.run(["test", "-d", destination]).returncode:
        print(f"bbcp: Target directory {destination} not found.", file=sys.stderr)
        sys.exit(2)
    shutil.copytree(source, inside, dirs_exist_ok=True)
else:
    try:
        shutil.copy(source, destination)
    except OSError as error:
        print(f"bbcp: {error.strerror} processing {source}", file=sys.stderr)
        sys.exit(2)
print(f"File {destination} created; 50000000 bytes at 729.3 MB/s")
print("1 file copied at effectively 12.2 MB/s")
"""

_GLOBUS = """
import json, sys
words = sys.argv[1:]
if words[0] == "version":
    print("Installed version:  3.44.0")
elif words[0] == "transfer":
    if "missing" in words[1]:
        print("Globus CLI Error: code: EndpointNotFound", file=sys.stderr)
        sys.exit(1)
    print("706f798b-e1d9-432a-80c2-9207384707e1")
elif words[:2] == ["task", "show"]:
    print(json.dumps({
        "DATA_TYPE": "task", "task_id": words[2], "type": "TRANSFER", "status": STATUS,
        "files": 3, "files_transferred": 3, "directories": 1, "bytes_transferred": 1000,
        "effective_bytes_per_second": 500, "faults": 0, "is_ok": True, "label": "farline",
        "request_time": "2026-11-25T09:00:00+00:00", "completion_time": "2026-11-25T09:00:02+00:00",
        "nice_status": None, "source_endpoint_display_name": "a",
        "destination_endpoint_display_name": "b"}))
"""

_LIAR = """
import sys
from pathlib import Path
target = Path(sys.argv[-1].partition(":")[2])
content = Path(sys.argv[-2].removeprefix("./")).read_bytes()
HOW
"""

_LIES = {
    "nothing": "",
    "short": "target.write_bytes(content[:-1])",
    "different": "target.write_bytes(bytes(len(content)))",
}
"""What a tool that says it went well has done: nothing, less, something else."""


def _program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(0o755)


def fake_fdt(folder: Path) -> Path:
    """`java` that does what FDT does; the jar to name in FDT_JAR."""
    _program(folder, "java", _FDT)
    jar = folder / "fdt.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Main-Class: lia.util.net.copy.FDTMain\n")
    return jar


def fake_bbcp(folder: Path) -> None:
    """`bbcp`, which logs in and then copies."""
    _program(folder, "bbcp", _BBCP)


def fake_globus(folder: Path, status: str = "SUCCEEDED") -> None:
    """`globus`, whose transfers end with `status`."""
    _program(folder, "globus", _GLOBUS.replace("STATUS", repr(status)))


def lying_scp(folder: Path, lie: str) -> None:
    """`scp` with exit code 0 that did one of `_LIES`."""
    _program(folder, "scp", _LIAR.replace("HOW", _LIES[lie]))
