"""What becomes of documents: whether things stay together, what is navigation, which titles are file names, how fast.

    python benchmarks/conversion.py /usr/share/doc/git/html
    python benchmarks/conversion.py FOLDER --before /path/to/another/checkout/src

Terms and definitions, headers and rows, sentences and code, and introductions and first items are taken from the tree
of every HTML page, apart from the converters. They are kept whole if one passage contains both: the term, header, or
last 40 letters before, and the first 40 letters after. With --before the passages of another version of the package are
counted in the same run. Takes a few minutes for 1,000 pages.
"""

import gzip
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from lxml import html

LETTERS = 40
MOST_LINKED = 0.8
"""of the letters of a passage, of which one with more is navigation alone"""
FURNITURE = "ancestor-or-self::nav or ancestor-or-self::footer or ancestor-or-self::form or ancestor-or-self::script"
TITLED = (".html", ".htm", ".1", ".3", ".5", ".7", ".8", ".rst", ".md")
Pair = tuple[str, str, str]
"""kind, end of what introduces, beginning of what is introduced"""


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text.casefold()))


def text_of(node: Any) -> str:
    """Return the text of an element."""
    return "" if node is None else node.text_content()


def pairs_of(tree: Any) -> Iterator[Pair]:
    """Yield what belongs together on a page."""
    for dl in tree.iter("dl"):
        term = None
        for child in dl:
            if child.tag == "dd" and term is not None:
                yield "definition", letters(text_of(term)), letters(text_of(child))[:LETTERS]
            term = child if child.tag == "dt" else None
    for table in tree.iter("table"):
        rows = list(table.iter("tr"))
        if len(rows) > 1 and rows[0].findall("th") and not rows[0].findall("td") and not table.xpath("ancestor::table"):
            for row in rows[1:]:
                cells = [letters(text_of(cell)) for cell in row]
                yield "row", letters(text_of(rows[0])), max(cells, key=len, default="")[:LETTERS]
    for kind, tag in (("code", "pre"), ("list", "ol"), ("list", "ul")):
        for node in tree.iter(tag):
            before = node.getprevious()
            if before is None and tag == "pre" and node.getparent() is not None:
                before = node.getparent().getprevious()
            if before is not None and before.tag == "p":
                yield kind, letters(text_of(before))[-LETTERS:], letters(text_of(node))[:LETTERS]


def tree_of(path: Path) -> Any:
    """Return the tree of a page without what is marked as navigation."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    tree = html.fromstring(content or b"<p></p>", parser=html.HTMLParser(encoding="utf-8"))
    for node in tree.xpath(f"//*[{FURNITURE}]|//*[@class='toc']|//*[@role='navigation']|//comment()"):
        if node.getparent() is not None:
            node.drop_tree()
    return tree


def is_navigation(text: str, links: frozenset[str]) -> bool:
    """Return whether a passage is hardly more than the texts of links."""
    parts = [letters(part) for line in text.splitlines() for part in line.split(" | ")]
    linked = sum(len(part) for part in parts if part in links or part.lstrip("0123456789") in links)
    return linked > MOST_LINKED * sum(map(len, parts))


def count(folder: Path, passages: Sequence[dict[str, Any]]) -> Counter[str]:
    """Return the figures of passages."""
    figures: Counter[str] = Counter(passages=len(passages))
    of_file: dict[str, list[dict[str, Any]]] = defaultdict(list)
    seen: set[str] = set()
    for passage in passages:
        of_file[passage["source"]].append(passage)
        text = letters(passage["text"])
        figures["repeated"] += text in seen
        seen.add(text)
        name = Path(passage["source"].removesuffix(".gz"))
        figures["titled by file"] += passage["title"].split(" > ")[0] == name.stem and name.suffix in TITLED
    for source, own in of_file.items():
        if not source.removesuffix(".gz").endswith((".html", ".htm")):
            continue
        path = folder / source if folder.is_dir() else folder
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        links = frozenset(letters(text_of(a)) for a in html.fromstring(content).iter("a") if a.get("href"))
        figures["navigation"] += sum(is_navigation(passage["text"], links) for passage in own)
        texts = [letters(f"{passage['title']} {passage['text']}") for passage in own]
        for kind, first, second in set(pairs_of(tree_of(path))):
            if first and second and any(second in text for text in texts):
                figures[f"{kind}s"] += 1
                figures[f"{kind}s whole"] += any(first in text and second in text for text in texts)
    return figures


def read(folder: Path, package: str) -> tuple[list[dict[str, Any]], float]:
    """Return the passages that a version of the package makes of a folder, and the seconds of indexing."""
    environment = {**os.environ, "PYTHONPATH": package}
    with TemporaryDirectory() as place:
        command = [sys.executable, __file__, str(folder), "--index", f"{place}/index"]
        run = subprocess.run(command, env=environment, capture_output=True)
    if run.returncode:
        sys.exit(run.stderr.decode())
    seconds, *passages = map(orjson.loads, run.stdout.splitlines())
    return passages, seconds


def index(folder: Path, place: Path) -> None:
    """Index a folder with this version of the package, and print the seconds and the passages."""
    from rechain.index import Index, build_index

    before = time.perf_counter()
    build_index([folder], place)
    print(time.perf_counter() - before, flush=True)
    known = Index(place)
    for name in known:
        passage = known[name].model_dump()
        if "source" in passage:
            sys.stdout.buffer.write(orjson.dumps(passage) + b"\n")


def share(figures: Counter[str], part: str, whole: str) -> str:
    """Return a share and of how many it is."""
    return f"{figures[part] / figures[whole]:7.1%} of {figures[whole]}" if figures[whole] else "      -"


def main(options: Namespace) -> None:
    """Print the figures of each version."""
    packages = {"now": str(Path(__file__).parent.parent / "src")}
    if options.before:
        packages = {"before": options.before, **packages}
    for name, package in packages.items():
        passages, seconds = read(options.folder, package)
        figures = count(options.folder, passages)
        print(f"{name}: {len(passages)} passages, {len(passages) / seconds:.0f} passages/s, {seconds:.1f} s")
        for kind in ("definitions", "rows", "codes", "lists"):
            print(f"  {kind + ' whole':<20} {share(figures, f'{kind} whole', kind)}")
        for kind in ("navigation", "repeated", "titled by file"):
            print(f"  {kind:<20} {share(figures, kind, 'passages')}")


if __name__ == "__main__":
    arguments = ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--before", help="the folder src of another version, which is counted as well")
    arguments.add_argument("--index", type=Path, help="index the folder there and print the passages of this version")
    options = arguments.parse_args()
    index(options.folder, options.index) if options.index else main(options)
