"""The `rechain` command: collects the subcommands; an error is one sentence and exit code 2."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer import Option
from typer.core import TyperGroup

from rechain.cli.audit import audit
from rechain.cli.candidates import candidates
from rechain.cli.demo import demo
from rechain.cli.evaluate import evaluate
from rechain.cli.export import export
from rechain.cli.index import index
from rechain.cli.labels import labels
from rechain.cli.options import ExitCode
from rechain.cli.recover import recover
from rechain.cli.reproduce import reproduce
from rechain.cli.serve import serve
from rechain.cli.train import train
from rechain.errors import RechainError
from rechain.system.log import note, printable
from rechain.version import __version__

_STOPPED: dict[int, str] = {ExitCode.INTERRUPTED: "interrupted", ExitCode.TERMINATED: "stopped by SIGTERM"}
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class _Commands(TyperGroup):
    """The commands; control characters in wrong arguments are escaped before they are printed."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if isinstance(getattr(error, "message", None), str):  # typer's own errors, which name no public class
                error.message = printable(error.message)  # type: ignore[attr-defined]
            raise


app = typer.Typer(
    cls=_Commands,
    help="Recover reasoning chains: the passages that lead from a question to its answer, and what links them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, index, recover, audit, serve, candidates, evaluate, export, train, reproduce):
    app.command()(command)
app.add_typer(labels, name="labels")


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context, version: Annotated[bool, Option("--version", help="Print the version.")] = False
) -> None:
    """Recover reasoning chains."""
    if version:
        print(f"rechain {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; it is handled like Ctrl+C."""

    def __str__(self) -> str:
        return "stopped by SIGTERM"


def main() -> None:
    """Run the command line; it prints UTF-8, whatever the encoding of the terminal."""
    # Both are read by what starts later: torch's threads, which spin while they wait and slow a busy machine down, and
    # the process that frees what killed workers leave behind, which would print a warning for it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code: int = ExitCode.MISTAKE
    with _raising_terminated():
        try:
            app()
            code = 0
        except RechainError as error:
            note(f"rechain: {error}")
        except OSError as error:
            what = "written" if error.errno in _OF_WRITING else "read or written"
            note(f"rechain: {error.filename or 'a file'} cannot be {what}: {error.strerror or error}.")
        except SystemExit as ended:
            code = code_of(ended)
            if code in _STOPPED:
                note(f"rechain: {_STOPPED[code]}.")
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            code = ExitCode.READER_GONE
    if code == ExitCode.READER_GONE:  # or Python would print an error when it exits
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(code)


@contextmanager
def _raising_terminated() -> Iterator[None]:
    """Raise Terminated on SIGTERM, so that workers end and the user reads how to resume."""

    def terminate(number: int, frame: object) -> NoReturn:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def code_of(ended: SystemExit) -> int:
    """Return the exit code: typer and rich use one code for all signals, and 1 for a closed pipe."""
    causes: list[BaseException] = [ended]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    if ended.code == ExitCode.INTERRUPTED and any(isinstance(cause, Terminated) for cause in causes):
        return ExitCode.TERMINATED
    if ended.code == 1 and any(isinstance(cause, BrokenPipeError) for cause in causes):
        return ExitCode.READER_GONE
    return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


if __name__ == "__main__":
    main()
