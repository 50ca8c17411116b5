"""rechain index: from documents to an index in which passages are found."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rechain.cli.options import Log
from rechain.cli.tables import plural
from rechain.errors import RechainError
from rechain.system.log import RunLog, bar, print_records

if TYPE_CHECKING:
    from rechain.formats.documents import Refusal
    from rechain.index import Build, IndexInfo

_MOST_SHOWN = 20
"""files or rows that are named one by one: a collection may have a million bad rows"""


def index(
    sources: Annotated[
        list[Path] | None,
        Argument(
            metavar="SOURCE…",
            help="Folders and files: text, Markdown, HTML, PDF, Word; passages as JSON lines or Parquet.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="INDEX", help="The folder of the index, a new one or one to bring up to date.")
    ] = None,
    info: Annotated[bool, Option("--info", help="Print what is in the index, and build nothing.")] = False,
    passage_words: Annotated[
        int | None,
        Option(min=20, max=5000, help="Words of the passages of a document, about (150, or as the index has)."),
    ] = None,
    workers: Annotated[
        int | None, Option(min=0, help="Processes that convert documents, else one a core; 0: none but this one.")
    ] = None,
    log: Log = None,
) -> None:
    """Index documents, so that passages are found for every question; run again, take in what has changed.

    Example: rechain index handbook/ --out handbook.index && rechain recover log.jsonl --corpus handbook.index

    The index mirrors the SOURCEs: passages that were removed from them are dropped. If stopped, it stays unchanged.
    """
    from rechain.formats.documents import SplitSettings
    from rechain.index import BuildSettings, build_index
    from rechain.index.index import POINTER, check_files, read_info

    if info:
        folder = out or (sources[0] if sources and len(sources) == 1 else None)
        if folder is None or (out and sources):
            raise RechainError("--info takes one index and nothing else: rechain index --info --out INDEX.")
        content = read_info(folder)
        check_files(folder, content)
        _print_info(folder, content)
        return
    if not sources or out is None:
        raise RechainError("name what to index and where the index goes: rechain index SOURCE… --out INDEX.")
    is_update = (out / POINTER).exists()
    split = None if passage_words is None else SplitSettings(passage_words)
    with RunLog(log, "index", {"input": " ".join(map(str, sources)), "out": str(out)}) as run:
        refused: Counter[str] = Counter()
        """files of kinds that are not read, by suffix, and under "" everything else that is left out"""

        def refuse(refusal: "Refusal") -> None:
            refused[refusal.suffix] += 1
            if not refusal.suffix and refused[""] <= _MOST_SHOWN:
                run.note(refusal.message)

        with bar("Indexing", "passages") as show:

            def report(share: float, passages: int) -> None:
                run.share, run.doing = share, f"{passages} passages"
                show(share, passages, "")

            settings = BuildSettings(split, workers)
            build = build_index(sources, out, settings, refuse, report)
        if (more := refused.pop("", 0) - _MOST_SHOWN) > 0:
            run.note(f"{more} more files or rows are left out for such reasons.")
        if refused:
            kinds = ", ".join(f"{number} {suffix}" for suffix, number in refused.most_common(_MOST_SHOWN))
            run.note(f"Files of kinds that are not read are left out: {kinds}.")
        if is_update:
            for what, names in (("New", build.new_files), ("Changed", build.changed_files), ("Gone", build.gone_files)):
                if names:
                    run.note(f"{what}: {_names(names)}.")
        run.end(_summary(build))


def _names(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return f"{', '.join(names[:_MOST_SHOWN])}{more}"


def _summary(build: "Build") -> str:
    info = build.info
    whole = f"{plural(info.passages, 'passage')} of {plural(info.sources, 'file')}"
    left_out = f", {build.refusals} left out" if build.refusals else ""
    changes = f"{build.added} new, {build.dropped} dropped; {plural(build.files, 'file')} read{left_out}"
    return f"{whole}: {changes}. Stamp {info.stamp}."


def _print_info(folder: Path, info: "IndexInfo") -> None:
    from rechain.index import Index

    size = sum(info.files.values())
    rows = [
        ("passages", str(info.passages)),
        ("files", str(info.sources)),
        ("size", f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"),
        ("built", info.built),
        ("stamp", info.stamp),
        *((name.replace("_", " "), str(value)) for name, value in info.settings.items()),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{folder}", *(f"  {name:<{width}}  {value}" for name, value in rows)]
    sources = Index(folder).sources()
    lines += [f"  {passages:>8}  {kind:<10}  {name}" for name, kind, passages in sources[:_MOST_SHOWN]]
    if len(sources) > _MOST_SHOWN:
        lines.append(f"  and {len(sources) - _MOST_SHOWN} more files")
    print_records("\n".join(lines) + "\n")
