"""Draw the picture of a recovered chain that README shows.

python docs/picture.py d07
"""

import io
import re
import sys
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console

from rechain.cli.demo import show
from rechain.formats.datasets import read_questions
from rechain.recoverer import Recoverer

_FONT_DOWNLOADS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(name: str) -> None:
    """Write docs/chain.svg with the chain of an example question."""
    console = Console(record=True, width=100, file=io.StringIO())
    with as_file(files("rechain").joinpath("data/demo.jsonl")) as path:
        question = next(question for question in read_questions(path) if question.id == name)
    show(question, Recoverer().recover(question), console)
    picture = console.export_svg(title=f"rechain demo --id {name}")
    (Path(__file__).parent / "chain.svg").write_text(_FONT_DOWNLOADS.sub("", picture))


if __name__ == "__main__":
    main(sys.argv[1])
