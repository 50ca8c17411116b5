"""The Dockerfile: its own steps are carried out, and what they make runs as it would in a container.

No Docker is needed. This machine stands in for the image that the file begins with: every stage is a layer over this
machine's root, in a mount namespace of its own, in which the steps run at their own paths. What they leave is then
mounted read-only, and the entry point runs in it as the user that the file names, without a network.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"
MOUNTS = "mkdir -p u w m && mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w m"
_DONE = "every step is done"


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile and what follows each."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


@dataclass
class Stage:
    """A stage as far as it was read: its commands, and what its steps are run with."""

    name: str
    commands: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0:0"
    settings: dict[str, str] = field(default_factory=dict)
    """the last of each instruction that only says how to run"""

    def run(self, *command: str) -> str:
        """Return the command that runs another in this stage, as its user and with its variables."""
        pairs = [f"{name}={value}" for name, value in self.variables.items()]
        ours = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("PIP_")]
        here = ["sh", "-c", f'cd {self.folder} && exec "$@"', "sh", *command]
        user = [f"--userspec={self.user}", "--groups="] if self.user != "0:0" else []
        return shlex.join(["chroot", *user, f"{self.name}/m", "env", "-i", *ours, *pairs, *here])


def stages(text: str, path: str) -> list[Stage]:
    """Return the stages of a Dockerfile, with the commands that carry its steps out."""
    found: list[Stage] = []
    for word, rest in instructions(text):
        if word == "FROM":
            stage = Stage(rest.split(" AS ")[1] if " AS " in rest else "last", variables={"PATH": path})
            mounts = f"(mkdir -p {stage.name} && cd {stage.name} && {MOUNTS})"
            links = f"mount -t proc proc {stage.name}/m/proc && mount --rbind /dev {stage.name}/m/dev"
            stage.commands += [
                mounts,
                links,
                f"chmod 755 {stage.name}/m/root",
            ]  # where this machine may keep its Python
            found.append(stage)
        elif word == "RUN":
            stage.commands.append(stage.run("sh", "-ec", rest))
        elif word == "WORKDIR":
            stage.folder = rest
            stage.commands.append(f"mkdir -p {stage.name}/m{rest}")
        elif word == "COPY":
            *sources, target = [part for part in rest.split() if not part.startswith("--")]
            origin = re.match(r"--from=(\S+)", rest)
            at = f"{stage.name}/m{Path(stage.folder) / target}"
            froms = [f"{origin[1]}/m{one}" if origin else f"context/{one}" for one in sources]
            stage.commands.append(f"cp -aT {froms[0]} {at}" if len(froms) == 1 else f"cp -a {' '.join(froms)} {at}")
        elif word == "ENV":
            for name, value in (pair.split("=", 1) for pair in shlex.split(rest)):
                stage.variables[name] = value.replace("$PATH", stage.variables["PATH"])
        elif word == "USER":
            stage.user = rest
        else:
            stage.settings[word] = rest
    return found


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    copied = {
        one
        for word, rest in instructions(DOCKERFILE.read_text())
        if word == "COPY" and "--from" not in rest
        for one in rest.split()[:-1]
    }
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
    assert all((ROOT / one).exists() for one in copied)


def test_it_names_no_host_and_nobody_runs_it_as_root() -> None:
    text = DOCKERFILE.read_text()
    froms = [rest.split()[0] for word, rest in instructions(text) if word == "FROM"]
    assert set(froms) == {"python:3.11-slim"}
    last = stages(text, "")[-1]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", last.user)
    assert last.settings.keys() >= {"HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "VOLUME", "LABEL", "EXPOSE"}


def test_whatever_questions_and_chains_may_be_stored_in_can_be_read_and_written() -> None:
    assert '".[parquet,stores,web]"' in DOCKERFILE.read_text()


def can_mount(folder: Path) -> bool:
    tried = subprocess.run(["unshare", "-mn", "sh", "-c", MOUNTS], cwd=folder, capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and mount namespaces")
def test_the_steps_of_the_file_make_what_runs_read_only_and_not_as_root(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("no overlay can be mounted here")
    python = Path(sys._base_executable).resolve().parent  # type: ignore[attr-defined]
    built = stages(DOCKERFILE.read_text(), f"{python}:/usr/sbin:/usr/bin:/sbin:/bin")
    context = tmp_path / "context"
    shutil.copytree(
        ROOT, context, ignore=lambda folder, names: _ignored(names) if Path(folder) == ROOT else {"__pycache__"}
    )
    (tmp_path / "data").mkdir()
    last = built[-1]
    last.folder = "/data"
    commands = [command for stage in built for command in stage.commands]
    commands += [
        f"chown {last.user} data && mount --bind data {last.name}/m/data && mount -t tmpfs tmpfs {last.name}/m/tmp",
        f"mount -o remount,ro {last.name}/m",
        f"unshare -n sh -ec {shlex.quote(_trial(last))}",
    ]
    script = "set -e\n" + "\n".join(commands)
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert ran.stdout.splitlines()[-1] == _DONE
    assert "Read-only file system" in ran.stderr
    assert "stopped by SIGTERM" in ran.stderr
    (chains,) = (tmp_path / "data").glob("chains.jsonl")
    assert all(json.loads(line)["chains"] for line in chains.read_text().splitlines())
    assert chains.stat().st_uid == int(last.user.partition(":")[0])


def _ignored(names: list[str]) -> set[str]:
    """Return what .dockerignore leaves out of the context."""
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    return set(names) - sent


def _trial(last: Stage) -> str:
    """Return the commands that use what was built: write beside it, recover, serve, ask for its health, stop it."""
    entry = json.loads(last.settings["ENTRYPOINT"])
    demo = last.run("python", "-c", "import rechain, pathlib; print(pathlib.Path(rechain.__file__).parent)")
    health = json.loads(last.settings["HEALTHCHECK"].partition("CMD ")[2])
    return f"""
        ip link set lo up
        test "$({last.run("id", "-u")})" = {last.user.partition(":")[0]}
        if {last.run("touch", "/opt/rechain/x")}; then exit 1; fi
        package=$({demo})
        {last.run(*entry, "recover")} "$package/data/demo.jsonl" --out /data/chains.jsonl --workers 2
        {last.run(*entry, *json.loads(last.settings["CMD"]))} & server=$!
        tries=0
        until {last.run(*health)} 2>/dev/null; do
            kill -0 $server; tries=$((tries + 1)); test $tries -lt 120; sleep 1
        done
        kill -s {last.settings["STOPSIGNAL"].removeprefix("SIG")} $server
        code=0; wait $server || code=$?
        test $code = 143
        echo {shlex.quote(_DONE)}
    """
