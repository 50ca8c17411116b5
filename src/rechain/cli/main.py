"""The `rechain` command: gathers the subcommands and turns mistakes into one sentence and exit code 2."""

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer
from typer import Option

from rechain.cli.candidates import candidates
from rechain.cli.demo import demo
from rechain.cli.evaluate import evaluate
from rechain.cli.export import export
from rechain.cli.labels import labels
from rechain.cli.recover import recover
from rechain.cli.reproduce import reproduce
from rechain.cli.serve import serve
from rechain.cli.train import train
from rechain.errors import RechainError
from rechain.version import __version__

# What typer exits with after Ctrl+C: 128 and the number of SIGINT, as shells have it.
_INTERRUPTED = 130

app = typer.Typer(
    help="Recover reasoning chains: the passages that lead from a question to its answer, and what links them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, recover, serve, candidates, evaluate, export, train, reproduce):
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


def main() -> None:
    """Run the command line; what it prints is UTF-8, whatever the terminal says."""
    # Both are read by what starts later: torch's threads, which spin while they wait and slow a busy machine down, and
    # the process that frees what killed workers leave behind, which would print a warning for it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    try:
        app()
    except RechainError as error:
        _fail(str(error))
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            print("rechain: interrupted.", file=sys.stderr)
        raise
    except OSError as error:
        _fail(f"{error.filename or 'the output'} cannot be written: {error.strerror}.")


def _fail(message: str) -> None:
    print(f"rechain: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
