"""What the tests of the commands share: how they are called, and a question in HotpotQA's layout."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]
RECHAIN = [sys.executable, "-c", "from rechain.cli.main import main; main()"]
HOTPOTQA: dict[str, Any] = {
    "_id": "q1",
    "question": "Where was the composer of Zorilla born?",
    "answer": "Prague",
    "type": "bridge",
    "supporting_facts": [["Zorilla", 0], ["Anton Quillfeather", 0]],
    "context": [
        ["Zorilla", ["Zorilla is an opera by Anton Quillfeather."]],
        ["Anton Quillfeather", ["Anton Quillfeather was born in Prague."]],
        ["Weather", ["It rains often."]],
    ],
}


def write_lines(path: Path, *records: object) -> Path:
    """Write records as JSON, a line each; those that are text already are written as they are."""
    path.write_text("".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records))
    return path
