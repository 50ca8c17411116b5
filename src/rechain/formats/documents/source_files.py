"""The files that hold documents or passages: found in folders, named, and never outside the folder that was given.

Symbolic links are followed only to what lies in the same SOURCE and was not found under its own name, so that links in
a circle end, and a link in a downloaded folder cannot lead to a user's other files.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from rechain.errors import RechainError

_SUFFIXES = {
    "text": (".txt", ".text", ".adoc", ".org", ".log"),
    "restructured": (".rst", ".rest", ".rst.txt"),  # the last is what Sphinx publishes
    "markdown": (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"),
    "html": (".html", ".htm", ".xhtml"),
    "pdf": (".pdf",),
    "word": (".docx", ".docm", ".dotx"),
    "collection": (
        *(".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz", ".parquet"),
        *(".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    ),
}
KINDS = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes}
"""the kind of a file by the end of its name"""
_PACKED = ".gz"
_UNPACKED_KINDS = frozenset(("text", "markdown", "restructured", "html", "pdf", "manual"))
_MANUAL = re.compile(r"\.[1-9](?:[a-z][a-z0-9]{0,9})?")
"""the ending of a manual page: the section of the manual, and what it is about, such as .3pm"""
# what a user does about kinds of documents that are not read
_REMEDIES = {
    ".doc": "save it as .docx",
    ".odt": "save it as .docx or PDF",
    ".rtf": "save it as .docx or PDF",
    ".ppt": "save it as PDF",
    ".pptx": "save it as PDF",
    ".xls": "save it as CSV or PDF",
    ".xlsx": "save it as CSV or PDF",
    ".epub": "convert it to HTML (pandoc, ebook-convert)",
    ".asciidoc": "convert it to HTML (asciidoctor)",
    ".asc": "convert it to HTML (asciidoctor) if it is AsciiDoc",
    ".tex": "convert it to HTML (pandoc) or PDF",
    ".texi": "convert it to HTML (makeinfo --html)",
    ".ipynb": "convert it to Markdown (jupyter nbconvert --to markdown)",
}
_READ = "text, Markdown, reStructuredText, manual pages, HTML, PDF, .docx, JSON lines and Parquet are"
_INDEX = "index.json"
_GENERATION = re.compile(r"generation-\d+")
"""a folder inside that of an index (`rechain.index`): its files are no documents, and change with every build"""
# Files and folders of programs; and what Word leaves beside a document that is open.
_HIDDEN = (".", "~$")
_UNREADABLE = "\ufffd"
"""stands for the bytes of a name that are no text: such a name could not be written into an index"""


class Refusal(NamedTuple):
    """Something that was not taken in; the rest goes on."""

    name: str
    """the file, as in `Source.name`, and the line or row of one record of a collection"""
    message: str
    """one sentence that begins with the name: what is wrong, and what to do"""
    suffix: str = ""
    """the ending of a file of a kind that is not read: a folder may hold thousands of pictures, which are counted"""
    may_pass: bool = False
    """whether the same file may be read later, as what is wrong lies elsewhere: a library or a permission is missing"""


@dataclass(frozen=True)
class Source:
    """One file that holds a document or a collection of passages."""

    name: str
    """unique and stable: the path below the SOURCE that was given, with slashes"""
    path: Path
    kind: str
    """text, markdown, restructured (reStructuredText), html, pdf, word, manual (a page of one) or collection"""
    size: int
    """bytes"""
    modified_ns: int


def find_sources(sources: Sequence[Path]) -> Iterator[Source | Refusal]:
    """Yield the files of SOURCEs, which are files or folders, in an order that only their names decide.

    Hidden files and folders, and indexes, are left out without a word; what else cannot be read is a Refusal. Raises
    RechainError at once if a SOURCE does not exist.
    """
    roots: list[Path] = []
    for source in sources:
        try:
            roots.append(source.resolve(strict=True))  # a user who names a link wants what it leads to
        except (OSError, RuntimeError) as error:  # a circle of links is a RuntimeError before Python 3.13
            reason = getattr(error, "strerror", None) or "its links lead in a circle"
            raise RechainError(f"{source} cannot be read: {reason}; name a file or folder that exists.") from error
    return _Search().files(roots)


def _prefixes(roots: Sequence[Path]) -> list[str]:
    """Return what the names of each SOURCE's files begin with: nothing where there is but one SOURCE."""
    if len(roots) == 1:
        return [""]
    prefixes: list[str] = []
    for root in roots:
        name = _readable(root.name) or "root"
        numbered = (f"{name}.{number}" for number in count(2))
        prefixes.append(next(prefix for prefix in chain([name], numbered) if prefix not in prefixes))
    return prefixes


class _Search:
    """The walk through all SOURCEs; what lies in two of them is found once."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()  # device and inode: what a file is, however many names lead to it
        self._names: Counter[str] = Counter()  # of names with characters that are no text, of which two may look alike

    def files(self, roots: Sequence[Path]) -> Iterator[Source | Refusal]:
        """Yield the files of all SOURCEs."""
        for root, prefix in zip(roots, _prefixes(roots), strict=True):
            if root.is_dir():
                yield from self._folder(root, prefix)
            else:
                # a file that is named by itself is taken for text where its name does not tell
                yield from self._file(root, prefix or _readable(root.name), _kind_of(root.name) or "text")

    def _folder(self, root: Path, prefix: str) -> Iterator[Source | Refusal]:
        """Yield the files of a folder and then those that only links lead to, so that a file keeps its own name."""
        links: list[tuple[Path, str]] = []
        yield from self._tree(root, prefix, links)
        while links:
            path, name = links.pop(0)
            yield from self._link(path, name, root, links)

    def _link(self, path: Path, name: str, root: Path, links: list[tuple[Path, str]]) -> Iterator[Source | Refusal]:
        """Yield what a symbolic link leads to, unless that lies outside of its SOURCE or was found already."""
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            yield Refusal(name, f"{name} is a link that leads nowhere; remove it or restore what it leads to.")
            return
        if not target.is_relative_to(root):
            yield Refusal(
                name, f"{name} is a link that leads out of {root}; name what it leads to as a SOURCE of its own."
            )
        elif target.is_dir():
            yield from self._tree(target, name, links)
        else:
            yield from self._file(target, name, _kind_of(name) or _kind_of(target.name))

    def _tree(self, folder: Path, prefix: str, links: list[tuple[Path, str]]) -> Iterator[Source | Refusal]:
        """Yield the files below a folder, and put its links aside. A stack: folders may be nested without end."""
        stack: list[tuple[Path, str]] = [(folder, prefix)]
        while stack:
            path, name = stack.pop()
            try:
                if not self._is_new(path.stat()):
                    continue
                with os.scandir(path) as entries:
                    shown = sorted((e for e in entries if not e.name.startswith(_HIDDEN)), key=lambda entry: entry.name)
                if _is_index(shown):
                    continue
            except OSError as error:
                shown_name = name or str(path)
                yield Refusal(shown_name, f"{shown_name} cannot be read: {error.strerror}; its files are left out.")
                continue
            for entry in shown:
                entry_name = self._distinct(f"{name}/{_readable(entry.name)}".lstrip("/"))
                if entry.is_symlink():
                    links.append((Path(entry.path), entry_name))
                elif not entry.is_dir(follow_symlinks=False):
                    yield from self._file(Path(entry.path), entry_name, _kind_of(entry.name))
            folders = [entry for entry in shown if entry.is_dir(follow_symlinks=False)]
            stack += [(Path(e.path), f"{name}/{_readable(e.name)}".lstrip("/")) for e in reversed(folders)]

    def _file(self, path: Path, name: str, kind: str | None) -> Iterator[Source | Refusal]:
        """Yield a file that was not found before."""
        try:
            status = path.lstat()
        except OSError as error:
            yield Refusal(name, f"{name} cannot be read: {error.strerror}.")
            return
        if not self._is_new(status):
            return
        if not stat.S_ISREG(status.st_mode):
            yield Refusal(name, f"{name} is no regular file but a device, a pipe or a socket; it is left out.")
        elif kind is None:
            suffix = Path(name).suffix
            remedy = _REMEDIES.get(suffix.casefold(), _READ)
            message = f"{name} is left out: files of the kind {suffix} are not read; {remedy}."
            yield Refusal(name, message, suffix.casefold())
        else:
            yield Source(name, path, kind, status.st_size, status.st_mtime_ns)

    def _is_new(self, status: os.stat_result) -> bool:
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self._seen
        self._seen.add(identity)
        return is_new

    def _distinct(self, name: str) -> str:
        """Return the name, with a number if another looks the same."""
        if _UNREADABLE not in name:
            return name
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name}.{self._names[name]}"


def _is_index(entries: Sequence[os.DirEntry[str]]) -> bool:
    """Return whether a folder is an index, by what it holds."""
    has_generation = any(_GENERATION.fullmatch(entry.name) and entry.is_dir() for entry in entries)
    return has_generation and any(entry.name == _INDEX for entry in entries)


def _kind_of(name: str) -> str | None:
    """Return the kind of a file; one without any ending, such as README, is taken for text."""
    name = name.casefold()
    suffixes = Path(name).suffixes
    if not suffixes:
        return "text"
    if kind := KINDS.get("".join(suffixes[-2:])) or KINDS.get(suffixes[-1]):
        return kind
    if suffixes[-1] == _PACKED:
        kind = _kind_of(name.removesuffix(_PACKED))
        return kind if kind in _UNPACKED_KINDS else None
    return "manual" if _MANUAL.fullmatch(suffixes[-1]) else None


def _readable(name: str) -> str:
    """Return a file's name as text of one line."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return text if text.isprintable() else "".join(c if c.isprintable() else _UNREADABLE for c in text)
