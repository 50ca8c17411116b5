"""Find phrases and names that are not plain technical English: python .ci/plain_english.py [PATH …].

A path is a Python file, a Markdown page, or a folder of them. Without paths it checks PAGES and ROOMS, and fails if one
of them has more than one such line in a hundred. A room joins the list when it has been rewritten. `--rooms` prints
the share of every room. CONTRIBUTING.md, "Style", has the rule.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rechain"
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "research/README.md")
ROOMS = (
    *("paper", "reader", "run", "system", "cli", "evaluation", "index", "formats/datasets", "formats/exports"),
    *("recoverer.py", "schema.py", "models.py", "errors.py"),
)
MOST = 0.01
"""the share of lines that may have such a phrase: some are right where they are"""

PHRASES = re.compile(
    r"\b(anew|whoever|whomever|nobody|everybody|anybody|beside|besides|thereby|wherein|whereof|of which there|"
    r"tells? (of|how|that|what|whether|which|a|the)\b|told|says? (of|how|what|whether|which)|knows? (of|how|what)|"
    r"holds? (what|the|a|an|no|it)\b|stands? (in|for|there|beside|at)|so many|such as may|what is (wanted|asked|meant)|"
    r"of what is|is no (number|more|folder|file)|as (it|they) (was|were|is|are) (found|written|made|given)|"
    r"goes on|go on with|of its own|for good|lets? (it|a|the|one)\b|leads? nowhere|look(s|ed)? for|at the most|"
    r"where (there|it|one|they|a|the|no|nothing|all|several) (is|are|has|have|was|were|can|may))\b",
    re.IGNORECASE,
)
PARTICIPLES = re.compile(r"^_*(told|said|made|asked|found|held|known|meant|wanted|given|taken|drawn|heard|shown)(_|$)")


def odd_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and phrase of each odd line: of a page any line, of code comments, texts and names."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from ((n, m[0]) for n, line in enumerate(text.splitlines(), 1) for m in PHRASES.finditer(line))
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for match in PHRASES.finditer(token.string):
                yield token.start[0] + token.string.count("\n", 0, match.start()), match[0]
    for node in ast.walk(ast.parse(text)):
        name = node.name if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) else None
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else name
        name = node.arg if isinstance(node, ast.arg) else name
        if name and PARTICIPLES.match(name):
            yield node.lineno, name  # type: ignore[attr-defined]


def check(path: Path, shows: bool) -> bool:
    """Print the odd lines of a file or folder if asked to or if they are too many; return whether they are few."""
    files = sorted(f for f in path.rglob("*") if f.suffix in (".py", ".md")) if path.is_dir() else [path]
    lines = sum(file.read_text(encoding="utf-8").count("\n") for file in files)
    odd = {(file, number): what for file in files for number, what in odd_lines(file)}
    is_plain = len(odd) <= MOST * lines
    if not is_plain or shows:
        print(f"{path.name}: {len(odd)} of {lines} lines are not in plain English ({len(odd) / max(lines, 1):.1%})")
    if (not is_plain or shows) and "--rooms" not in sys.argv:
        print("".join(f"  {file}:{number} {what}\n" for (file, number), what in sorted(odd.items())), end="")
    return is_plain


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:] if name != "--rooms"]
    if "--rooms" in sys.argv:
        paths = sorted(path for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py")
    defaults = [ROOT / page for page in PAGES] + [SOURCE / room for room in ROOMS]
    results = [check(path, bool(paths)) for path in paths or defaults]  # all are printed, also after a failure
    sys.exit(not all(results))
