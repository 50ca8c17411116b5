"""Write a recipe as a notebook, so that both have the same blocks.

python docs/notebook.py docs/recipes/retriever.md examples/train_retriever.ipynb
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RELATIVE = re.compile(r"\]\(\.\./")
"""the start of a link from a recipe to another page"""
_FROM_EXAMPLES = "](../docs/"


def cells(page: str) -> Iterator[dict[str, Any]]:
    """Yield the texts and blocks of a page as cells; what a block prints is left to the notebook."""
    at = 0
    for block in [*_BLOCK.finditer(page), None]:
        if text := page[at : block.start() if block else None].strip():
            yield _cell("markdown", _RELATIVE.sub(_FROM_EXAMPLES, text))
        if block is None:
            return
        language, code = block[1], block[2].strip()
        if language in ("python", "sh"):
            whole = code if language == "python" else "%%bash\n" + code
            yield _cell("code", whole) | {"execution_count": None, "outputs": []}
        at = block.end()


def _cell(kind: str, text: str) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}


def notebook(page: str) -> str:
    """Return the notebook of a page."""
    numbered = [{"id": f"cell-{number}"} | cell for number, cell in enumerate(cells(page))]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": numbered, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    source, out = map(Path, sys.argv[1:3])
    out.write_text(notebook(source.read_text(encoding="utf-8")), encoding="utf-8")
