"""The wording of a pseudo question: what a passage offers to ask for, and one clause each from head and tail.

Words are dropped, paraphrased and put in another order, so that a model cannot find the chain by counting words that
question and passages share.
"""

import re
from collections.abc import Collection, Container, Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple

from rechain.preparation.pseudo.pool import PseudoSettings
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.words import Text, lazy, phrase

AnswerKind = Literal["date", "year", "number", "place", "person", "name"]

# Stricter than `PassageView.sentences`: a capital before the full stop (John F. Kennedy) ends no sentence.
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\]\"'][.!?])\s+(?=[A-Z\"(\[])")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_ONLY_A_MONTH = re.compile(_MONTH.lower())
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*(?:\.(?=\s[A-Z]))?"
_ANSWER = re.compile(
    rf"\b(?:(?P<date>\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}|{_MONTH} \d{{4}})"
    r"|(?P<year>(?:1[0-9]|20)\d\d(?![\d,.]\d))"
    r"|(?P<number>\d[\d,]*(?:\.\d+)?(?: (?:million|billion|percent|miles|km|metres|feet|people))?)"
    rf"|(?P<name>{_CAPITALISED}(?:(?: (?:of|the|of the|de|von|van|for))? {_CAPITALISED})*))(?!\w)"
)
_BEFORE_PLACES = frozenset(("in", "at", "near", "from", "to"))
_BEFORE_PERSONS = frozenset(("by", "with", "starring", "and", "actor", "actress", "singer", "director", "featuring"))
_LEADING_WORD = 2.0
"""words of less rarity (the, in, his …) are cut off the beginning of an answer"""
_LEAST_RARITY = {"name": 2.8, "number": 2.0, "year": 0.0, "date": 0.0}
"""of the rarest word of an answer: common names and small numbers stand in too many passages to be asked for"""
_MOST_ANSWER_WORDS = 7


class Answer(NamedTuple):
    """A stretch of a sentence that could be asked for."""

    text: str
    phrase: str
    """its folded words, as they are looked for in passages"""
    kind: AnswerKind
    sentence: int


class PassageReading:
    """A passage's view with what a question can be made of."""

    def __init__(self, view: PassageView) -> None:
        self.view = view

    @lazy
    def sentences(self) -> list[Text]:
        """The sentences that have words, each cut into words."""
        texts = map(Text, _SENTENCE_END.split(self.view.passage.text))
        return [text for text in texts if text.words]

    @lazy
    def answers(self) -> list[Answer]:
        """All that could be asked for, in the order of the text."""
        return [answer for number, text in enumerate(self.sentences) for answer in _answers(number, text)]


def _answers(number: int, sentence: Text) -> Iterator[Answer]:
    for match in _ANSWER.finditer(sentence.original):
        text = _trimmed(match.group())
        words = phrase(text)
        at = sentence.find(words) if words else None
        is_mere_beginning = at == 0 and words.count(" ") == 2
        if at is not None and not is_mere_beginning and _is_telling(words.split(), str(match.lastgroup)):
            before = sentence.words[at - 1] if at else ""
            yield Answer(text, words, _kind(str(match.lastgroup), words, before), number)


def _trimmed(text: str) -> str:
    """Leave out function words at the beginning, and the genitive at the end."""
    first, blank, rest = text.partition(" ")
    while blank and idf(first.casefold()) < _LEADING_WORD:
        first, blank, rest = rest.partition(" ")
    return (first + blank + rest).removesuffix("'s")


def _is_telling(words: list[str], form: str) -> bool:
    if len(words) == 1 and _ONLY_A_MONTH.fullmatch(words[0]):
        return False
    return len(words) <= _MOST_ANSWER_WORDS and max(map(idf, words)) >= _LEAST_RARITY[form]


def _kind(form: str, words: str, before: str) -> AnswerKind:
    match form:
        case "date" | "year" | "number":
            return form
    if before in _BEFORE_PLACES:
        return "place"
    is_full_name = 2 <= words.count(" ") - 1 <= 3 and " of " not in words
    return "person" if is_full_name and before in _BEFORE_PERSONS else "name"


_ASKING: dict[AnswerKind, Sequence[str]] = {
    "date": ("when", "on what date", "what day"),
    "year": ("when", "what year", "in which year"),
    "number": ("how many", "what number", "how much"),
    "place": ("where", "what place", "which city", "what location"),
    "person": ("who", "which person", "whom"),
    "name": ("what", "which", "who", "what name"),
}
_NEUTRAL = ("one", "subject", "thing", "")
_RELATIVE = ("that", "which", "who", "with", "")
_KINDS = (
    " actor actress airline airport album artist author band battle book bridge building character church city club "
    "college comedian company composer county country director district driver episode film footballer game group "
    "island journalist lake league magazine manager model mountain movie museum musician newspaper novel painter "
    "player poet politician producer programme rapper restaurant river school series show singer song station street "
    "studio team town university village war woman man writer "
)
"""what the subject of a first sentence often is; as one string, in which words are found between blanks"""
_FUNCTION_WORD = 1.5
"""words of less rarity are no content"""
_DROPPED_FUNCTION_WORD = 0.15
_RAREST = 9.4
"""the rarity of the rarest words of the table"""


class Clause:
    """What is left of a sentence, in order; `marked` is where the word taken out stood, if it did."""

    def __init__(self, words: Sequence[str], marked: int | None) -> None:
        self._before = list(words if marked is None else words[:marked])
        self._after = list(() if marked is None else words[marked:])

    def around(self, middle: str) -> str:
        """Return the clause with something where the mark stood; at the end where there was none."""
        return " ".join(filter(None, [*self._before, middle, *self._after]))

    @property
    def content_words(self) -> int:
        """The number of words that are no function words."""
        return sum(not _is_function_word(word) for word in self._before + self._after)


def _is_function_word(word: str) -> bool:
    return idf(word.casefold()) < _FUNCTION_WORD


def _drop_function_words(words: list[str], start: int) -> None:
    """Drop those at the end, as the word that they led to is gone."""
    while len(words) > start and _is_function_word(words[-1]):
        words.pop()


class Phrasing:
    """Drops words, paraphrases others, and puts clauses together."""

    def __init__(self, settings: PseudoSettings, random: Random, shared: Container[str]) -> None:
        """Prepare the wording of one question; `shared` are the words that two passages of the context hold."""
        self._settings = settings
        self._random = random
        self._shared = shared

    def clause(self, sentence: Text, taken_out: str, banned: Collection[str], kept: Collection[str] = ()) -> Clause:
        """Return what is left of a sentence without a phrase, without banned words, and with part of the others."""
        first = sentence.find(taken_out)
        last = -1 if first is None else first + taken_out.count(" ") - 2
        words: list[str] = []
        marked = None
        for number, (word, raw) in enumerate(zip(sentence.words, sentence.raw_words, strict=True)):
            if number == first:
                marked = len(words)
            if first is not None and first <= number <= last:
                continue
            if word in kept:
                words.append(raw)
            elif word in banned or self._is_dropped(word):
                _drop_function_words(words, marked or 0)
            else:
                is_paraphrased = self._random.random() < self._settings.paraphrase
                words.append(paraphrase(word, raw, self._random) if is_paraphrased else raw)
        return self._cut(words, marked)

    def _is_dropped(self, word: str) -> bool:
        rarity = idf(word)
        chance = _DROPPED_FUNCTION_WORD
        if rarity >= _FUNCTION_WORD:
            least = 0.0 if word in self._shared else self._settings.drop_unique
            chance = max(self._settings.drop * rarity / _RAREST, least)
        return self._random.random() < chance

    def _cut(self, words: Sequence[str], marked: int | None) -> Clause:
        """Keep a stretch of the words, one that reaches to the mark."""
        length = self._random.randint(*self._settings.clause_words)
        spare = max(len(words) - length, 0)
        least, most = (0, spare) if marked is None else (max(marked - length, 0), min(marked, spare))
        start = self._random.randint(least, most)
        kept = list(words[start : start + length])
        _drop_function_words(kept, 0 if marked is None else marked - start)
        return Clause(kept, None if marked is None else marked - start)

    def kind_of(self, sentence: Text) -> str:
        """Return what sort of thing a sentence says that its subject is, or a word that says nothing."""
        found = next((word for word in sentence.words if f" {word} " in _KINDS), None)
        return found if found and self._random.random() < 0.6 else self._random.choice(_NEUTRAL)

    def question(self, head: Clause, tail: Clause, kind: str, answer: AnswerKind) -> str:
        """Put a question together: the tail's clause asks, the head's says of what."""
        choose = self._random.choice
        asking = choose(_ASKING[answer])
        described = f"the {kind} {choose(_RELATIVE)} {head.around(choose(('', '', 'that', 'it')))}"
        style = self._random.random()
        if style < 0.35:
            text = f"{asking} {tail.around('')} {choose(('of', 'by', 'for', ''))} {described}"
        elif style < 0.7:
            text = f"{described} {tail.around(asking)}"
        elif style < 0.85:
            text = f"{asking} {choose(('is', 'was', 'did', ''))} {described} {tail.around('')}"
        else:
            text = f"{choose(('in', 'of', 'for'))} {described}, {tail.around(asking)}"
        words = text.split()
        return " ".join([words[0][0].upper() + words[0][1:], *words[1:]]) + "?"


_GROUPS = """
film movie picture|directed made helmed|starring featuring|stars features|released issued|album record|song track
band group|singer vocalist|actor performer|actress performer|writer author|author writer|novel book|wrote penned
written authored|founded established started|established founded|located situated found|city town|town municipality
village settlement|county district|company firm business|university college|school academy|team club side|club team
player athlete|football soccer|league division|won received|received won|award prize|awards prizes honours
series show programme|television tv|known famous|famous known|best most|served worked|played appeared|born birth
died death|married wed|wife spouse|husband spouse|son child|daughter child|father parent|mother parent
brother sibling|sister sibling|population inhabitants|people persons|area region|region area|northern north
southern south|eastern east|western west|north northern|south southern|east eastern|west western|largest biggest
large big|small little|first earliest|second 2nd|third 3rd|owned held|based headquartered|including among
american usa|british uk|english england|french france|german germany|italian italy|canadian canada|indian india
australian australia|irish ireland|scottish scotland|japanese japan|russian russia|spanish spain|chinese china
politician statesman|member part|war conflict|army forces|battle fight|king monarch|queen monarch|president head
professional pro|career life|produced created|created made|developed designed|designed developed|published printed
magazine periodical|newspaper paper|station channel|road street|street road|river stream|lake water|mountain peak
island isle|church chapel|building structure|house home|museum gallery|game match|games matches|season year
championship title|tournament competition|competition contest|driver racer|coach manager|manager coach
comedian comic|musician artist|artist musician|composer musician|producer maker|director maker|character role
role part|based drawn|story tale|show programme|episode part|children kids|formerly once|originally initially
began started|started began|ended finished|became turned|named called|called named|used employed|several many
located lies|opened began|built constructed|constructed built|near close|approximately about|former previous
current present|early young|late older|major main|main chief|popular loved|one 1|two 2|three 3|four 4|five 5
six 6|seven 7|eight 8|nine 9|ten 10|1 one|2 two|3 three|4 four|5 five|6 six|7 seven|8 eight|9 nine|10 ten
"""
_OTHERS: dict[str, list[str]] = {}
for _group in _GROUPS.replace("\n", "|").strip("|").split("|"):
    _word, *_others = _group.split()
    _OTHERS.setdefault(_word, []).extend(_others)
_ENDINGS = (("ied", "ying"), ("ies", "y"), ("ing", "ed"), ("ed", "ing"), ("ly", ""), ("s", ""))
_LEAST_STEM = 4
"""letters that are left of a word, so that `bed` does not become `bing`"""


def paraphrase(word: str, raw: str, random: Random) -> str:
    """Return another word for a folded word, by the table or by its ending; where none is known, the word as it stood.

    Names are left as they are, but for those in the table.
    """
    if word in _OTHERS:
        return random.choice(_OTHERS[word])
    if raw[0].isupper() or raw.endswith("ss"):
        return raw
    for ending, other in _ENDINGS:
        if raw.endswith(ending) and len(raw) >= _LEAST_STEM + len(ending):
            return raw.removesuffix(ending) + other
    return raw
