"""The page and the JSON of an audit.

The page is one file that needs nothing else: its style and its few lines of script are inline, and its
Content-Security-Policy allows these two by their digests and nothing else. It is a jinja2 template, so that no text
of a log can become HTML."""

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappush, heapreplace
from importlib.resources import files
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple, get_args
from urllib.parse import urlencode

import orjson

from rechain.evaluation.statistics import Figure, share_with_interval
from rechain.schema import VERDICTS, Chain, Claim, Link, Passage, Question, Recovered, Shape, Verdict
from rechain.system.provenance import Facts
from rechain.text.highlights import ANSWER, CLAIM, QUESTION, Highlighter, Mark, Piece, cut
from rechain.text.passage_views import PassageView
from rechain.text.words import Span
from rechain.web.audit_answers import AuditedAnswer

BINS = 10
"""of the histogram of confidence"""
GIVEN: tuple[Verdict, ...] = ("supported", "partly", "unsupported")
"""verdicts on answers that were given"""
_MOST_NAMES = 10_000
"""tags that are counted apart: a log may have one of its own for every record"""
OTHER = "other"
"""stands for tags beyond that number"""
_MOST_BARS = 60
"""days that a chart has room for; more are counted by month, and more months by year"""

Counts = Counter[str]


class Summary:
    """Counts that grow with the answers; its memory does not."""

    def __init__(self) -> None:
        self.answers = 0
        self.verdicts: Counts = Counter()
        self.errors: Counts = Counter()
        """questions without a verdict, by the code of their error"""
        self.confidences = [0] * BINS
        """best chains by confidence"""
        self.by_tag: dict[str, Counts] = {}
        self._by_day: dict[str, Counts] = {}

    def add(self, answer: AuditedAnswer) -> None:
        """Count an answer."""
        self.answers += 1
        if answer.verdict is None:
            error = answer.recovered.error
            self.errors[error.code if error else "no_verdict"] += 1
            return
        self.verdicts[answer.verdict] += 1
        if (confidence := answer.confidence) is not None:
            self.confidences[min(int(confidence * BINS), BINS - 1)] += 1
        for tag in answer.tags:
            name = tag if tag in self.by_tag or len(self.by_tag) < _MOST_NAMES else OTHER
            self.by_tag.setdefault(name, Counter())[answer.verdict] += 1
        if answer.day:
            self._by_day.setdefault(answer.day, Counter())[answer.verdict] += 1

    @property
    def given(self) -> int:
        """How many answers were given and judged."""
        return sum(self.verdicts[verdict] for verdict in GIVEN)

    @property
    def supported(self) -> Figure | None:
        """The share of the answers given that are supported."""
        return share_with_interval(self.verdicts["supported"], self.given)

    @property
    def by_day(self) -> Mapping[str, Counts]:
        """Verdicts by day in their order, by month or year where there are many days."""
        for length in (len("2026-05-14"), len("2026-05"), len("2026")):
            periods: dict[str, Counts] = {}
            for day, counts in sorted(self._by_day.items()):
                periods.setdefault(day[:length], Counter()).update(counts)
            if len(periods) <= _MOST_BARS:
                break
        return periods

    def to_dict(self) -> dict[str, Any]:
        """Return all counts, as JSON has them."""
        total = sum(self.verdicts.values())
        shares = {verdict: share_with_interval(self.verdicts[verdict], total) for verdict in get_args(Verdict)}
        return {
            "answers": self.answers,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in get_args(Verdict)},
            "shares": {verdict: share and share._asdict() for verdict, share in shares.items()},
            "supported of the answers given": self.supported and self.supported._asdict(),
            "errors": dict(self.errors),
            "confidence": [
                {"from": number / BINS, "to": (number + 1) / BINS, "chains": count}
                for number, count in enumerate(self.confidences)
            ],
            "by_tag": {tag: dict(counts) for tag, counts in sorted(self.by_tag.items())},
            "by_day": {day: dict(counts) for day, counts in sorted(self._by_day.items())},
        }


_LONGEST_TEXT = 2_000
"""characters that are shown of a passage or an answer, around what is marked: a page of 1,000 answers stays below some
20 megabytes"""
_BEFORE = 500
"""characters that are shown before the first mark of a long text"""
_MOST_OTHERS = 3
"""passages that hold a claim and are on no chain"""
_ELLIPSIS = Piece("…", ())


@dataclass(frozen=True)
class Step:
    """A passage, cut where something is marked, and the link that leads on from it."""

    title: str
    pieces: Sequence[Piece]
    link: Link | None = None
    leads_to: str | None = None
    """in a graph, the name of the passage to which it leads"""


@dataclass(frozen=True)
class Evidence:
    """The best chain of an answer and the other passages that hold a claim of it."""

    answer: Sequence[Piece]
    """the answer; the roles of its pieces are verdicts"""
    claims: Sequence[Claim]
    shape: Shape | None
    steps: Sequence[Step]
    others: Sequence[Step]
    """passages that hold a claim and are not on the chain"""


def evidence_of(answered: AuditedAnswer) -> Evidence | None:
    """Return what an answer rests on; None where its question could not be read."""
    question, recovered = answered.content, answered.recovered
    if not isinstance(question, Question):
        return None
    best = recovered.chains[0] if recovered.chains else None
    highlighter = Highlighter.of_chain(question, best, recovered.claims)
    passages = {passage.id: passage for passage in question.passages}
    on_chain = [name for name in best.passages if name in passages] if best else []  # a passage may be missing
    others = dict.fromkeys(claim.passage for claim in recovered.claims if claim.passage not in on_chain)
    return Evidence(
        answer=_marked_answer(question.answer, recovered.claims),
        claims=recovered.claims,
        shape=best.shape if best else None,
        steps=_steps(best, passages, highlighter) if best else [],
        others=[_step(passages[name], highlighter) for name in others if name in passages][:_MOST_OTHERS],
    )


def _steps(chain: Chain, passages: Mapping[str, Passage], highlighter: Highlighter) -> list[Step]:
    """Return the passages of a chain, each with its link; a passage of a chain from a file may be missing."""
    links = {before: (after, link) for (before, after), link in zip(chain.between, chain.joining_links, strict=True)}
    steps = []
    for place, name in enumerate(chain.passages):
        if name not in passages:
            continue
        steps.append(_step(passages[name], highlighter))
        after, link = links.get(place, (place, None))
        if link and (target := passages.get(chain.passages[after])):
            leads_to = _name(target) if chain.shape == "graph" else None
            steps[-1] = replace(steps[-1], link=link, leads_to=leads_to)
    return steps


def _name(passage: Passage) -> str:
    return passage.title or passage.id


def _step(passage: Passage, highlighter: Highlighter) -> Step:
    return Step(_name(passage), _shortened(passage.text, highlighter.marks(PassageView(passage))))


def _marked_answer(answer: str, claims: Sequence[Claim]) -> list[Piece]:
    """Return an answer cut at its claims, where these stand in it as they are; markup may have been taken away."""
    marks, after = [], 0
    for claim in claims:
        start = answer.find(claim.text, after)
        if start >= 0 and claim.text:
            after = start + len(claim.text)
            marks.append(Mark(start, after, claim.verdict))
    return _shortened(answer, marks)


def _shortened(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Cut a text at its marks; of a long one only what stands around the first of them."""
    start, end = _window(text, marks)
    kept = [
        Mark(max(mark.start, start) - start, min(mark.end, end) - start, mark.role)
        for mark in marks
        if mark.start < end and mark.end > start
    ]
    pieces = cut(text[start:end], kept)
    return [*([_ELLIPSIS] if start else []), *pieces, *([_ELLIPSIS] if end < len(text) else [])]


def _window(text: str, marks: Sequence[Mark]) -> Span:
    """Return which part of a text is shown: what stands around an answer or claim or, without, any link."""
    if len(text) <= _LONGEST_TEXT:
        return 0, len(text)
    telling = [mark for mark in marks if mark.role in (ANSWER, CLAIM)]
    first = next(iter(telling or [mark for mark in marks if mark.role != QUESTION]), None)
    start = max(min(first.start - _BEFORE, len(text) - _LONGEST_TEXT), 0) if first else 0
    return start, start + _LONGEST_TEXT


_MOST_TAGS = 30
"""tags of the chart, the most frequent; the JSON has all"""
_INLINE = ("audit.css", "audit.js")
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


class MostDoubtful:
    """Keeps the most doubtful of many answers, and no more of them in memory than are wanted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[tuple[float, ...], Listed]] = []
        """a heap, the least doubtful first"""

    def add(self, place: int, answered: AuditedAnswer) -> None:
        """Take an answer, which has this place in the log, if it is doubtful enough."""
        key = tuple(-number for number in (*answered.doubt, place))
        if len(self._kept) < self._most:
            heappush(self._kept, (key, Listed.of(place, answered)))
        elif self._most and key > self._kept[0][0]:
            heapreplace(self._kept, (key, Listed.of(place, answered)))

    def listed(self) -> list[Listed]:
        """Return the most doubtful answers, in that order."""
        return [listed for _, listed in sorted(self._kept, key=itemgetter(0), reverse=True)]


class Bar(NamedTuple):
    """A row of a chart: counts of verdicts, each with where its part of the bar begins and how wide it is, of 100."""

    label: str
    total: int
    parts: Sequence[tuple[Verdict, float, float]]
    supported: str


def bars(counted: Mapping[str, Counts]) -> list[Bar]:
    """Return the rows of a chart of verdicts, each as wide as its share of the most frequent one."""
    widest, rows = max((counts.total() for counts in counted.values()), default=1), []
    for label, counts in counted.items():
        parts, at = list[tuple[Verdict, float, float]](), 0.0
        for verdict in get_args(Verdict):
            width = 100 * counts[verdict] / widest
            if width:
                parts.append((verdict, round(at, 2), round(width, 2)))
            at += width
        given = sum(counts[verdict] for verdict in GIVEN)
        supported = f"{100 * counts['supported'] / given:.0f} %" if given else "–"
        rows.append(Bar(label, counts.total(), parts, supported))
    return rows


def write_page(
    file: BinaryIO, title: str, summary: Summary, doubtful: MostDoubtful, made_by: Facts, serve_url: str | None = None
) -> None:
    """Write the page; where `rechain serve` shows the same questions, each answer links to it."""
    listed = doubtful.listed()
    frequent = sorted(summary.by_tag.items(), key=lambda item: (-item[1].total(), item[0]))[:_MOST_TAGS]
    total, url = summary.verdicts.total(), (serve_url or "").rstrip("/")
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
        # where `rechain serve` shows a question
        "link": (lambda name: f"{url}/question?{urlencode({'id': name})}") if url else None,
    }
    for piece in _template().generate(context):
        file.write(piece.encode())


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    texts = {name: files(__package__).joinpath("templates", name).read_text("utf-8") for name in _INLINE}
    environment = Environment(
        loader=PackageLoader("rechain.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["percent"] = lambda share: f"{100 * share:.1f} %"
    environment.globals |= {"verdict_words": VERDICTS, "style": texts["audit.css"], "script": texts["audit.js"]}
    for name, text in texts.items():  # by its digest a Content-Security-Policy allows an inline text
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        environment.globals[f"{name.partition('.')[2]}_digest"] = f"sha256-{digest}"
    return environment.get_template("audit.html")


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
