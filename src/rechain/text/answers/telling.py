"""What is telling in a sentence of an answer: what it says beyond the question.

Every word of the sentence is of one kind: it is telling (T), from the question or about the answer itself (Q), a
function word that a name begins or ends with (N), or a function word (F). Runs of telling words, with the joints of
names between them, are the phrases that are looked for in passages.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import fsum

from rechain.text.answers import wrapping
from rechain.text.languages import idf, stem
from rechain.text.words import Text, is_unspaced

Run = tuple[int, int]
"""numbers of words: from, up to"""

_FUNCTION, _LINKING, _CLAUSE, _JOINTS, _PARTICLES, _LIMITS, _ADDRESS, _META, _NEGATIONS = map(
    wrapping.words, ("function", "linking", "clause", "joints", "particles", "limits", "address", "meta", "negations")
)
MOST_PHRASES = 8
"""of a sentence; those after them hardly tell anything"""
_LONGEST = 12
"""words of a phrase; no passage holds more of an answer word for word"""
_GAP = 3
"""words between two telling words that may belong to one name: "Lord of the Rings" """
_FEWEST, _FEW = 3, 8
"""words of a sentence; fewer are a phrase, and so are a few more if none is from the question"""
_RARE = 6.0
"""a rarer first word of a sentence is a name if it is capitalised, as in `languages.naming_words`"""
_STRONG = ";:()[]—–!?\n。，；：！？（）《》"
"""marks that no phrase crosses"""
_HYPHENS = ("-", ".", "/", "‐", "‑", "–")
_END = 40
"""characters at the end of a sentence among which its full stop is looked for"""
_SENTENCE_END = re.compile(r"(?<![A-Z])(?<!\b[JS]r)(?<!\bInc)(?<!\bLtd)(?<!\bCo)(?<!\bCorp)[.!。！]\W*$")
_QUOTED = re.compile('"[^"\n]{1,80}"|“[^“”\n]{1,80}”|„[^„“\n]{1,80}“|《[^《》\n]{1,40}》|「[^「」\n]{1,40}」')
_OFFERS = re.compile(r"\b(?:or|oder|which|welche[rs]?)\b|还是|哪", re.IGNORECASE)
_SEVERAL = re.compile(
    r"\b(?:two|three|four|five|six|both|list|names of|zwei|drei|vier|beide|alles|welche|welchen)\b|哪些|哪两|哪几|分别"
    r"|\b(?:what|which) (?:\w+ ){0,2}\w+[^s\W]s (?:are|were|do|can|have|should|must|does|may)\b",
    re.IGNORECASE,
)


class Asked:
    """A question, as answers are read beside it."""

    def __init__(self, question: str) -> None:
        self.text = Text(question)
        self.words = frozenset(self.text.words)
        self._stems = frozenset(stem(word) for word in self.words - _FUNCTION)
        self.offers = bool(_OFFERS.search(question))
        """whether it offers things to choose from"""
        self.wants_several = bool(_SEVERAL.search(question))
        self.slot = frozenset(_slot(self.text.words))
        """stems of the thing that is asked for: "city" of "what city" """

    def has(self, word: str) -> bool:
        """Return whether the question has a word in any form."""
        return word in self.words or stem(word) in self._stems


def _slot(words: Sequence[str]) -> Iterator[str]:
    for number, word in enumerate(words):
        if word in ("what", "which", "welche", "welcher", "welches", "welchen", "many", "much", "viele"):
            for following in words[number + 1 : number + 4]:
                if following in _FUNCTION:
                    break
                yield stem(following)


Telling = tuple[tuple[str, ...], tuple[str, ...]]
"""the telling phrases of a sentence, most telling first, and its telling words in order"""


class Sentence:
    """A sentence, or an item of a list, beside the question that it answers."""

    def __init__(self, asked: Asked, text: str, stands_alone: bool = False) -> None:
        """Take what stands alone, as an item of a list, for a name or phrase even if it ends like a sentence."""
        self.text = text
        self._stands_alone = stands_alone
        self._asked = asked
        read = wrapping.read(text)
        self.words, self._raw, self._places = read.words, read.raw_words, read.places
        self._marks, self._glued = _between(read)
        self._quotes = _quotes(read)
        self._named = [self._is_name(number) for number in range(len(self.words))]
        self.kinds = [self._kind(number) for number in range(len(self.words))]
        self._adopt_glued()
        for start, end in self._quotes:
            if "T" in self.kinds[start:end]:
                self.kinds[start:end] = "T" * (end - start)

    @property
    def says_more(self) -> bool:
        """Whether the sentence says anything beyond the question."""
        return "T" in self.kinds

    @property
    def is_empty(self) -> bool:
        """Whether the sentence has function words alone."""
        return "T" not in self.kinds and "Q" not in self.kinds

    @property
    def is_phrase(self) -> bool:
        """Whether this is a name, a number or a phrase, and no sentence."""
        if len(self.words) > _LONGEST or any(self._is_small(n) and w in _CLAUSE for n, w in enumerate(self.words)):
            return False
        if self._stands_alone or len(self.words) < _FEWEST or not _SENTENCE_END.search(self.text[-_END:]):
            return True
        if all(self._named[n] or word in _JOINTS for n, word in enumerate(self.words)):
            return True
        if len(self.words) > _FEW:
            return False
        starts_small = self._raw[0][0].islower() and not self._is_lower
        return starts_small or not any(
            kind == "Q" and stem(word) not in self._asked.slot
            for word, kind in zip(self.words, self.kinds, strict=True)
        )

    @property
    def is_choice(self) -> bool:
        """Whether this is one of the things that the question offers: "Leeds." """
        return (
            self._asked.offers
            and self.is_phrase
            and not self.is_empty
            and bool(_SENTENCE_END.search(self.text[-_END:]))
        )

    def telling(self, judges: bool = False) -> Telling:
        """Return what is telling; all content if the sentence says yes or no to what the question says."""
        told = [n for n, kind in enumerate(self.kinds) if kind == "T"]
        if not told:
            return self._telling_of_question(judges)
        phrases = (self._phrase(run) for run in self._ranked())
        return tuple(dict.fromkeys(phrases))[:MOST_PHRASES], tuple(self.words[n] for n in told)

    def focus(self) -> str:
        """Return the text of what the sentence names or lists; nothing if it has nothing in focus."""
        if self.is_phrase:
            return self.text
        run = self._predicate()
        if run is None and self._asked.wants_several and self.says_more:
            run = self.kinds.index("T"), len(self.kinds) - self.kinds[::-1].index("T")
        return self.text[self._places[run[0]][0] : self._places[run[1] - 1][1]] if run else ""

    # --- Words --------------------------------------------------------------------------------------------------------

    def _is_name(self, number: int) -> bool:
        """Return whether a word is a number or capitalised; the first word of a sentence must also be rare."""
        raw = self._raw[number]
        if raw[0].isdigit() or (self.words[number] == "may" and self._is_month(number)):
            return True
        if raw == "I" and number > 0 and not self._marks[number]:  # a king's number
            return self._raw[number - 1][0].isupper()
        if not raw[0].isupper() or self.words[number] in _ADDRESS:
            return False
        if number > 0:
            return True
        return self.words[0] not in _FUNCTION and (idf(self.words[0]) >= _RARE or self._name_goes_on())

    def _is_month(self, number: int) -> bool:
        return any(raw[0].isdigit() for raw in self._raw[max(number - 1, 0) : number + 2])

    def _name_goes_on(self) -> bool:
        """Return whether a name or number follows the first word: "Studio 33", "Medal of Honor"."""
        behind = next((n for n in range(1, min(4, len(self._raw))) if self.words[n] not in ("of", "and", "the")), None)
        if behind is None or self._marks[1] not in ("", "," if not self.words[0].endswith("ly") else ""):
            return False
        return self._raw[behind][0].isupper() or self._raw[behind][0].isdigit()

    def _kind(self, number: int) -> str:
        word = self.words[number]
        if word in _NEGATIONS and word not in self._asked.words:
            return "T"
        if word == "may" and self._is_month(number):
            return "Q" if word in self._asked.words else "T"
        if word in _FUNCTION:
            return "N" if self._named[number] else "F"
        is_known = self._shares_pair(number) if is_unspaced(word) else self._asked.has(word)
        return "Q" if is_known or (word in _META and not self._named[number]) else "T"

    def _shares_pair(self, number: int) -> bool:
        """Return whether the question has a character with its neighbour; alone it says little about a word."""
        pairs = (self.words[number - 1 : number + 1] if number else [], self.words[number : number + 2])
        return any(len(pair) == 2 and f" {' '.join(pair)} " in self._asked.text.joined for pair in pairs)

    def _adopt_glued(self) -> None:
        """Make a word telling that a hyphen or dot binds to one that is: "two-time"."""
        for number in range(1, len(self.kinds)):
            pair = self.kinds[number - 1 : number + 1]
            if self._glued[number] and sorted(pair) in (["Q", "T"], ["F", "T"], ["N", "T"]):
                self.kinds[number - 1 : number + 1] = ["T", "T"]

    def _is_small(self, number: int) -> bool:
        if not self._raw[number][0].isupper():
            return True
        following = self._raw[number + 1 : number + 2]
        return number == 0 and not (following and (following[0][0].isupper() or following[0][0].isdigit()))

    def _links(self, number: int) -> bool:
        """Return whether a word is a linking verb; the "s" of "it's" is, and that of "McCall's" is not."""
        word = self.words[number]
        if word not in _LINKING or not self._is_small(number):
            return False
        return word not in ("s", "re") or (number > 0 and self.words[number - 1] in _FUNCTION)

    def _phrase(self, run: Run) -> str:
        return f" {' '.join(self.words[slice(*run)])} "

    # --- Phrases ------------------------------------------------------------------------------------------------------

    def _ranked(self) -> list[Run]:
        """Return where the telling phrases stand, most telling first."""
        runs = [self._widen(run) for run in self._runs()]
        runs.sort(key=self._weight, reverse=True)
        parts = [part for run in runs for part in self._parts(run)]
        first = (0, len(self.words)) if self.is_phrase else self._predicate() or self._subject()
        return [*([first] if first else []), *runs, *parts]

    def _weight(self, run: Run) -> float:
        """Return how much a phrase tells: the rarity of its telling words, twice that of a name's or number's."""
        told = [n for n in range(*run) if self.kinds[n] == "T"]
        return fsum(idf(self.words[n]) * (2.0 if self._named[n] else 1.0) for n in told)

    def _predicate(self) -> Run | None:
        """Return what stands behind a linking verb, where all before it is from the question."""
        first = self.kinds.index("T") if "T" in self.kinds else len(self.words)
        verbs = [n for n in range(first) if self._links(n)]
        if not verbs or first == len(self.words):
            return None
        end = self._predicate_end(first)
        if end == first:
            return None
        start = verbs[-1] + 1
        while start < first and not self._begins(start, first):
            start += 1
        return (start, end) if end - start <= _LONGEST else None

    def _subject(self) -> Run | None:
        """Return what stands before a linking verb at the beginning, where all behind it is from the question."""
        last = len(self.kinds) - 1 - self.kinds[::-1].index("T")
        verb = next((n for n in range(last + 1, min(last + 4, len(self.words))) if self._links(n)), None)
        if verb is None or verb > _LONGEST or set(self.kinds[last + 1 : verb]) - {"Q"}:
            return None
        if any(self.words[n] in _CLAUSE and self._is_small(n) for n in range(verb)):
            return None
        if any(
            mark and not (mark == "," and self._named[n - 1] and self._named[n])
            for n, mark in enumerate(self._marks[:verb])
        ):
            return None
        first = self.kinds.index("T")
        if set(self.kinds[:first]) - {"F"}:
            return self._widen((first, last + 1))[0], verb
        is_title = self._raw[0][0].isupper() and self._raw[1][0].isupper()  # "La Spezia is …"
        return 0 if is_title else first, verb

    def _begins(self, number: int, first: int) -> bool:
        """Return whether a name begins here, though its first telling word comes later: "Medal of Honor"."""
        between = range(number, first)
        if self.words[number] in _LIMITS and number + 1 == first:
            return True
        if self.kinds[number] == "F" or set(self._marks[number + 1 : first + 1]) - {"", ","}:
            return False
        if self._is_lower:
            return all(self.kinds[n] != "F" or self.words[n] in _JOINTS for n in between)
        return self._named[first] and all(self._named[n] or self.words[n] in _JOINTS for n in between)

    @property
    def _is_lower(self) -> bool:
        """Whether the whole sentence is in lower case, so that names are not to be seen."""
        return not any(raw[0].isupper() for raw in self._raw)

    def _predicate_end(self, first: int) -> int:
        """Return where the name or phrase ends that has its first telling word here."""
        last = max(n for n, kind in enumerate(self.kinds) if kind == "T")
        for n in range(first + 1, last + 1):
            if self._marks[n] and self._goes_on_about(n, last):
                last = n - 1
                break
            if self.words[n] in _CLAUSE and self._is_small(n):
                return first  # a clause, and no name
        rest = self.kinds[last + 1 :]
        is_end = not any(self._marks[last + 1 :])
        is_name = len(set(rest)) < 2 or self.words[last + 1] == "of"
        if is_end and len(rest) <= _GAP and is_name:
            return len(self.words)  # a title's last words ("Mad About You"), a surname that the question has too
        return self._widen((first, last + 1))[1]

    def _goes_on_about(self, number: int, last: int) -> bool:
        """Return whether a new thing begins after a mark, and not the next part of a name, date or list."""
        if self._marks[number] == ":" and self._named[number - 1]:
            return not self._named[number]  # "Star Wars: The Force Awakens"
        if self._marks[number] != ",":
            return True
        word = self.words[number]
        if self._named[number] or word in ("and", "or", "und"):
            return False
        return word in _FUNCTION or not self._is_lower or last - number > 1

    def _runs(self) -> Iterator[Run]:
        """Yield the runs of telling words, with the joints of names between them."""
        start = end = -1
        for number, kind in enumerate(self.kinds):
            if kind != "T":
                continue
            if start < 0 or number - start >= _LONGEST or not self._joins(end, number):
                if start >= 0:
                    yield start, end
                start = number
            end = number + 1
        if start >= 0:
            yield start, end

    def _joins(self, end: int, number: int) -> bool:
        """Return whether what stands between two telling words makes one phrase of them."""
        if (self._glued[number] and end == number) or any(a < number < b for a, b in self._quotes):
            return True
        if any((number == a or end == b) and b - a > 2 for a, b in self._quotes):
            return False  # a title stands alone; a shorter quotation may be a nickname in a name
        marks = set(self._marks[end : number + 1]) - {""}
        before, after = self._named[end - 1], self._named[number]
        if marks - {","} or number - end > _GAP or (marks and not (before and after)):
            return False
        if self.words[end - 1] in _NEGATIONS:
            return True
        if end == number:
            return before == after or self.words[end - 1][0].isdigit()
        if not all(self.words[n] in _JOINTS or self.kinds[n] == "N" or self._named[n] for n in range(end, number)):
            return False
        joints = {self.words[n] for n in range(end, number) if not self._named[n]}
        has_digit = self.words[number][0].isdigit() or self.words[end - 1][0].isdigit()
        return before == after and (not has_digit or joints <= {"of", "and", "to"})

    def _widen(self, run: Run) -> Run:
        """Return a run with the words of the question around it that belong to the same name, or that it counts."""
        start, end = run
        while end < len(self.words) and not self._marks[end]:
            joints = self._joints_on(end)
            if not joints and not self._belongs(end):
                break
            end += joints + 1
        while start > 0 and self._marks[start] in ("", "," if start == 1 else "") and self._is_part(start - 1, start):
            start -= 1
        name = start - 3 if self.words[start - 2 : start] == ["of", "the"] else start - 2
        if start > 1 and self.words[name + 1] == "of" and name >= 0 and self._named[name] and self._named[start]:
            start = name
        return start, self._subject_end(start, end)

    def _subject_end(self, start: int, end: int) -> int:
        """Return where a subject ends whose last words are from the question: "manual transmission is …"."""
        verb = next((n for n in range(end, min(end + 3, len(self.words))) if self.words[n] in _LINKING), end)
        begins = all(kind == "F" for kind in self.kinds[:start])
        return verb if begins and set(self.kinds[end:verb]) <= {"Q"} and not any(self._marks[end:verb]) else end

    def _joints_on(self, end: int) -> int:
        """Return how many joints lead on to the rest of a name: "Falling Away from Me", "Functioning of the Union"."""
        joints = 2 if self.words[end : end + 2] == ["of", "the"] else 1
        behind = end + joints
        if behind >= len(self.words) or self.words[end] not in _JOINTS or any(self._marks[end : behind + 1]):
            return 0
        goes_on = self.kinds[behind] == "N" or (self.words[end] in _PARTICLES and self._named[behind])
        return joints if goes_on and self._named[end - 1] else 0

    def _belongs(self, number: int) -> bool:
        """Return whether a word of the question goes on with the phrase before it."""
        if self.kinds[number] in "FT":
            return False
        before, is_asked = self.words[number - 1], stem(self.words[number]) in self._asked.slot
        if before in _NEGATIONS or (before[0].isdigit() and is_asked):
            return not self._named[number]
        after = next((word for word in self.words[number + 1 :] if stem(word) not in self._asked.slot), None)
        return self._is_part(number, number - 1) or (is_asked and (after is None or after in _LINKING))

    def _is_part(self, number: int, neighbour: int) -> bool:
        """Return whether a word of the question is part of the same name as its neighbour."""
        if not (self._named[number] and self._named[neighbour]) or self.kinds[number] not in "QN":
            return False
        first, second = sorted((number, neighbour))
        return not self.words[first][0].isdigit() or self.words[second][0].isdigit()

    def _parts(self, run: Run) -> Iterator[Run]:
        """Yield the names and numbers in a longer run, a number also without what it counts."""
        for start, end in _consecutive([n for n in range(*run) if self._named[n]]):
            if (start, end) != run:
                yield start, end

    # --- Sentences that say nothing beyond the question ---

    def _telling_of_question(self, judges: bool) -> Telling:
        """Return the part that names something: one of the things that the question offers."""
        content = [n for n, kind in enumerate(self.kinds) if kind != "F" and self.words[n] not in _META]
        content = content or list(range(len(self.words)))
        start, end = (0, len(self.words)) if judges or self.is_phrase else self._naming_part()
        told = [n for n in content if start <= n < end] or content
        whole = (0, len(self.words)) if self.is_phrase else (told[0], told[-1] + 1)
        runs = [] if judges else [whole]
        phrases = (self._phrase(run) for run in (*runs, *_consecutive(told)))
        return tuple(dict.fromkeys(phrases))[:MOST_PHRASES], tuple(self.words[n] for n in told)

    def _naming_part(self) -> Run:
        """Return what stands behind the linking verb, or before it where a name stands only there."""
        verbs = [n for n in range(len(self.words)) if self._links(n)]
        if not verbs:
            names = next(_consecutive([n for n, named in enumerate(self._named) if named]), None)
            return names if names and names[0] <= 1 and self._named[names[0]] else (0, len(self.words))
        behind = range(verbs[-1] + 1, len(self.words))
        after = next((n for n in behind if self.kinds[n] != "F" and self.words[n] not in _META), None)
        if after is None or (self._raw[0][0].isupper() and self.kinds[0] != "F" and not self._named[after]):
            return 0, verbs[0]
        return verbs[-1] + 1, len(self.words)


def _between(read: Text) -> tuple[list[str], list[bool]]:
    """Return the mark before each word that may end a phrase, and whether a hyphen or dot binds it to the last."""
    marks, glued, at = [], [], 0
    for start, end in read.places:
        between = read.original[at:start]
        is_number = at > 0 and read.original[at - 1].isdigit() and read.original[start].isdigit()
        is_glued = at > 0 and (between in _HYPHENS or (is_number and between in (":", ",")))
        strong = next((mark for mark in between if mark in _STRONG), "")
        comma = "," if "," in between or "、" in between else ""
        marks.append("" if is_glued or not at else strong or comma)
        glued.append(is_glued)
        at = end
    return marks, glued


def _quotes(read: Text) -> list[Run]:
    """Return where titles and other short phrases stand between quotation marks."""
    starts = [start for start, _ in read.places]
    found = (bisect_left(starts, at) for match in _QUOTED.finditer(read.original) for at in match.span())
    return [(start, end) for start, end in zip(found, found, strict=True) if start < end]


def _consecutive(numbers: Sequence[int]) -> Iterator[Run]:
    """Yield the stretches of numbers that follow one another."""
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield numbers[start], numbers[place - 1] + 1
            start = place
