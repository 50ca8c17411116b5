"""Cut the documents of every set into passages, and write the logged questions with what a retriever finds for them.

    python benchmarks/logs/build.py OUT_FOLDER

Writes questions.SPLIT.jsonl and gold.SPLIT.jsonl of the splits fit, dev and test, the same bytes every time, and prints
how many there are. It stops at a record whose quote does not occur in exactly one passage. README.md next to this file
describes the records.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import bm25s
import orjson
from pydantic import BaseModel, ConfigDict, Field

from rechain.schema import Gold, GoldChain, NotBlank, Passage, Question, Shape, Verdict

FOLDER = Path(__file__).parent
SPLITS = ("fit", "dev", "test")
LEAST_WORDS, MOST_WORDS = 60, 140
"""of a passage, which ends with its section once it has the least: sizes that RAG splitters are often set to"""
FEWEST_PASSAGES, MOST_PASSAGES = 8, 12
"""of a question: what logs of RAG tools usually hold"""
WORD = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")
HAN_WORD = 2
"""characters of a Chinese word, nearly always; retrievers that know no words index these pairs"""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ(])|(?<=[。！？])")


class Settings(BaseModel):
    """How a set's documents come out of the splitter: set.json."""

    model_config = ConfigDict(extra="forbid")

    name: str
    language: Literal["en", "de", "zh"]
    titles: Literal["path", "document", "none"]
    """the headings above a passage, the document's title alone, or no title (then headings are in the text)"""


class Entry(BaseModel):
    """One logged question, as written by hand in log.SPLIT.jsonl."""

    model_config = ConfigDict(extra="forbid")

    id: NotBlank
    question: NotBlank
    answer: NotBlank
    type: Literal["bridge", "single", "comparison", "yes_no", "list", "value", "unsupported", "dont_know", "partly"]
    day: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    tag: NotBlank
    verdict: Verdict
    shape: Shape | None = None
    """of the evidence; none without evidence"""
    evidence: list[NotBlank] = []
    """a quote from every passage that is needed, in the order of the chain"""


@dataclass(frozen=True)
class Block:
    """A heading (level 1 to 6), or a paragraph, list or table (level 0)."""

    level: int
    text: str


class _Page(HTMLParser):
    """Turns a web page into blocks: a table's row is a line, a list's item is a line with a dash."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.blocks, self._level = "", list[Block](), 0
        self._text, self._in_title = "", False

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        if re.fullmatch(r"h[1-6]|p|ul|ol|table|div|nav|footer|header|title|main|section|dl", tag):
            self._flush()
        self._level = int(tag[1]) if re.fullmatch(r"h[1-6]", tag) else self._level
        self._in_title = tag == "title"
        self._text += {"li": "\n- ", "tr": "\n", "br": "\n", "dt": "\n", "dd": ": "}.get(tag, "")
        if tag in ("td", "th") and not self._text.endswith("\n"):
            self._text += " | "

    def handle_endtag(self, tag: str) -> None:
        if re.fullmatch(r"h[1-6]|p|ul|ol|table|div|nav|footer|header|title|dl", tag):
            self._flush()

    def handle_data(self, data: str) -> None:
        data = re.sub(r"\s+", " ", data)
        self._text += data.lstrip() if not self._text or self._text[-1] in " \n" else data

    def _flush(self) -> None:
        text = re.sub(r" *\n *", "\n", self._text).strip()
        if text and self._in_title:
            self.title = text
        elif text:
            self.blocks.append(Block(self._level, text))
        self._text, self._level, self._in_title = "", 0, False


def read_blocks(path: Path) -> tuple[str, list[Block]]:
    """Return a document's title and blocks. Text files have no headings, as what comes out of a PDF."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        page = _Page()
        page.feed(text)
        return page.title, page.blocks
    paragraphs = [part.strip("\n") for part in re.split(r"\n(?:[ \t]*\n)+", text) if part.strip()]
    if path.suffix == ".txt":
        return paragraphs[0].splitlines()[0].strip(), [Block(0, part) for part in paragraphs]
    blocks = [block for part in paragraphs for block in _markdown_blocks(part)]
    return next((block.text for block in blocks if block.level == 1), path.stem), blocks


def _markdown_blocks(paragraph: str) -> Iterator[Block]:
    first, _, rest = paragraph.partition("\n")
    if heading := re.match(r"(#{1,6}) +(.*)", first):
        yield Block(len(heading[1]), heading[2].strip())
        if rest.strip():
            yield Block(0, rest)
    else:
        yield Block(0, paragraph)


def count_words(text: str) -> int:
    """Return how many words a text has, of Chinese about."""
    return sum(-(-len(word) // HAN_WORD) if "\u3400" <= word[0] <= "\u9fff" else 1 for word in WORD.findall(text))


def _within_limit(text: str) -> Iterator[str]:
    """Cut a long list or table between lines, repeating the table's head, and a long paragraph between sentences."""
    if count_words(text) <= MOST_WORDS:
        yield text
        return
    lines = text.split("\n")
    is_table = " | " in lines[0]
    by_line = is_table or lines[-1].lstrip().startswith(("-", "*", "|")) or bool(re.match(r"\s*\d+[.)]", lines[-1]))
    parts, joint = (lines, "\n") if by_line else (SENTENCE_END.split(text), " ")
    head = [line for line in lines[:2] if is_table and (line is lines[0] or set(line) <= set("|-: "))]
    piece: list[str] = []
    for part in parts:
        if piece and count_words(joint.join([*piece, part])) > MOST_WORDS:
            yield joint.join(piece)
            piece = [*head]
        piece.append(part)
    yield joint.join(piece)


def cut(title: str, blocks: Iterable[Block], titles: str) -> Iterator[tuple[str, str]]:
    """Yield the title and text of every passage of a document.

    A passage ends with its section once it is long enough; a section too short for a passage is joined with the next.
    """
    path, pieces, words = list[str](), list[str](), 0
    heading, name = "", title
    for block in blocks:
        if block.level:
            if words >= LEAST_WORDS:
                yield name, "\n\n".join(pieces)
                pieces, words = [], 0
            path = [*path[: block.level - 1], block.text]
            heading = block.text
            continue
        for piece in _within_limit(block.text):
            if words and words + count_words(piece) > MOST_WORDS:
                yield name, "\n\n".join(pieces)
                pieces, words = [], 0
            if not pieces:
                name = " > ".join(path or [title]) if titles == "path" else title
            if heading and (pieces or titles != "path"):
                pieces.append(heading)
            heading = ""
            pieces.append(piece)
            words += count_words(piece)
    if pieces:
        yield name, "\n\n".join(pieces)


def cut_set(folder: Path) -> list[Passage]:
    """Return the passages of a set's documents, in the order of the files' names."""
    settings = Settings.model_validate_json((folder / "set.json").read_bytes())
    passages = []
    for path in sorted((folder / "documents").iterdir()):
        title, blocks = read_blocks(path)
        for number, (name, text) in enumerate(cut(title, blocks, settings.titles), 1):
            name = "" if settings.titles == "none" else name
            passages.append(Passage(id=f"{folder.name}/{path.name}#{number}", title=name, text=text))
    return passages


def read_log(path: Path) -> list[Entry]:
    """Return the records of a log, or none if the file is missing; name the line of an error."""
    if not path.exists():
        return []
    entries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entries.append(Entry.model_validate_json(line))
        except ValueError as error:
            raise SystemExit(f"{path}, line {number}: {error}") from None
    return entries


def find_quote(quote: str, passages: Iterable[Passage]) -> str:
    """Return the id of the one passage with a quote; blanks and line ends count alike."""
    needle = " ".join(quote.split())
    matches = [passage.id for passage in passages if needle in " ".join(passage.text.split())]
    if len(matches) != 1:
        raise ValueError(f"the quote '{quote}' occurs in {len(matches)} passages instead of one {matches}")
    return matches[0]


def gold_of(entry: Entry, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return an entry's gold: the format of docs/formats.md, with the verdict and the shape."""
    ids = [find_quote(quote, passages) for quote in entry.evidence]
    needle = {None: ids == [], "single": len(ids) == 1, "chain": len(ids) > 1, "parallel": len(ids) > 1}[entry.shape]
    if not needle or len(set(ids)) < len(ids):
        raise ValueError(f"the shape {entry.shape} does not fit its evidence {ids}")
    if (entry.verdict in ("supported", "partly")) != bool(ids):
        raise ValueError(f"an answer that is {entry.verdict} has {len(ids)} quotes")
    chains = [GoldChain(passages=ids, ordered=entry.shape == "chain")] if ids else []
    gold = Gold(id=entry.id, chains=chains, same="passages").model_dump(exclude_none=True)
    return {**gold, "verdict": entry.verdict, "shape": entry.shape}


class Retriever:
    """BM25 over a set's passages, title and text; Chinese by pairs of characters."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self._index = bm25s.BM25()
        self._index.index([self._tokens(f"{one.title} {one.text}") for one in passages], show_progress=False)

    @staticmethod
    def _tokens(text: str) -> list[str]:
        words = WORD.findall(text.lower())
        han = [["".join(pair) for pair in pairwise(one)] if "\u3400" <= one[0] <= "\u9fff" else [one] for one in words]
        return [token for tokens in han for token in tokens]

    def find(self, entry: Entry, needed: Iterable[str]) -> list[Passage]:
        """Return 8 to 12 passages, best first, the needed ones among them wherever they rank."""
        scores = self._index.get_scores(self._tokens(entry.question))
        ranking = sorted(range(len(self.passages)), key=lambda place: (-round(float(scores[place]), 4), place))
        digest = int(sha256(entry.id.encode()).hexdigest(), 16)
        size = FEWEST_PASSAGES + digest % (MOST_PASSAGES - FEWEST_PASSAGES + 1)
        required = {place for place, passage in enumerate(self.passages) if passage.id in set(needed)}
        others = [place for place in ranking if place not in required][: size - len(required)]
        return [self.passages[place] for place in ranking if place in required or place in others]


def _without_blank(record: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in record.items() if value}


def build_set(folder: Path, split: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every question of a set's split with its gold."""
    passages = cut_set(folder)
    retriever = Retriever(passages)
    for entry in read_log(folder / f"log.{split}.jsonl"):
        try:
            gold = gold_of(entry, passages)
        except ValueError as error:
            raise SystemExit(f"{folder.name}, {split}, {entry.id}: {error}") from None
        needed = [key for chain in gold["chains"] for key in chain["passages"]]
        matches = [passage.model_dump(include={"id", "title", "text"}) for passage in retriever.find(entry, needed)]
        logged = entry.model_dump(include={"id", "question", "answer", "type", "day", "tag"})
        question = {**logged, "set": folder.name, "passages": [_without_blank(passage) for passage in matches]}
        Question.model_validate(question)
        yield question, gold


def sets() -> list[Path]:
    """Return the folders of all sets."""
    return sorted(path.parent for path in FOLDER.glob("*/set.json"))


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))


def counts(questions: Sequence[Mapping[str, Any]], field: str) -> Iterator[str]:
    """Yield the rows of a table: how many questions of each value of a field there are in each split."""
    yield f"| {field} | {' | '.join(SPLITS)} |"
    yield "|---|" + "---:|" * len(SPLITS)
    for value in sorted({question[field] for question in questions}):
        numbers = [sum((one[field], one["split"]) == (value, split) for one in questions) for split in SPLITS]
        yield f"| {value} | {' | '.join(map(str, numbers))} |"
    totals = [sum(question["split"] == split for question in questions) for split in SPLITS]
    yield f"| all | {' | '.join(map(str, totals))} |"


def build(out: Path) -> None:
    """Write the questions and the gold of all splits."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for split in SPLITS:
        pairs = [pair for folder in sets() for pair in build_set(folder, split)]
        write_lines(out / f"questions.{split}.jsonl", (question for question, _ in pairs))
        write_lines(out / f"gold.{split}.jsonl", (gold for _, gold in pairs))
        written += [{**question, "split": split} for question, _ in pairs]
    ids = [question["id"] for question in written]
    if repeated := sorted({one for one in ids if ids.count(one) > 1}):
        raise SystemExit(f"ids that stand more than once: {', '.join(repeated)}")
    print("\n".join([*counts(written, "set"), "", *counts(written, "type")]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: python {sys.argv[0]} OUT_FOLDER")
    build(Path(sys.argv[1]))
