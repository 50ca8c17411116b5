"""The wording of a pseudo question, from one sentence of its head and one of its tail."""

from collections.abc import Collection, Container, Sequence
from random import Random

from rechain.preparation.pseudo.paraphrases import paraphrase
from rechain.preparation.pseudo.readings import AnswerKind
from rechain.preparation.pseudo.settings import PseudoSettings
from rechain.text.rarity import idf
from rechain.text.words import Text

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
_FUNCTION_WORD = 1.5
_DROPPED_FUNCTION_WORD = 0.15
_RAREST = 9.4


class Clause:
    """What is left of a sentence, in order; `marked` is where the word taken out stood, if it did."""

    def __init__(self, words: Sequence[str], marked: int | None) -> None:
        self._before = list(words if marked is None else words[:marked])
        self._after = list(() if marked is None else words[marked:])
        self.is_marked = marked is not None

    def around(self, middle: str) -> str:
        """Return the clause with something where the mark stood; at the end where there was none."""
        return " ".join(filter(None, [*self._before, middle, *self._after]))

    @property
    def content_words(self) -> int:
        """How many of the words tell something."""
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
                words.append(self._said_otherwise(word, raw))
        return self._cut(words, marked)

    def _is_dropped(self, word: str) -> bool:
        rarity = idf(word)
        chance = _DROPPED_FUNCTION_WORD
        if rarity >= _FUNCTION_WORD:
            least = 0.0 if word in self._shared else self._settings.drop_unique
            chance = max(self._settings.drop * rarity / _RAREST, least)
        return self._random.random() < chance

    def _said_otherwise(self, word: str, raw: str) -> str:
        return paraphrase(word, raw, self._random) if self._random.random() < self._settings.paraphrase else raw

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
