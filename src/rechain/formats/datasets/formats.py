"""What every format module offers, and what several need: passages, however they are written, and errors of records.

LangChain   {"page_content", "metadata", "id"}, also as `dumps` of langchain writes it
LlamaIndex  {"node": {"id_", "text", "metadata"}, "score"}, or the node alone
Haystack    {"content", "meta", "id"}
"""

import ast
import re
import reprlib
import tokenize
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain, count, islice
from numbers import Real
from typing import Any, ClassVar

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rechain.errors import QuestionError
from rechain.schema import MOST_PASSAGES, NOT_BLANK, Gold, Passage, Question, Same, number_as_text


class Format(ABC):
    """One published format. `question` never reads gold evidence; `gold` reads little else."""

    name: ClassVar[str]
    same: ClassVar[Same] = "passages"
    """what counts as the same chain in this data set"""
    gold_tail_holds_answer: ClassVar[bool] = False
    """whether evaluation orders the gold passages by which of them contains the answer, as the data has no order"""

    @abstractmethod
    def recognises(self, record: dict[str, Any]) -> bool:
        """Return whether a record is of this format, by its fields."""

    @abstractmethod
    def question(self, record: dict[str, Any]) -> Question:
        """Turn a record into a question."""

    def without_passages(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Return a record that has all but a field for passages with an empty one; None for any other.

        So a record is read where a collection finds the passages.
        """
        return None

    def gold(self, record: dict[str, Any]) -> Gold | None:
        """Turn a record into its gold chains, if it has any."""
        return None

    def sentences(self, record: dict[str, Any]) -> Mapping[str, Sequence[str]]:
        """Return the sentences of the passages, by passage id, where the record gives them."""
        return {}


# ---- passages


def join_sentences(sentences: Iterable[str]) -> str:
    """Join a passage's sentences as docs/formats.md says: stripped, one blank between."""
    return " ".join(filter(None, (sentence.strip() for sentence in sentences)))


Fields = Mapping[str, Any]

_TEXTS = ("text", "page_content", "content", "snippet", "chunk", "passage")
_TITLES = ("title", "source", "file_name", "file_path", "url")  # of the passage or of its metadata, best first
_IDS = ("id", "id_", "node_id", "doc_id", "document_id", "chunk_id")
_METADATA = ("metadata", "meta")
_INNER = ("node", "document", "kwargs", "init_parameters", "__data__")
"""where tools keep the passage itself, next to a score or the name of its class"""
_MOST_WRAPPERS = 3  # a node with its score, as it is stored, as it is serialised
_VECTORS = ("embedding", "sparse_embedding", "vector")  # hundreds of numbers a passage, which are not read
# What a list of texts may have as Python prints it, or numpy, which puts no commas between them.
_LIST_TOKENS = (tokenize.STRING, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT)
# Python's parser takes a hundred times the memory of the text; a list of passages as Python prints it is far shorter.
_LONGEST_PRINTED_LIST = 1 << 20
_RULE = re.compile(r"\n[^\S\n]*-{3,}[^\S\n]*\n")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")


def items_of(field: str, value: Any) -> Sequence[Any]:
    """Return the passages of a field: a list, or a text that holds one; raises QuestionError for anything else."""
    if isinstance(value, str):
        return split_text(value)
    if isinstance(value, Mapping) and any(name in value for name in (*_TEXTS, *_INNER)):
        return [value]
    if isinstance(value, list | tuple):
        return value
    raise QuestionError("bad_field", f"{field} should be a list of passages, not {reprlib.repr(value)}")


def split_text(text: str) -> list[Any]:
    """Return the passages that a text such as a table's cell holds: a JSON list, one as Python prints it, or texts.

    Texts are separated by lines of three dashes or, without any, by blank lines.
    """
    text = text.strip().replace("\r\n", "\n")
    if text.startswith(("[", "{")) and (items := _parse_list(text)) is not None:
        return items
    separator = _RULE if _RULE.search(text) else _BLANK_LINE
    return [part.strip() for part in separator.split(text) if part.strip()]


def _parse_list(text: str) -> list[Any] | None:
    """Return the list that a text spells out, or None."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        if len(text) > _LONGEST_PRINTED_LIST:
            return None
        try:
            value = _printed_texts(text) or ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            return None
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else None


def _printed_texts(text: str) -> list[str] | None:
    """Return a list of texts as Python or numpy prints it; without commas Python would read all of it as one text."""
    texts: list[str] = []
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.STRING:
            texts.append(ast.literal_eval(token.string))
        elif token.type not in _LIST_TOKENS and token.string not in ("[", "]", ","):
            return None
    return texts


def passage_fields(item: Any) -> Fields:
    """Return the fields of a passage by the names of the schema, whatever tool wrote it; the others are kept."""
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[1], Real):  # with its score
        item = {"node": item[0] if isinstance(item[0], Mapping) else {"text": item[0]}, "score": item[1]}
    if not isinstance(item, Mapping):
        raise QuestionError("bad_field", f"should be a text, a dict or a Passage, not {reprlib.repr(item)}")
    for _ in range(_MOST_WRAPPERS):
        inner = next((item[name] for name in _INNER if name in item and isinstance(item[name], Mapping)), None)
        if inner is None:
            break
        item = {"score": item["score"], **inner} if item.get("score") is not None else inner
    metadata = _metadata(item)
    text, name = _first_of(_TEXTS, item), _first_of(_IDS, item)
    fields = {field: value for field, value in item.items() if field not in (text, name, *_VECTORS)}
    titles = (place.get(field) for place in (item, metadata) for field in _TITLES)
    if title := next((title.strip() for title in titles if isinstance(title, str) and title.strip()), None):
        fields["title"] = title
    if text or isinstance(item.get("text_resource"), Mapping):  # of LlamaIndex's newer nodes
        fields["text"] = item[text] if text else item["text_resource"].get("text")
    return {**fields, "id": item[name]} if name else fields


def _metadata(item: Fields) -> Fields:
    return next((item[name] for name in _METADATA if name in item and isinstance(item[name], Mapping)), {})


def has_text(item: Any) -> bool:
    """Return whether an item is a passage, by its fields."""
    return isinstance(item, str) or (isinstance(item, Mapping) and "text" in passage_fields(item))


def _first_of(names: Sequence[str], item: Fields) -> str | None:
    """Return the first name of a field that an item has; a blank one counts only if there is no other."""
    return next((name for name in names if item.get(name)), next((name for name in names if name in item), None))


def make_passages(field: str, items: Iterable[Any], *, logged: bool = False) -> list[Passage]:
    """Make passages of the items of a field, which errors name; a passage that is repeated word for word is taken once.

    A passage without an id gets its title or, if that is used, its position. What a tool has logged is taken as it
    comes: blank texts are left out, as are repeated ones under another id, and an id that is used, as tools give it to
    all pieces of a document, is numbered.
    """
    used: set[str] = set()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))  # none is tried twice for a name
    passages: dict[tuple[Any, str, str], Passage] = {}
    for number, item in enumerate(items):
        if len(passages) > MOST_PASSAGES:  # the schema says so; what else there is need not be read
            break
        if logged and item is None:
            continue
        fields = _fields_of(field, number, item, logged)
        text = fields.get("text", 0)  # one of the wrong type is left to the schema
        if logged and (text is None or (isinstance(text, str) and not text.strip())):
            continue
        identity = number_as_text(fields.get("id"))
        name = _free_name(fields, number, used) if identity is None else identity
        if logged and name in used:
            name = next(numbered for n in numbers[name] if (numbered := f"{name}.{n}") not in used)
        try:
            passage = Passage.model_validate({**fields, "id": name})
        except ValidationError as error:
            raise QuestionError(*describe(error, (field, number))) from error
        key = (None if logged else identity, passage.title, passage.text)
        if key not in passages:
            passages[key] = passage
            used.add(passage.id)
    return list(passages.values())


def _fields_of(field: str, number: int, item: Any, logged: bool) -> Fields:
    """Return the fields of a passage; one of the plain format has them by their names already."""
    if isinstance(item, Passage):
        return item.model_dump()
    if not logged and isinstance(item, Mapping) and "text" in item and ("id" in item or not _metadata(item)):
        return item
    try:
        return passage_fields(item)
    except QuestionError as error:
        raise QuestionError(error.code, f"{field}[{number}] {error}") from error


def _free_name(fields: Fields, number: int, used: set[str]) -> str:
    title = fields.get("title")
    titles = [title] if isinstance(title, str) and title else []
    names = chain(titles, (str(number),), (f"{number}.{n}" for n in count(1)))
    return next(name for name in names if name not in used)


# ---- sentences about data that does not fit the schema

# Checks that `schema` adds to pydantic's, whose messages begin with the field, and the codes of their errors.
_OWN_CHECKS = {"bad_span": "bad_field", "link_types": "bad_field", "repeated_id": "duplicate_passage"}
# pydantic's names of values that are longer than the schema allows, and their units.
_TOO_LARGE = {"too_long": "items", "string_too_long": "characters"}
# Number and length of the names of fields that an error lists, as it is one sentence.
_MOST_NAMES, _LONGEST_NAME = 20, 40


def bad_record(where: str, error: ValidationError | QuestionError, record: Any = None) -> QuestionError:
    """Return an error that says in one sentence which field of a record is wrong, and how."""
    if isinstance(error, QuestionError):
        code, message, is_of_record = error.code, str(error), isinstance(error, MissingFieldsError)
    else:
        code, message = describe(error)
        is_of_record = next((len(one["loc"]) == 1 for one in error.errors() if one["type"] == "missing"), False)
    if is_of_record and isinstance(record, Mapping):
        has = f"the record has {listed(record)}: name the right ones with --map (mapping in Python)"
        message += f"; {has if record else 'the record is empty'}"
    return QuestionError(code, f"{where}: {message}.")


class MissingFieldsError(QuestionError):
    """A record lacks fields; all of them are named."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("missing_field", _are_missing(names))


def listed(names: Iterable[Any]) -> str:
    """Return names as people list them: "a, b and c"; few and short ones, however many or long they are."""
    short = [str(name)[:_LONGEST_NAME] for name in islice(names, _MOST_NAMES)]
    return " and ".join(filter(None, [", ".join(short[:-1]), *short[-1:]]))


def _are_missing(names: Sequence[str]) -> str:
    return f"the field{'s' * (len(names) > 1)} {listed(names)} {'are' if len(names) > 1 else 'is'} missing"


def describe(error: ValidationError, place: tuple[str | int, ...] = ()) -> tuple[str, str]:
    """Return the code and a description of all that is missing or else of the first thing that is wrong.

    `place` is where in the record the data stands.
    """
    details = error.errors(include_url=False)
    if missing := [_field((*place, *one["loc"])) for one in details if one["type"] == "missing"]:
        return "missing_field", _are_missing(missing)
    return describe_detail({**details[0], "loc": (*place, *details[0]["loc"])})


def _field(place: Iterable[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def describe_detail(first: ErrorDetails) -> tuple[str, str]:
    """Return the code and a description of one thing that is wrong."""
    field = _field(first["loc"])
    if first["type"] == "missing":
        return "missing_field", _are_missing([field])
    if first["type"] == "string_pattern_mismatch":
        if first["ctx"]["pattern"] != NOT_BLANK:
            return "bad_field", f"{field} holds characters that it should not"
        return "empty_field", f"{field} is empty"
    if first["type"] in _TOO_LARGE:
        length, unit = len(first["input"]), _TOO_LARGE[first["type"]]
        return "too_large", f"{field} has {length:,} {unit}; the most are {first['ctx']['max_length']:,}"
    if first["type"] == "too_deep":
        return "too_deep", f"{field} {first['msg']}"
    if first["type"] in _OWN_CHECKS:
        return _OWN_CHECKS[first["type"]], f"{field}.{first['msg']}".removeprefix(".")
    return "bad_field", f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}"
