"""What an answer says: whether it is one, its claims, and what is telling in each of them beyond the question."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from rechain.text.answers import wrapping
from rechain.text.answers.telling import Asked, Sentence
from rechain.text.answers.wrapping import Block, read_blocks
from rechain.text.words import Text

Stance = Literal["yes", "no"]
Kind = Literal["none", "judgement", "text"]

MOST_CLAIMS = 20
"""an answer that says more is a document; its last claim holds the rest"""
_LONGEST = 20_000
"""characters of an answer that are read, far more than the claims that are kept have"""
_MOST_PARTS = 200
"""sentences of an answer that are read, ten times as many as it has claims; most may repeat the question"""
_FEWEST_WORDS = 3
"""of a question that is recognised where an answer repeats it"""
_SHORT, _SHORT_WORDS = 60, 4
"""characters and words of an answer that is read at once, as it has no part worth looking for apart"""


class Claim(NamedTuple):
    """One thing that an answer says."""

    text: str
    """as people read it, without markup, citations and polite frames"""
    phrases: tuple[str, ...]
    """its telling phrases, most telling first, each as `words.phrase` joins folded words"""
    words: tuple[str, ...]
    """its telling words, folded, in order"""


class AnswerReading(NamedTuple):
    """An answer as it was read."""

    kind: Kind
    """says that there is no answer; a bare yes or no; anything else"""
    stance: Stance | None
    """where it is or begins with a yes or no"""
    claims: tuple[Claim, ...]


NO_ANSWER = AnswerReading("none", None, ())
_FUNCTION, _CLAUSE, _YES, _NO, _ABBREVIATIONS = map(
    wrapping.words, ("function", "clause", "yes", "no", "abbreviations")
)
# Markup, a colon, a question, the end of a sentence that is no initial's or abbreviation's, a list.
_NOT_SHORT = re.compile(r"[*_`#<>\[\]&|~\n\r\\•:?？。！、]|[a-z\d]{3}[.!]|,.*\b(?:and|or|und|oder)\b")
_WORDLESS = re.compile(r"[\s\-–—_.…?,;:*'\"\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]*")
"""what is no answer; any other text without words ("!!!") may be a name"""
_STANCE = re.compile(
    r"\W*(?:(?P<yes>(?:yes|yeah|yep|yup|ja|doch|oui)\b(?:[\s,.;:!—–-]+|$)"
    r"|(?:true|correct|right|richtig|wahr|是的?|对的?|可以的?|能|会|有)(?:\s*[,.;:!—–，。！；：]+\s*|\s*$))"
    r"|(?:no|nope|nein|non)\b(?:\s*[,.;:!—–-]+\s*|\s+(?=(?:it|they|he|she|you|we|there|this|that|es|sie|er)\b)|\s*$)"
    r"|(?:false|incorrect|wrong|falsch|不是的?|否|不|不可以|不能|不会|没有|不对|不行)(?:\s*[,.;:!—–，。！；：]+\s*|\s*$))",
    re.IGNORECASE,
)
# Possessive, and only from the first mark of a row on: else a row of 20,000 marks without a blank takes half a minute.
_END = re.compile(r"(?<![.!?])[.!?]++[\"”’')\]*]*+\s+|[。！？]+[”」』）)]*|\n+")
_CONTRAST = re.compile(
    r"(?:[,;]|\s[-–—])\s*(?:but|however|though|although|yet|aber|jedoch|allerdings)\b[,\s]*"
    r"|[，,；;](?:但是|但|不过|然而)[，,]?",
    re.IGNORECASE,
)
_HAN = "[\u3400-\u9fff]"
_AND = rf"\s(?:and|or|und|oder|sowie|as well as|&)\s|(?<={_HAN})[和及与或](?={_HAN})"
_ITEM_END = re.compile(rf"\s?[,;、，](?:{_AND})?\s*|{_AND}")
_LAST_ITEM = re.compile(rf"{_AND}|、")
_LEFT_OVER = " \t\"”’':;,.–—-?"
"""what stands before a sentence where a quoted question was taken away"""
_LONGEST_ITEM = 6
"""words of an item within a sentence; what is longer is a clause"""


def read_answer(question: str, answer: str) -> AnswerReading:
    """Return what an answer says beyond its question."""
    return _read_short(answer) or _read_long(question, answer)


def _read_short(answer: str) -> AnswerReading | None:
    """Return a name, number, phrase, yes or no as it is read at once; None for any other answer."""
    if len(answer) > _SHORT or _NOT_SHORT.search(answer):
        return None
    read = Text(answer)
    if len(read.words) > _SHORT_WORDS or not _CLAUSE.isdisjoint(read.words):
        return None
    if len(read.words) == 1 and (read.words[0] in _YES or read.words[0] in _NO):
        return _judgement("yes" if read.words[0] in _YES else "no", answer)
    if wrapping.matches_words("refusal", read) or (not read.words and _WORDLESS.fullmatch(answer)):
        return NO_ANSWER
    return _whole(answer, read)


def _judgement(stance: Stance, answer: str) -> AnswerReading:
    return AnswerReading("judgement", stance, (Claim(answer.strip(), (f" {stance} ",), (stance,)),))


def _whole(answer: str, read: Text) -> AnswerReading:
    """Return an answer as one claim, with all its words as the telling phrase."""
    content = tuple(word for word in read.words if word not in _FUNCTION) or tuple(read.words)
    phrases = (read.joined,) if read.words else ()
    return AnswerReading("text", None, (Claim(answer.strip(), phrases, content),))


class _Part(NamedTuple):
    """A sentence of an answer, without its frame."""

    sentence: Sentence
    is_item: bool
    """whether it stands in a list or table"""
    refuses: bool
    """whether it says that there is no answer"""


def _read_long(question: str, answer: str) -> AnswerReading:
    asked = Asked(question)
    if _WORDLESS.fullmatch(answer) or Text(answer[: len(question) + _SHORT]).words == asked.text.words:
        return NO_ANSWER
    blocks = read_blocks(answer[:_LONGEST])
    blocks = [block for block in blocks if block.kind != "heading"] or blocks
    stance, blocks = _take_stance(blocks)
    found = list(islice((part for block in _without_lead_ins(blocks) for part in _parts(asked, block)), _MOST_PARTS))
    refuses = any(part.refuses for part in found)
    parts = [
        part
        for part in found
        if not (part.refuses or (refuses and wrapping.matches("beside_refusal", part.sentence.text)))
    ]
    if not parts and refuses and not stance:
        return NO_ANSWER
    if stance and all(part.sentence.is_empty for part in parts):  # "Yes, it is."
        return _judgement(stance, answer)
    return _state(asked, stance, parts) if parts else _whole(answer, wrapping.read(answer))


def _without_lead_ins(blocks: list[Block]) -> list[Block]:
    """Return blocks without the lines that only announce a list ("You need:")."""
    before_list = {n - 1 for n, block in enumerate(blocks) if block.kind in ("item", "row")}
    return [
        block
        for n, block in enumerate(blocks)
        if not (
            n in before_list and block.kind == "text" and not block.text.endswith((".", "!", "?", "。", "！", "？"))
        )
    ]


def _take_stance(blocks: list[Block]) -> tuple[Stance | None, list[Block]]:
    """Return the yes or no at the beginning of an answer, and the answer without it."""
    text = wrapping.strip_openings(blocks[0].text) if blocks else ""
    found = _STANCE.match(text)
    if not text or not found:
        return None, blocks
    rest = text[found.end() :].strip()
    return "yes" if found["yes"] else "no", [*([blocks[0]._replace(text=rest)] if rest else []), *blocks[1:]]


def _parts(asked: Asked, block: Block) -> Iterator[_Part]:
    """Yield the sentences of a block that say something, without their wrapping."""
    is_item = block.kind in ("item", "row")
    for sentence in _sentences(_without_question(asked, block.text)):
        for clause in _clauses(sentence):
            if wrapping.matches("idle", clause):
                continue
            refuses = wrapping.matches("refusal", clause)
            text = clause if refuses else wrapping.strip_openings(clause)
            read = Sentence(asked, text, stands_alone=is_item or wrapping.names_answer(clause, text))
            if read.words and not wrapping.matches("idle", text):
                yield _Part(read, is_item, refuses or wrapping.matches("refusal", text))


def _without_question(asked: Asked, text: str) -> str:
    """Return a text in which lines end where the question stands word for word."""
    read = wrapping.read(text)
    if len(asked.text.words) < _FEWEST_WORDS or asked.text.joined not in read.joined:
        return text
    start, end = next(read.spans(asked.text.joined))
    return f"{text[:start]}\n{text[end:].lstrip(_LEFT_OVER)}"


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text."""
    start = 0
    for end in _END.finditer(text):
        if end[0][0] == "." and _is_abbreviated(text, start, end):
            continue
        if sentence := text[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := text[start:].strip():
        yield sentence


def _is_abbreviated(text: str, start: int, end: re.Match[str]) -> bool:
    """Return whether a dot stands after an abbreviation or an initial and ends no sentence."""
    last = text[max(start, end.start() - 12) : end.start()].rsplit(None, 1)[-1:]
    word = last[0].casefold().lstrip("(\"'“") if last else ""
    is_initial = all(len(letter) == 1 and letter.isalpha() for letter in word.split("."))
    if word not in _ABBREVIATIONS and not is_initial:
        return False
    following = text[end.end() : end.end() + 12].split(None, 1)[:1]
    # "… Smithers Jr. It is …"
    return not (following and following[0][0].isupper() and following[0].casefold().strip(",") in _FUNCTION)


def _clauses(sentence: str) -> Iterable[str]:
    """Return what stands after "I don't know …, but" as a sentence of its own; any other sentence is whole."""
    contrast = _CONTRAST.search(sentence)
    if contrast and wrapping.matches("refusal", wrapping.strip_openings(sentence[: contrast.start()])):
        return sentence[: contrast.start()], sentence[contrast.end() :]
    return (sentence,)


def _state(asked: Asked, stance: Stance | None, parts: list[_Part]) -> AnswerReading:
    """Return the claims of an answer that says something."""
    is_list = sum(part.is_item for part in parts) > 1
    told = [part.sentence for part in parts if part.sentence.says_more or (is_list and part.is_item)]
    if parts[0].sentence.is_choice and parts[0].sentence not in told:
        told.insert(0, parts[0].sentence)
    told = told or [part.sentence for part in (parts if stance else parts[-1:])]
    if len(told) == 1 and (items := _items(asked, told[0])):
        told = items
    claims = [Claim(sentence.text, *sentence.telling(judges=stance is not None)) for sentence in told]
    return AnswerReading("text", stance, tuple(_merge_last(claims)))


def _merge_last(claims: list[Claim]) -> list[Claim]:
    """Return no more than `MOST_CLAIMS` claims: the last one holds all that follow."""
    if len(claims) <= MOST_CLAIMS:
        return claims
    rest = claims[MOST_CLAIMS - 1 :]
    text, words = "\n".join(claim.text for claim in rest), dict.fromkeys(word for claim in rest for word in claim.words)
    return [*claims[: MOST_CLAIMS - 1], Claim(text, rest[0].phrases, tuple(words))]


def _items(asked: Asked, sentence: Sentence) -> list[Sentence]:
    """Return the items of the list that a sentence names or has behind a colon; none if there is no list."""
    before, colon, after = sentence.text.replace("：", ": ").partition(": ")
    # "How Not to Die: …" is a title; "There are three: …" is none.
    is_colon = bool(colon) and (asked.wants_several or not Sentence(asked, before).says_more)
    text = after if is_colon else sentence.focus()
    if not _LAST_ITEM.search(text):
        return []
    texts = [item.strip(" .。") for item in _ITEM_END.split(text)]
    items = [Sentence(asked, item, stands_alone=True) for item in texts if item]
    if len(items) < (2 if is_colon or asked.wants_several else 3):
        return []
    return items if all(map(_is_item, items)) else []


def _is_item(sentence: Sentence) -> bool:
    """Return whether this may be an item: a few words, and no part of a date."""
    is_name = any(not word.isdigit() for word in sentence.words)
    return is_name and len(sentence.words) <= _LONGEST_ITEM and sentence.is_phrase
