"""Collect the documents of Debian packages that the questions and answers of this folder are about.

    python benchmarks/debian/get.py OUT_FOLDER             # of the packages that are installed
    python benchmarks/debian/get.py OUT_FOLDER --download  # fetches the others by apt-get, installs nothing

HTML and PDF are copied, manual pages are printed as text by groff (package groff-base), in lines of 100 characters and
without hyphens at their ends.
"""

import argparse
import gzip
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A package and which of its files are documents here."""

    name: str
    version: str
    """the version that questions and answers were written with; others differ in few places"""
    root: str = "usr/share/man"
    files: str = r"man\d/[^/]+\.\d\w*\.gz"
    """a pattern of paths below the root; aliases (links) are left out"""


PACKAGES = (
    Package("apache2-doc", "2.4.71-1~deb12u1", "usr/share/doc/apache2-doc/manual/en", r".+\.html"),
    Package("bash-doc", "5.2.15-2", "usr/share/doc/bash", r"bashref\.pdf"),
    Package("bind9-doc", "1:9.18.49-1~deb12u3", "usr/share/doc/bind9-doc/arm", r"[^/]+\.html"),
    # Its .txt files are the sources of its pages.
    Package("git-doc", "1:2.39.5-0+deb12u3", "usr/share/doc/git-doc", r".+\.html"),
    Package("postfix-doc", "3.7.11-0+deb12u1", "usr/share/doc/postfix/html", r"[^/]+\.html"),
    # Not the C API, the history and the indexes.
    Package(
        "python3.11-doc",
        "3.11.2-6+deb12u9",
        "usr/share/doc/python3.11/html",
        r"(faq|howto|library|reference|tutorial|using)/.+\.html",
    ),
    # Not the release notes, the C functions one by one, and lists for machines.
    Package("sqlite3-doc", "3.40.1-2+deb12u2", "usr/share/doc/sqlite3", r"(?!doc_|requirements|syntaxd)[^/]+\.html"),
    Package("apt", "2.6.1"),
    Package("coreutils", "9.1-1"),
    Package("dpkg", "1.21.22"),
    Package("e2fsprogs", "1.47.0-2"),
    Package("findutils", "4.9.0-4"),
    Package("grep", "3.8-5"),
    Package("manpages", "6.03-2"),
    Package("mount", "2.38.1-5+deb12u3"),
    Package("openssh-client", "1:9.2p1-2+deb12u6"),
    Package("passwd", "1:4.13+dfsg1-1+deb12u1"),
    Package("procps", "2:4.0.2-3"),
    Package("systemd", "252.39-1~deb12u2"),
    Package("tar", "1.34+dfsg-1.2+deb12u1"),
    Package("tmux", "3.3a-3"),
    Package("util-linux", "2.38.1-5+deb12u3"),
)
_GROFF = ("groff", "-K", "utf8", "-t", "-mandoc", "-Tutf8", "-P-cbou", "-rLL=100n", "-rLT=100n", "-dAD=l")
_NO_HYPHENS = b".nh\n.de hy\n..\n"
"""the second macro is for pages that switch hyphens on again"""


def installed_version(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    command = ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", name]
    status, _, version = subprocess.run(command, capture_output=True, text=True).stdout.partition(" ")
    return version if status == "installed" else None


def installed_files(name: str) -> list[Path]:
    """Return the files of an installed package that are on the disk; containers often leave the documents out."""
    lines = subprocess.run(["dpkg-query", "--listfiles", name], capture_output=True, text=True).stdout.splitlines()
    return [path for path in map(Path, lines) if path.is_file()]


def download(name: str, folder: Path) -> str | None:
    """Fetch a package by apt-get and unpack it into a folder; return its version, or None if there is none."""
    subprocess.run(["apt-get", "download", "--quiet=2", name], cwd=folder, capture_output=True)
    archive = next(folder.glob("*.deb"), None)
    if archive is None:
        return None
    subprocess.run(["dpkg-deb", "--extract", archive.name, "."], cwd=folder, check=True)
    field = subprocess.run(["dpkg-deb", "--field", archive, "Version"], capture_output=True, text=True, check=True)
    return field.stdout.strip()


def documents(package: Package, files: Iterable[Path], root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each document among the files of a package, and its name: the package and the path below its root."""
    below = root / package.root
    for path in sorted(files):
        if not path.is_relative_to(below) or path.is_symlink():
            continue
        name = str(path.relative_to(below))
        if re.fullmatch(package.files, name):
            yield path, f"{package.name}/{name.removesuffix('.gz')}{'.txt' * name.endswith('.gz')}"


def read_document(path: Path) -> bytes:
    """Return a document as it is copied; none is left of a manual page that only names another one."""
    if path.suffix != ".gz":
        return path.read_bytes()
    source = gzip.decompress(path.read_bytes())
    if source.startswith(b".so "):
        return b""
    return subprocess.run(_GROFF, input=_NO_HYPHENS + source, capture_output=True, check=True).stdout


def collect(package: Package, files: Iterable[Path], root: Path, out: Path) -> int:
    """Copy the documents of a package from its files; return how many there are."""
    count = 0
    for path, name in documents(package, files, root):
        data = read_document(path)
        if data:
            target = out / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            count += 1
    return count


def get(package: Package, out: Path, may_download: bool) -> str:
    """Collect the documents of one package; return a sentence about it."""
    version, count = installed_version(package.name), 0
    if version is not None:
        count = collect(package, installed_files(package.name), Path("/"), out)
    if not count and may_download:
        with tempfile.TemporaryDirectory() as folder:
            version = download(package.name, Path(folder))
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            count = collect(package, files, Path(folder), out)
    if version is None:
        remedy = "apt-get finds no such package." if may_download else f"apt-get install {package.name}, or --download."
        return f"{package.name}: skipped, it is not installed: {remedy}"
    if not count:
        return f"{package.name}: skipped, its documents are not on this machine (dpkg's path-exclude?): --download."
    other = "" if version == package.version else f", written with {package.version}"
    return f"{package.name} {version}{other}: {count} documents"


_INLINE = {
    *("a", "abbr", "acronym", "b", "bdo", "big", "cite", "code", "em", "font", "i", "img", "kbd", "q", "samp", "small"),
    *("span", "strong", "sub", "sup", "tt", "u", "var"),
}
_HIDDEN = {"script", "style", "title"}


class _Text(HTMLParser):
    """The text that a browser shows; each block and cell is apart from the next."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden += tag in _HIDDEN
        self.parts.append("" if tag in _INLINE else " ")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in _HIDDEN
        self.parts.append("" if tag in _INLINE else " ")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


def text_of(path: Path) -> str:
    """Return the text of a document in one line, single blanks between words: a quote of it occurs in there."""
    if path.suffix == ".pdf":
        import pypdfium2  # an extra

        with pypdfium2.PdfDocument(path) as pdf:
            text = "\n".join(page.get_textpage().get_text_bounded() for page in pdf)
        text = text.replace("\x02", "").replace("\ufffe", "")  # PDFium's signs for a hyphen at the end of a line
    else:
        text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".html":
        parser = _Text()
        parser.feed(text)
        text = "".join(parser.parts)
    return " ".join(text.split())


def main() -> None:
    """Collect the documents of all packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--download", action="store_true")
    options = parser.parse_args()
    missing = [tool for tool in ("dpkg-query", "groff") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"{' and '.join(missing)} not found: run this on Debian, with the package groff-base.")
    for package in PACKAGES:
        print(get(package, options.out, options.download))


if __name__ == "__main__":
    main()
