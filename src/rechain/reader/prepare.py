"""From questions to the arrays that the chain reader learns from (read by `rechain.reader.train`)."""

import re
from calendar import month_name
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import zip_longest
from math import fsum
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from tokenizers import Tokenizer

from rechain.errors import InputError, QuestionError
from rechain.reader.pretrained import CONFIG, TOKENIZER, WEIGHTS, find, load_trainable
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import Arrivals, Case, ChainTexts, TokenText, flat_texts
from rechain.schema import Question
from rechain.scoring.interface import BUNDLED
from rechain.scoring.steps import StepOffers
from rechain.system.tensors import Array
from rechain.system.training import fingerprint, no_chain
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import Candidate, Candidates, CandidateSettings
from rechain.text.collection import Statistics
from rechain.text.evidence.features import nothing, prior, weigh
from rechain.text.evidence.search import find_evidence
from rechain.text.languages import idf, rarities
from rechain.text.passage_views import PassageView, first_sentences
from rechain.text.words import Span, Text, phrase

Find = Callable[[Question, CandidateSettings | None], Candidates]
"""builds C of a question, as `find_evidence` does"""
_FEWEST_JUDGED = 200
"""questions with wrong answers: from fewer a judge would learn them by heart"""


@dataclass(frozen=True)
class ReaderMaterial:
    """What a chain reader is trained from."""

    questions: Mapping[str, Array]
    judged: Mapping[str, Array] | None
    """right and wrong answers; None if too few questions have wrong ones"""
    sentences: Sequence[str]
    """of different questions, with different meanings"""
    left_out: Mapping[str, int]
    """the number of questions without a chain by the reason"""
    tokenizer: Tokenizer
    encoder: Path | None
    """the folder of an encoder or a model to start from; None: the bundled model"""

    @cached_property
    def record(self) -> dict[str, str | None]:
        """What is recorded of it in the folder of a run; the weights at the start are part of the fingerprint."""
        weights = sha256((self.start / WEIGHTS).read_bytes()).digest()
        digest = fingerprint(self.questions, self.judged or {}, {"start": np.frombuffer(weights, np.uint8)})
        encoder = None if self.encoder is None else str(self.encoder.resolve())
        return {"kind": "reader", "encoder": encoder, "fingerprint": digest}

    @property
    def start(self) -> Path:
        """The folder of the weights to start from."""
        return self.encoder or find(BUNDLED)


def prepare_reader(
    questions: Iterable[Question],
    settings: ReaderSettings,
    candidates: CandidateSettings,
    encoder: Path | None = None,
    collection: Statistics | None = None,
) -> ReaderMaterial:
    """Prepare questions to train a chain reader; `collection` is where the passages come from, if it is known."""
    if encoder is not None and not encoder.is_dir():
        raise InputError(f"--encoder {encoder} is not a folder; name one with {CONFIG}, {WEIGHTS} and {TOKENIZER}.")
    if encoder is not None and (encoder / CONFIG).is_file() and not (encoder / WEIGHTS).is_file():
        raise InputError(f"--encoder {encoder} has no {WEIGHTS}; weights in several files should be saved as one.")
    tokenizer = load_trainable(encoder or BUNDLED, settings).tokenizer
    preparation, kept = ReaderPreparation(tokenizer, settings), []
    left_out: Counter[str] = Counter()
    for question in questions:
        try:
            preparation.add(find_evidence(question, candidates, collection=collection))
            kept.append(question)
        except QuestionError as error:
            left_out[error.code] += 1
    if not kept:
        raise no_chain(left_out)
    arrays = preparation.arrays() | {"shared": preparation.shared(range(len(kept)))}
    answers = prepare_judge(kept, tokenizer, settings, candidates)
    judged = answers.arrays() if len(answers.ids) >= _FEWEST_JUDGED else None
    return ReaderMaterial(arrays, judged, first_sentences(kept), left_out, tokenizer, encoder)


class ReaderPreparation:
    """Takes questions one at a time: the evidence for their best chains, and these chains as tokens."""

    def __init__(self, tokenizer: Tokenizer, settings: ReaderSettings) -> None:
        self.ids: list[str] = []
        """of the questions"""
        self.kept: list[list[int]] = []
        """the numbers of the candidate chains of each question that are kept, best first by the prior"""
        self._tokenizer, self._settings = tokenizer, settings
        self._texts: list[TokenText] = []
        self._features: list[Array] = []
        self._may_be: list[Array] = []
        self._offers = StepOffers()
        self._chain_texts: list[int] = []
        """the number of the text of each chain"""
        self._links: list[list[tuple[int, int]]] = []
        """of each chain, passage by passage but the first, the number of the text and the slot of the link"""
        self._starts = [0]

    def add(self, candidates: Candidates, may_be: Sequence[bool] | None = None) -> None:
        """Add a question; `may_be` says which candidates may be right, if that is known: by their sizes, say."""
        features = weigh(candidates) if candidates.evidence is None else candidates.evidence
        believed = features @ prior()
        possible = np.ones(len(features), dtype=bool) if may_be is None else np.array(may_be)
        if not possible.any():
            raise QuestionError("no_link", "no candidate may be right")
        kept = self._choose(believed, possible)
        texts, settings = ChainTexts(candidates, self._tokenizer), self._settings
        chains = [candidates.chains[number] for number in kept]
        arrivals = Arrivals(chains)
        first, alone = len(self._texts), len(self._texts) + len(chains)
        self._texts += [texts.chain(chain, settings.max_tokens) for chain in chains]
        self._texts += [texts.arrival(arrival, settings.passage_tokens) for arrival in arrivals.all]
        self._chain_texts += range(first, alone)
        for chain in chains:
            self._links.append([(alone + arrival, slot) for arrival, slot in arrivals.places(chain)])
        self._features.append(features[kept])
        self._may_be.append(possible[kept])
        self._offers.add(candidates, believed, nothing(candidates))
        self._starts.append(len(self._chain_texts))
        self.ids.append(candidates.question.id)
        self.kept.append(kept)

    def _choose(self, believed: Array, may_be: Array) -> list[int]:
        """Return the best candidates that may be right, and others that have to be told from them, best first."""
        most = self._settings.most_chains
        ranked = np.argsort(-believed, kind="stable")
        possible, others = ranked[may_be[ranked]], ranked[~may_be[ranked]]
        kept = [*possible[: most - most // 3], *others, *possible[most - most // 3 :]][:most]
        return sorted(map(int, kept), key=lambda number: -believed[number])

    def arrays(self) -> dict[str, Array]:
        """Return all questions that were added; links are padded with slot 0 if chains are shorter than others."""
        most = max(map(len, self._links), default=0)
        padded = [[*links, *[(0, 0)] * (most - len(links))] for links in self._links]
        links = np.array(padded, dtype=np.int64).reshape(len(self._links), most, 2)
        return {
            **flat_texts(self._texts),
            "features": np.concatenate(self._features).astype(np.float32),
            "may_be": np.concatenate(self._may_be),
            "chain_start": np.array(self._starts, dtype=np.int64),
            "chain_text": np.array(self._chain_texts, dtype=np.int64),
            "link_text": np.ascontiguousarray(links[..., 0]),
            "link_slot": np.ascontiguousarray(links[..., 1]),
        }

    def shared(self, learned: Sequence[int]) -> Array:
        """Return the beliefs of the questions of these numbers about all kept chains, by the steps they share."""
        beliefs = zip(self._offers.told(learned), self.kept, strict=True)
        return np.concatenate([of_question[kept] for of_question, kept in beliefs]).astype(np.float32)


# ---- right and wrong answers, for the judge

# How the evidence for an answer is presented to the judge in training: as in recovery, it may be a single passage, or
# several without links.
_IN_SENTENCES, _TAIL_ALONE, _UNLINKED, _SIDE_BY_SIDE = 0.5, 0.25, 0.15, 0.7
"""shares: of the questions whose answers are written as sentences; of those with the last passage alone, and with
another one that is not linked to it; and of those that name several passages by title, with these"""
_NOTHING_VARIED = (1.0, 0.0, 1.0)
"""draws by which answers are as they are, passages that the question names side by side, and others in chains"""
_MOST_SIDE_BY_SIDE = 3
"""passages; more would be cut to a few words each"""


def prepare_judge(
    questions: Sequence[Question],
    tokenizer: Tokenizer,
    settings: ReaderSettings,
    candidates: CandidateSettings | None = None,
) -> "JudgePreparation":
    """Prepare right and wrong answers of questions.

    If the data names the answer's entity, other names of its kind are too often right as well.
    """
    wrong, preparation = WrongAnswers(questions, settings.seed), JudgePreparation(tokenizer, settings.judge_tokens)
    for question in questions:
        if question.answer_entity is None:
            preparation.add(question, wrong.choose(question, settings.wrong_answers), candidates)
    return preparation


class JudgePreparation:
    """Takes questions with wrong answers: each answer with its own best evidence, as tokens."""

    def __init__(self, tokenizer: Tokenizer, judge_tokens: int, varied: bool = True) -> None:
        """Vary how answers are written and how much of their evidence is shown; or not, to measure."""
        self.ids: list[str] = []
        """of the questions"""
        self._tokenizer, self._judge_tokens, self._varied = tokenizer, judge_tokens, varied
        self._texts: list[TokenText] = []
        self._starts = [0]

    def add(
        self,
        question: Question,
        wrong: Sequence[str],
        settings: CandidateSettings | None = None,
        find: Find = find_evidence,
    ) -> bool:
        """Add a question, if there is evidence for its answer and for a wrong one; return whether there is."""
        if not wrong:
            return False
        random = Random(f"0 {question.id}")
        draws = [random.random() for _ in range(3)] if self._varied else _NOTHING_VARIED
        wording = random.getstate()
        alone = question.model_copy(update={"answer_aliases": [], "answer_entity": None})
        questions = [question, *(alone.model_copy(update={"answer": answer}) for answer in wrong)]
        evidence = [_best_evidence(one, settings, find) for one in questions]
        right, *cases = [_make_case(candidates, chain, draws) for candidates, chain in evidence]
        if right is None or not any(cases):
            return False
        texts = ChainTexts(evidence[0][0], self._tokenizer)  # which cuts each passage into tokens once
        for case in filter(None, (right, *cases)):
            if draws[0] < _IN_SENTENCES:
                random.setstate(wording)  # right and wrong answers are worded alike
                case = case._replace(answer=write_sentence(question.question, case.answer, random))
            self._texts.append(texts.case(case, self._judge_tokens))
        self._starts.append(len(self._texts))
        self.ids.append(question.id)
        return True

    def arrays(self) -> dict[str, Array]:
        """Return all questions that were added; the first case of each is that of the right answer."""
        return {**flat_texts(self._texts), "case_start": np.array(self._starts, dtype=np.int64)}


def _best_evidence(question: Question, settings: CandidateSettings | None, find: Find) -> tuple[Candidates, Candidate]:
    """Return the best chain of an answer by the prior; if none leads to it, the passage with most of the question."""
    try:
        candidates = find(question, settings)
        evidence = weigh(candidates) if candidates.evidence is None else candidates.evidence
        return candidates, candidates.chains[int(np.argmax(evidence @ prior()))]
    except QuestionError:
        views, tails = _views_and_tails(question)
        return Candidates(question, views, tails, (), False), Candidate(_closest(question, views, tails), (), 0.0)


def _make_case(candidates: Candidates, chain: Candidate, draws: Sequence[float]) -> Case | None:
    """Return an answer with as much of its evidence as the draws decide; None if there is none."""
    question, views, passages, edges = candidates.question, candidates.views, chain.passages, chain.edges
    tails, named = set(candidates.tails), _named_passages(question, views)
    if draws[1] < _SIDE_BY_SIDE and len(named) > 1 and (not tails or tails & set(named)):
        passages, edges = tuple(named), ()
    elif not passages:
        return None
    elif draws[2] < _TAIL_ALONE:
        passages, edges = passages[-1:], ()
    elif draws[2] < _TAIL_ALONE + _UNLINKED:
        others = [number for number in range(len(views)) if number not in passages]
        passages, edges = (*_closest(question, views, others), passages[-1]), ()
    spans = {number: answer_spans(question, views[number]) for number in passages}
    return Case(passages, question.answer, spans, edges, chain.between if edges else ())


def answer_spans(question: Question, view: PassageView) -> list[Span | None]:
    """Return where the answer appears word for word in a passage; None is its title."""
    phrases = AnswerMatcher(question).phrases
    spans: list[Span | None] = [span for words in phrases for span in view.text.spans(words)]
    return [*([None] if any(words in view.title.joined for words in phrases) else []), *sorted(filter(None, spans))]


def _views_and_tails(question: Question) -> tuple[list[PassageView], list[int]]:
    """Return the passages of a question, and which of them contain the answer word for word."""
    views = [PassageView(passage) for passage in question.passages]
    return views, [number for number, view in enumerate(views) if answer_spans(question, view)]


def _closest(question: Question, views: Sequence[PassageView], numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the passage with most words of the question, if there is any."""
    words = frozenset(Text(question.question).words)
    return tuple(sorted(numbers, key=lambda number: -len(words & views[number].vocabulary))[:1])


def _named_passages(question: Question, views: Sequence[PassageView]) -> list[int]:
    """Return the passages whose titles are in the question, in its order."""
    text = Text(question.question).joined
    places = {number: text.find(view.title.joined) for number, view in enumerate(views) if view.title.words}
    named = sorted((number for number, place in places.items() if place >= 0), key=places.__getitem__)
    return named[:_MOST_SIDE_BY_SIDE]


# ---- answers as sentences

# Other ways than those of `research/answers.py`, which stay unseen so that they can be measured on.
_FRAMES = (
    "The answer is {answer}.",
    "It is {answer}.",
    "That would be {answer}.",
    "{answer}, as far as I can see.",
    "According to the documents, it is {answer}.",
    "Sure! The answer is **{answer}**.",
    "I found the following: {answer}.",
    "From the passages it follows that the answer is {answer}.",
    "Thanks for asking! It should be {answer}.",
)
_FRAMES_WITH_QUESTION = (
    "{rest}: {answer}.",
    "The {rest} is {answer}.",
    "As to the {rest}, the text says {answer}.",
    "You asked about the {rest}. That is {answer}.",
    "{answer} is the {rest}.",
)
_ASKING = re.compile(
    r"(?:(?:in|at|on|by|to|for|from|of|with|under|during) )?(?:what|which|who|whose|whom|where|when|why|how)"
    r"(?: (?:many|much|long|old))?(?: (?:is|was|are|were|does|did|do|has|had))?(?: the)? ",
    re.IGNORECASE,
)
"""how questions begin; the thing in question follows"""


def write_sentence(question: str, answer: str, random: Random) -> str:
    """Return a sentence that gives an answer; which one is drawn at random."""
    text = question.strip().rstrip("?. ")
    beginning = _ASKING.match(text)
    frame = random.choice(_FRAMES + _FRAMES_WITH_QUESTION if beginning else _FRAMES)
    written = frame.format(rest=text[beginning.end() :] if beginning else "", answer=answer)
    return written[:1].upper() + written[1:]


# ---- wrong answers
#
# Each is in the passages and of the right kind. Some answer other questions; others are names, values and words of the
# passages themselves, most of them from those with the right answer or much of the question, so that no word count
# distinguishes them from it.

Kind = Literal["judgement", "date", "year", "number", "name", "phrase"]

_JUDGEMENTS = {"yes": "no", "no": "yes"}
_MONTHS = frozenset(month.casefold() for month in month_name if month)
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_CLOSE_PASSAGES = 3
"""passages with the most of the question from which hard answers are taken: others are seldom mistaken for evidence"""
_FUNCTION_WORD = 1.5
"""words of less rarity (of, the, in …) make no difference between two answers"""
_CONTENT_WORD = 3.0
"""a stretch of words that begins or ends with one of less rarity (the, was, his …) is no answer"""
# Stricter than `PassageView.sentences`: a capital before the full stop (John F. Kennedy) ends no sentence.
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\]\"'][.!?])\s+(?=[A-Z\"(\[])")
_MONTH = f"(?:{'|'.join(filter(None, month_name))})"
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*(?:\.(?=\s[A-Z]))?"
_NAME_OR_VALUE = re.compile(
    rf"\b(?:(?P<date>\d{{1,2}} {_MONTH} \d{{4}}|{_MONTH} \d{{1,2}}, \d{{4}}|{_MONTH} \d{{4}})"
    r"|(?P<year>(?:1[0-9]|20)\d\d(?![\d,.]\d))"
    r"|(?P<number>\d[\d,]*(?:\.\d+)?(?: (?:million|billion|percent|miles|km|metres|feet|people))?)"
    rf"|(?P<name>{_CAPITALISED}(?:(?: (?:of|the|of the|de|von|van|for))? {_CAPITALISED})*))(?!\w)"
)
_LEADING_WORD = 2.0
"""words of less rarity (the, in, his …) are cut off the beginning of an answer"""
_LEAST_RARITY = {"name": 2.8, "number": 2.0, "year": 0.0, "date": 0.0}
"""of the rarest word of an answer: common names and small numbers are in too many passages"""
_MOST_ANSWER_WORDS = 7


def kind_of(answer: str) -> Kind:
    """Return what an answer looks like, by its form alone."""
    text = Text(answer)
    if len(text.words) == 1 and text.words[0] in _JUDGEMENTS:
        return "judgement"
    if _YEAR.fullmatch(answer.strip()):
        return "year"
    if any(character.isdigit() for character in answer):
        return "number" if _MONTHS.isdisjoint(text.words) else "date"
    return "name" if answer.strip()[:1].isupper() else "phrase"


class WrongAnswers:
    """Finds wrong answers among the answers of many questions and in passages."""

    def __init__(self, questions: Iterable[Question], seed: int = 0) -> None:
        self._seed = seed
        self._texts: dict[str, str] = {}
        """the answers of all questions, by their folded words"""
        self._lengths: dict[str, set[int]] = {}
        """how many words the answers have that begin with a word"""
        for question in questions:
            words = Text(question.answer).words
            if words and words[0] not in _JUDGEMENTS:
                self._texts.setdefault(phrase(question.answer), question.answer)
                self._lengths.setdefault(words[0], set()).add(len(words))

    def choose(self, question: Question, most: int) -> list[str]:
        """Return up to `most` wrong answers, about half of them other questions' and half from the passages.

        The choice depends on seed, question and answers alone.
        """
        if opposite := _JUDGEMENTS.get(phrase(question.answer).strip()):
            return [opposite]
        random = Random(f"{self._seed} {question.id}")
        others = self.of_others(question)
        random.shuffle(others)
        own = [answer for answer in _from_passages(question, random) if answer not in others[: most // 2]]
        chosen = own[: max(most - len(others), most - most // 2)]
        return chosen + others[: most - len(chosen)]

    def of_others(self, question: Question) -> list[str]:
        """Return the answers of other questions, of this one's kind, that are word for word in its passages."""
        found = dict[str, None]()
        for view in map(PassageView, question.passages):
            for words in (view.title.words, view.text.words):
                for place, first in enumerate(words):
                    for length in self._lengths.get(first, ()):
                        found.setdefault(f" {' '.join(words[place : place + length])} ")
        return list(filter(_checker(question), (self._texts[words] for words in found if words in self._texts)))


def _checker(question: Question) -> Callable[[str], bool]:
    """Return a function that decides whether an answer surely differs from the right one and is of its kind."""
    kind = kind_of(question.answer)
    right = [words for words in map(phrase, (question.answer, *question.answer_aliases)) if words]

    def is_wrong(answer: str) -> bool:
        words = phrase(answer)
        if not words or kind_of(answer) != kind:
            return False
        return not any(words in one or one in words or _are_alike(words, one) for one in right)

    return is_wrong


def _are_alike(one: str, other: str) -> bool:
    """Return whether two phrases have the same words but for order and function words: "City of New York"."""
    first, second = ({word for word in words.split() if idf(word) >= _FUNCTION_WORD} for words in (one, other))
    return first == second


def _from_passages(question: Question, random: Random) -> Iterator[str]:
    """Yield names, values or words, in turn from passages with the right answer and from close ones."""
    asked, is_wrong = phrase(question.question), _checker(question)
    views, tails = _views_and_tails(question)
    if any(words in asked for words in map(phrase, (question.answer, *question.answer_aliases)) if words):
        # "Which is older, A or B?": B
        named = [view.title.original for view in views if view.title.words and view.title.joined in asked]
        yield from filter(is_wrong, named)
    words = rarities(Text(question.question))
    overlaps = [fsum(words[word] for word in words.keys() & view.vocabulary) for view in views]
    close = sorted(range(len(views)), key=lambda number: -overlaps[number])[:_CLOSE_PASSAGES]
    groups = []
    for numbers in (tails, close):
        texts = (text for number in numbers for text in _texts_like(question.answer, views[number]))
        distinct = {phrase(text): text for text in texts if is_wrong(text)}
        groups.append([text for words, text in distinct.items() if words not in asked])
        random.shuffle(groups[-1])
    in_turn: dict[str, str] = {}
    for answer in (answer for pair in zip_longest(*groups) for answer in pair if answer):
        in_turn.setdefault(phrase(answer), answer)
    yield from in_turn.values()


def _texts_like(answer: str, view: PassageView) -> Iterator[str]:
    """Yield what in a passage has the form of an answer."""
    if kind_of(answer) == "phrase":
        return _stretches(view, len(Text(answer).words))
    return _names_and_values(view.passage.text)


def _names_and_values(passage: str) -> Iterator[str]:
    """Yield the names, dates and numbers of a passage that are rare enough to answer a question."""
    for sentence in map(Text, _SENTENCE_END.split(passage)):
        for match in _NAME_OR_VALUE.finditer(sentence.original):
            text = _trim(match.group())
            words = phrase(text)
            at = sentence.find(words) if words else None
            is_sentence_start = at == 0 and words.count(" ") == 2
            if at is not None and not is_sentence_start and _is_rare(words.split(), str(match.lastgroup)):
                yield text


def _trim(text: str) -> str:
    """Remove function words at the beginning, and the genitive at the end."""
    first, blank, rest = text.partition(" ")
    while blank and idf(first.casefold()) < _LEADING_WORD:
        first, blank, rest = rest.partition(" ")
    return (first + blank + rest).removesuffix("'s")


def _is_rare(words: list[str], form: str) -> bool:
    if len(words) == 1 and words[0] in _MONTHS:
        return False
    return len(words) <= _MOST_ANSWER_WORDS and max(map(idf, words)) >= _LEAST_RARITY[form]


def _stretches(view: PassageView, length: int) -> Iterator[str]:
    """Yield the stretches of `length` lower-case words that begin and end with a rare one."""
    words, raw = view.text.words, view.text.raw_words
    for first in range(len(words) - length + 1 if length else 0):
        last = first + length - 1
        if raw[first].islower() and min(idf(words[first]), idf(words[last])) >= _CONTENT_WORD:
            yield " ".join(raw[first : last + 1])
