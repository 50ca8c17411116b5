"""Which passages of a collection may form the chain of a question, its answer being known.

Knowing the answer makes this easier than retrieval for answering. Ends of chains are passages that contain the answer,
those with most words of the question first; heads are those with most of them or whose title the question names. Names
in heads are looked up among the titles, and so are names in ends, and ends' titles in all texts: what links the two may
have no word of the question. Then every passage is weighed by the best pair with an end to which it belongs, and the
best are kept.

A question is asked in three rounds; finding is a generator that yields what it asks and is sent what was found.
"""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, zip_longest
from numbers import Integral
from typing import NamedTuple

from rechain.errors import RechainError
from rechain.formats.datasets.questions import Entry
from rechain.index.engine import Ask, Condition, Hit, dates_in
from rechain.index.index import Index
from rechain.index.paths import Pool, find_by_entities
from rechain.schema import Passage, Question, Recovered
from rechain.text.answers.claims import read_answer
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.languages import idf, rarities
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

Finding = Generator[list[Ask], list[list[Hit]], list[Passage]]
"""yields the queries of a round, is sent their hits, and returns passages, best first"""

OWN = "given"
"""what is added to the id of a passage that came with a question where the index has another passage of that id"""
_FAMILIAR = 2.0
"""rarity: words of the question below it (more than 1 of 7 passages) find nothing, and take the most time"""
_MOST_WORDS = 40
"""words of a question that are asked for, the rarest: a question is no document"""
_HEADS, _ENDS, _NAMED, _FOLLOWING, _NEIGHBOURS = 15, 15, 8, 20, 12
"""passages that each ask returns. With a third to two thirds more (20, 20, 10, 30, 20) no more right passages are among
the best 10 or 15 for HotpotQA's train_300, in 1.17 times the time"""
_MOST, _MOST_ON_PATHS = 12, 60
"""passages of a question by default, and of one whose entities the data names: more, as the data says what links them.
By train_300 of HotpotQA, which is apart from what is measured: among 10 and 12 the default model finds 87.9 % of the
chains, among 15 it finds 87.3 % and among 6 to 8 it finds 85 %"""
_READ_HEADS, _READ_ENDS = 10, 10
"""best heads and ends whose names are looked up"""
_PARTS = re.compile(r"[,;:?!]\s(?!\d)|\s(?:and|while|whereas|but|und|während|sowie)\s", re.IGNORECASE)
_FEW_ENDS = 3
"""passages that contain the answer: if there are fewer, those with most words of question and answer are read too"""
_SHORT = 5
"""words of an answer that may be a name"""
_MOST_PARTS = 6
"""parts of a question that are searched one by one"""
_OF_WHOLE, _OF_SOURCE, _OF_PART = 8, 2, 1
"""passages that are used of a search for question and answer, for what a source says, and for another part"""
_MOST_PHRASES = 2
"""telling phrases of a claim, the most telling first; a passage that holds only the others is found by its words"""
_MOST_CLAIMS = 4
"""claims of an answer that are asked for one by one: more of them are a list of which all passages look alike"""
_LONGEST_NAME = 6
"""words of a name: hardly a title that another text spells out is longer"""
_RARE_NAME = 3.0
"""rarity of a single word of the question that may be a title"""
_LONGEST_TITLE = 8
"""words of a title that a question spells out"""


@dataclass(frozen=True, slots=True)
class FindSettings:
    """How many passages are looked at."""

    most: int | None = None
    """passages of a question; None: 12, or 60 of a question whose entities the data names"""

    def __post_init__(self) -> None:
        if self.most is not None and not (isinstance(self.most, Integral) and 1 <= self.most <= 1_000):
            raise RechainError(f"1 to 1,000 passages may be looked at for a question, not {self.most!r:.80}.")


def find_passages(
    index: Index,
    questions: Sequence[Question],
    settings: FindSettings | None = None,
) -> list[list[Passage]]:
    """Return for each question the passages of an index among which its chain may lie, best first.

    The index is asked once a round for all questions.
    """
    settings = settings or FindSettings()
    findings = [_find(question, settings, index) for question in questions]
    results: list[list[Passage]] = [[] for _ in findings]
    replies: dict[int, list[list[Hit]] | None] = dict.fromkeys(range(len(findings)))
    while replies:
        asks: dict[int, list[Ask]] = {}
        for number, reply in replies.items():
            try:
                asks[number] = next(findings[number]) if reply is None else findings[number].send(reply)
            except StopIteration as end:
                results[number] = end.value
        hits = iter(index.search([ask for of_question in asks.values() for ask in of_question]))
        replies = {number: [next(hits) for _ in of_question] for number, of_question in asks.items()}
    return results


class WholeQuestion(NamedTuple):
    """A question with the passages that were found for it."""

    question: Question
    own: frozenset[str]
    """the ids of the passages that came with the question and are not in the index"""


def fill_questions(
    index: Index,
    questions: Sequence[Question],
    settings: FindSettings | None = None,
) -> list[WholeQuestion]:
    """Return questions with their own passages and those that an index has for them.

    A question that names its passages by id has said among which passages its chain is: no others are sought.
    """
    open_questions = [question for question in questions if not _names_passages(question)]
    found = iter(find_passages(index, open_questions, settings))
    named = index.named(passage.id for question in open_questions for passage in question.passages)
    known = {passage.id: passage for passage in named}
    return [
        WholeQuestion(one, frozenset()) if _names_passages(one) else _merged(one, next(found), known)
        for one in questions
    ]


def fill_entries(index: Index, entries: Sequence[Entry], settings: FindSettings | None = None) -> list[Entry]:
    """Return entries with the passages that an index has for their questions; those that have them stay as they are."""
    questions = {
        place: entry.content
        for place, entry in enumerate(entries)
        if entry.own is None and isinstance(entry.content, Question)
    }
    filled = dict(zip(questions, fill_questions(index, list(questions.values()), settings), strict=True))
    return [
        entry._replace(content=filled[place].question, own=filled[place].own) if place in filled else entry
        for place, entry in enumerate(entries)
    ]


def _names_passages(question: Question) -> bool:
    return bool(question.passages) and "passage_ids" in (question.model_extra or {})


def _merged(question: Question, found: Sequence[Passage], known: Mapping[str, Passage]) -> WholeQuestion:
    """Return a question with its own passages before those that were found; one that is in the index is the index's.

    `known` are the passages of the index that have the ids of own ones, whether they were found or not.
    """
    texts = {(passage.title, passage.text) for passage in found}
    taken = {passage.id for passage in found} | {passage.id for passage in question.passages if passage.id in known}
    own, copied = [], []
    for passage in question.passages:
        text, same = (passage.title, passage.text), known.get(passage.id)
        if text in texts:
            continue
        if same and (same.title, same.text) == text:
            copied.append(same)
            texts.add(text)
            continue
        if passage.id in taken:
            names = (f"{passage.id} ({OWN} {number})" for number in count(1))
            passage = passage.model_copy(update={"id": next(name for name in names if name not in taken)})
        taken.add(passage.id)
        own.append(passage)
    whole = question.model_copy(update={"passages": [*own, *copied, *found]})
    return WholeQuestion(whole, frozenset(passage.id for passage in own))


def add_named(index: Index, question: Question, recovered: Recovered) -> Question:
    """Return a question with all passages that its chains name: they may come from more than were found now."""
    known = {passage.id for passage in question.passages}
    answers = [one.answer.passage for one in recovered.chains if one.answer]
    claimed = [claim.passage for claim in recovered.claims if claim.passage is not None]
    names = (name for name in chain(*(one.passages for one in recovered.chains), answers, claimed) if name not in known)
    others = index.named(names)
    return question.model_copy(update={"passages": [*question.passages, *others]}) if others else question


def _find(question: Question, settings: FindSettings, index: Index) -> Finding:
    """Find along the entities that the data names, where it names both ends and the index has a path, else by words."""
    if question.answer_entity is not None and question.question_entities:
        found = yield from find_by_entities(question)
        if found:
            return found[: settings.most or _MOST_ON_PATHS]
    return (yield from _find_by_words(question, settings, index))


def _find_by_words(question: Question, settings: FindSettings, index: Index) -> Finding:
    """Find heads, ends and what links them by words, names and titles, and what each part of the question asks for."""
    words = query_words(question.question)
    answer = _Answer(question)
    pool = Pool(answer.phrases)
    pieces = searches_of(question.question, answer, index)
    heads, named, *found = yield [
        Ask(words, limit=_HEADS),
        Ask(words, (Condition("name", _question_names(question.question)),), limit=_NAMED),
        *(piece.ask for piece in pieces),
        *(Ask(words, (condition,), limit=_ENDS) for condition in answer.conditions),
    ]
    of_pieces, ends = found[: len(pieces)], found[len(pieces) :]
    pool.add(chain(heads, named, *ends))
    if answer.is_long or pool.ends < _FEW_ENDS:
        pool.add(chain.from_iterable(of_pieces))
    first = _names_of_all(pool.best(heads + named, _READ_HEADS))
    (following,) = yield [Ask(words, (Condition("name", first),), answer.any_phrase, _FOLLOWING)]
    pool.add(following)
    ends_read = pool.best_ends(_READ_ENDS)
    last = _names_of_all(ends_read)
    titles = tuple(dict.fromkeys(name.strip() for view in ends_read for name in view.names[-1:]))
    shared = tuple(sorted(frozenset(first).intersection(last)))
    found = yield [
        Ask(words, (Condition("phrase", titles),), limit=_NEIGHBOURS),
        Ask(words, (Condition("name", last),), limit=_NEIGHBOURS),
        Ask(words, (Condition("name", shared),), limit=_NEIGHBOURS // 2),
    ]
    pool.add(chain.from_iterable(found))
    best = [hits[: piece.places] for piece, hits in zip(pieces, of_pieces, strict=True)]
    return pool.select(settings.most or _MOST, [hit for hits in zip_longest(*best) for hit in hits if hit])


class _Piece(NamedTuple):
    """The search for one piece of evidence."""

    ask: Ask
    places: int
    """how many of its best passages are used, on whatever path they lie"""


def searches_of(question: str, answer: "_Answer", index: Index) -> list[_Piece]:
    """Return the searches of which each is for one piece of evidence: the question with its answer, and its parts.

    A part that names a source or a date of the collection is searched among the passages of this source and date. A
    short answer stands in the passage, and paths lead to it; what a longer one or a "yes" says is in several places.
    """
    parts = [part for part in _PARTS.split(question) if len(query_words(part)) > 1][:_MOST_PARTS]
    pieces = [_Piece(Ask(_words_of(question, answer), limit=_ENDS), _OF_WHOLE if answer.is_long else 0)]
    for part in parts:
        words = _words_of(part, answer)
        sources = [run for run in _question_names(part) if index.count_label(run)]
        when = Condition("label", tuple(date for date in dates_in(part) if index.count_label(date)))
        prefer = when if when.values else None
        for source in sources:
            others = tuple(word for word in words if word not in source.split())
            pieces.append(_Piece(Ask(others, (Condition("label", (source,)),), prefer), _OF_SOURCE))
        if not sources and prefer:
            pieces.append(_Piece(Ask(words, (when,)), _OF_SOURCE))
        elif not sources and answer.is_long and len(parts) > 1:
            pieces.append(_Piece(Ask(words, limit=_ENDS), _OF_PART))
    return pieces


def _words_of(text: str, answer: "_Answer") -> tuple[str, ...]:
    return tuple(dict.fromkeys((*query_words(text), *answer.words)))[: 2 * _MOST_WORDS]


def query_words(text: str) -> tuple[str, ...]:
    """Return the words of a question by which passages are found, the rarest first."""
    rare = rarities(Text(text))
    telling = {word: rarity for word, rarity in rare.items() if rarity >= _FAMILIAR} or rare
    return tuple(sorted(telling, key=lambda word: (-telling[word], word))[:_MOST_WORDS])


def _question_names(text: str) -> tuple[str, ...]:
    """Return the runs of words in a question that may be titles."""
    words = Text(text).words
    runs = (words[start : start + size] for start in range(len(words)) for size in range(1, _LONGEST_TITLE + 1))
    return tuple(dict.fromkeys(" ".join(run) for run in runs if len(run) > 1 or idf(run[0]) >= _RARE_NAME))


def _names_of_all(views: Iterable[PassageView]) -> tuple[str, ...]:
    return tuple(sorted({name for view in views for name in find_names(view.text)}))


def find_names(text: Text) -> set[str]:
    """Return the runs of words in a text that may be names: they begin and end with a capital letter or a digit."""
    raw, words = text.raw_words, text.words
    capitals = [number for number, word in enumerate(raw) if word[0].isupper() or word[0].isdigit()]
    return {
        " ".join(words[first : last + 1])
        for place, first in enumerate(capitals)
        for last in capitals[place : place + _LONGEST_NAME]
        if last - first < _LONGEST_NAME
    }


class _Answer:
    """The queries of an answer: its phrases, claim by claim, and its words."""

    def __init__(self, question: Question) -> None:
        reading = read_answer(question.question, question.answer)
        is_text = reading.kind == "text"  # a mere "yes" stands nowhere
        claims = reading.claims if is_text else ()
        phrases = [tuple(sorted(AnswerMatcher(question).phrases))] if is_text else []
        phrases += [claim.phrases[:_MOST_PHRASES] for claim in claims[:_MOST_CLAIMS]]
        parts = [some for some in dict.fromkeys(phrases) if some]
        self.phrases = frozenset(phrase for some in parts for phrase in some)
        """of which a passage that may be an end holds one, as `words.phrase` joins them"""
        self.words = tuple(dict.fromkeys(word for claim in claims for word in claim.words))
        self.is_long = not is_text or len(Text(question.answer).words) > _SHORT
        """whether it is no name or number that a passage contains"""
        self.conditions = [Condition("phrase", tuple(map(str.strip, some))) for some in parts]
        """that a passage contains the answer, or a key part of one of its claims, word for word"""
        values = tuple(dict.fromkeys(value for condition in self.conditions for value in condition.values))
        self.any_phrase = Condition("phrase", values) if values else None
