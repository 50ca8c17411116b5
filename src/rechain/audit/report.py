"""The page and the JSON of an audit.

The page is one file that needs nothing else: its style and its few lines of script stand in it, and its
Content-Security-Policy allows these two by their digests and nothing besides. It is a jinja2 template, so that no text
of a log can become HTML; jinja2 is a dependency of torch and so of every install.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from typing import Any, BinaryIO, NamedTuple, get_args
from urllib.parse import urlencode

import orjson

from rechain.audit.answers import AuditedAnswer
from rechain.audit.evidence import Evidence, evidence_of
from rechain.audit.summary import BINS, GIVEN, Counts, Summary
from rechain.evaluation.statistics import share_with_interval
from rechain.schema import VERDICTS, Recovered, Verdict
from rechain.system.provenance import Facts

_MOST_TAGS = 30
"""tags of the chart, the most frequent; the JSON has all"""
_INLINE = ("style.css", "script.js")
_LONGEST_QUESTION = 1_000
"""characters that are shown; a prompt with all its documents is a question, too"""
_SURE = 0.9
"""evidence of what is supported with less probability is shown at once, the rest after a click"""


class Listed(NamedTuple):
    """An answer that the page lists, without the passages that it does not show."""

    place: int
    """in the log, from 1"""
    id: str | None
    question: str
    """or, where it could not be read, its place"""
    recovered: Recovered
    reason: str
    tags: Sequence[str]
    day: str | None
    evidence: Evidence | None

    @classmethod
    def of(cls, place: int, answered: AuditedAnswer) -> "Listed":
        """Return what the page shows of an answer."""
        question = getattr(answered.content, "question", answered.where)
        if len(question) > _LONGEST_QUESTION:
            question = f"{question[:_LONGEST_QUESTION]}…"
        facts = answered.recovered, answered.reason, answered.tags, answered.day
        return cls(place, answered.recovered.id, question, *facts, evidence_of(answered))

    @property
    def is_doubtful(self) -> bool:
        """Whether its evidence is shown at once."""
        chance = self.recovered.verdict_probability
        return self.recovered.verdict != "supported" or chance is None or chance < _SURE


class _Kept(NamedTuple):
    doubt: tuple[int, float]
    place: int
    listed: Listed


@dataclass
class MostDoubtful:
    """Keeps the most doubtful of many answers, and no more of them in memory than twice as many as are wanted."""

    most: int
    _kept: list[_Kept] = field(default_factory=list)
    _bar: tuple[int, float] | None = None
    """that of the last which would be kept; answers of no less doubt than this alone are looked at"""

    def add(self, place: int, answered: AuditedAnswer) -> None:
        """Take an answer, which has this place in the log, if it is doubtful enough."""
        if not self.most or (self._bar is not None and answered.doubt > self._bar):
            return
        self._kept.append(_Kept(answered.doubt, place, Listed.of(place, answered)))
        if len(self._kept) >= 2 * self.most:
            self._cut()

    def _cut(self) -> None:
        self._kept = sorted(self._kept, key=lambda kept: kept[:2])[: self.most]
        if self._kept and len(self._kept) == self.most:
            self._bar = self._kept[-1].doubt

    def listed(self) -> list[Listed]:
        """Return the most doubtful answers, in that order."""
        self._cut()
        return [kept.listed for kept in self._kept]


class Bar(NamedTuple):
    """A row of a chart: counts of verdicts, each with where its part of the bar begins and how wide it is, of 100."""

    label: str
    total: int
    parts: Sequence[tuple[Verdict, float, float]]
    supported: str


def bars(counted: Mapping[str, Counts]) -> list[Bar]:
    """Return the rows of a chart of verdicts, each as wide as its share of the most frequent one."""
    widest = max((counts.total() for counts in counted.values()), default=1)
    return [_bar(label, counts, widest) for label, counts in counted.items()]


def _bar(label: str, counts: Counts, widest: int) -> Bar:
    parts, at = list[tuple[Verdict, float, float]](), 0.0
    for verdict in get_args(Verdict):
        width = 100 * counts[verdict] / widest
        if width:
            parts.append((verdict, round(at, 2), round(width, 2)))
        at += width
    given = sum(counts[verdict] for verdict in GIVEN)
    return Bar(label, counts.total(), parts, f"{100 * counts['supported'] / given:.0f} %" if given else "–")


def write_page(
    file: BinaryIO, title: str, summary: Summary, doubtful: MostDoubtful, made_by: Facts, serve_url: str | None = None
) -> None:
    """Write the page; where `rechain serve` shows the same questions, each answer links to it."""
    listed = doubtful.listed()
    frequent = sorted(summary.by_tag.items(), key=lambda item: (-item[1].total(), item[0]))[:_MOST_TAGS]
    total = summary.verdicts.total()
    context = {
        "title": title,
        "summary": summary,
        "rows": [(v, summary.verdicts[v], share_with_interval(summary.verdicts[v], total)) for v in get_args(Verdict)],
        "total": total,
        "bins": [(n / BINS, count) for n, count in enumerate(summary.confidences)] if any(summary.confidences) else [],
        "tags": bars(dict(frequent)),
        "days": bars(summary.by_day),
        "listed": listed,
        "tags_listed": sorted({tag for one in listed for tag in one.tags}),
        "made_by": orjson.dumps(made_by, option=orjson.OPT_INDENT_2).decode(),
        "version": made_by.get("rechain"),
        "link": partial(_link, serve_url) if serve_url else None,
    }
    for piece in _template().generate(context):
        file.write(piece.encode())


def _link(serve_url: str, name: str) -> str:
    """Return where `rechain serve` shows a question."""
    return f"{serve_url.rstrip('/')}/question?{urlencode({'id': name})}"


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    texts = {name: files(__package__).joinpath("templates", name).read_text("utf-8") for name in _INLINE}
    environment = Environment(
        loader=PackageLoader("rechain.audit"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.1f} %"
    digests = {f"{name.partition('.')[2]}_digest": _digest(text) for name, text in texts.items()}
    environment.globals |= {"verdict_words": VERDICTS, "style": texts["style.css"], "script": texts["script.js"]}
    environment.globals |= digests
    return environment.get_template("report.html")


def _digest(text: str) -> str:
    """Return the digest by which a Content-Security-Policy allows an inline text."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class JsonReport:
    """Writes `{"records": […], "summary": {…}}`, a line a record: the summary is known when all were counted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._before = b'{"records":[\n'

    def add(self, answered: AuditedAnswer) -> None:
        """Write the record of an answer."""
        self._file.write(self._before + orjson.dumps(answered.to_dict()))
        self._before = b",\n"

    def finish(self, summary: Summary, made_by: Facts) -> None:
        """Write what was counted, and what made it."""
        start = b"" if self._before.startswith(b",") else self._before
        end = {"summary": summary.to_dict(), "made_by": made_by}
        self._file.write(start + b"\n]," + orjson.dumps(end)[1:] + b"\n")


def lines_of(summary: Summary) -> Iterator[str]:
    """Yield the counts as lines for people."""
    counts = [f"{summary.verdicts[verdict]} {words}" for verdict, words in VERDICTS.items()]
    yield f"{summary.answers} answer{'s' * (summary.answers != 1)}: {', '.join(counts)}."
    if summary.errors:
        errors = ", ".join(f"{count} {code}" for code, count in summary.errors.most_common())
        yield f"Not judged: {errors}."
