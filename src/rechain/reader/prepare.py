"""From candidates to the arrays that the chain reader learns from (read by `rechain.reader.train`), without torch."""

import re
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
from tokenizers import Tokenizer

from rechain.errors import QuestionError
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import Arrivals, Case, ChainTexts, TokenText, flat_texts
from rechain.schema import Question
from rechain.scoring.evidence import PRIOR, nothing, weigh, weigh_beside
from rechain.scoring.steps import StepOffers
from rechain.system.tensors import Array
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import Candidate, Candidates, CandidateSettings, find_candidates
from rechain.text.passage_views import PassageView
from rechain.text.words import Span, Text

Find = Callable[[Question, CandidateSettings | None], Candidates]
"""builds C of a question, as `find_candidates` does"""


class ReaderPreparation:
    """Takes questions one at a time: the evidence for their best chains, and these chains as tokens."""

    def __init__(self, tokenizer: Tokenizer, settings: ReaderSettings) -> None:
        self.ids: list[str] = []
        """of the questions"""
        self.kept: list[list[int]] = []
        """the numbers of the candidate chains of each question that are kept, best first by the prior"""
        self._tokenizer = tokenizer
        self._settings = settings
        self._texts: list[TokenText] = []
        self._features: list[Array] = []
        self._fixed: list[Array] = []
        self._offers = StepOffers()
        self._chain_texts: list[int] = []
        """the number of the text of each chain"""
        self._links: list[list[tuple[int, int]]] = []
        """of each chain, passage by passage but the first, the number of the text and the slot of the link"""
        self._starts = [0]

    def add(self, candidates: Candidates) -> None:
        """Add a question."""
        features = weigh(candidates)
        beside = np.sum([np.zeros(len(features)), *weigh_beside(candidates).values()], axis=0)  # [chains]
        prior = features @ PRIOR + beside
        kept = np.argsort(-prior, kind="stable")[: self._settings.most_chains].tolist()
        texts = ChainTexts(candidates, self._tokenizer, self._settings.max_tokens)
        chains = [candidates.chains[number] for number in kept]
        arrivals = Arrivals(chains)
        first, alone = len(self._texts), len(self._texts) + len(chains)
        self._texts += [texts.chain(chain) for chain in chains]
        self._texts += [texts.arrival(arrival, self._settings.passage_tokens) for arrival in arrivals.all]
        self._chain_texts += range(first, alone)
        for chain in chains:
            self._links.append([(alone + arrival, slot) for arrival, slot in arrivals.places(chain)])
        self._features.append(features[kept])
        self._fixed.append(beside[kept])
        self._offers.add(candidates, prior, float(nothing(features) @ PRIOR))
        self._starts.append(len(self._chain_texts))
        self.ids.append(candidates.question.id)
        self.kept.append(kept)

    def arrays(self) -> dict[str, Array]:
        """Return all questions that were added; links are padded with slot 0 if chains are shorter than others."""
        most = max(map(len, self._links), default=0)
        padded = [[*links, *[(0, 0)] * (most - len(links))] for links in self._links]
        links = np.array(padded, dtype=np.int64).reshape(len(self._links), most, 2)
        return {
            **flat_texts(self._texts),
            "features": np.concatenate(self._features).astype(np.float32),
            "fixed": np.concatenate(self._fixed).astype(np.float32),
            "chain_start": np.array(self._starts, dtype=np.int64),
            "chain_text": np.array(self._chain_texts, dtype=np.int64),
            "link_text": np.ascontiguousarray(links[..., 0]),
            "link_slot": np.ascontiguousarray(links[..., 1]),
        }

    def shared(self, learned: Sequence[int]) -> Array:
        """Return the beliefs of the questions of these numbers about all kept chains, by the steps they share."""
        beliefs = zip(self._offers.told(learned), self.kept, strict=True)
        return np.concatenate([of_question[kept] for of_question, kept in beliefs]).astype(np.float32)


# How the evidence for an answer is presented to the judge in training: as in recovery, it may be a single passage, or
# several without links.
_IN_SENTENCES, _TAIL_ALONE, _UNLINKED, _SIDE_BY_SIDE = 0.5, 0.25, 0.15, 0.7
"""shares: of the questions whose answers are written as sentences; of those with the last passage alone, and with
another one that is not linked to it; and of those that name several passages by title, with these"""
_NOTHING_VARIED = (1.0, 0.0, 1.0)
"""draws by which answers are as they are, passages that the question names side by side, and others in chains"""
_MOST_SIDE_BY_SIDE = 3
"""passages; more would be cut to a few words each"""


def answer_spans(question: Question, view: PassageView) -> list[Span | None]:
    """Return where the answer appears word for word in a passage; None is its title."""
    phrases = AnswerMatcher(question).phrases
    spans: list[Span | None] = [span for words in phrases for span in view.text.spans(words)]
    return [*([None] if any(words in view.title.joined for words in phrases) else []), *sorted(filter(None, spans))]


def best_by_prior(candidates: Candidates) -> Candidate:
    """Return the candidate chain that the prior weighs most."""
    return candidates.chains[int(np.argmax(weigh(candidates) @ PRIOR))]


class JudgePreparation:
    """Takes questions with wrong answers: each answer with its own best evidence, as tokens."""

    def __init__(self, tokenizer: Tokenizer, judge_tokens: int, seed: int = 0, varied: bool = True) -> None:
        """Vary how answers are written and how much of their evidence is shown; or not, to measure."""
        self.ids: list[str] = []
        """of the questions"""
        self._tokenizer = tokenizer
        self._judge_tokens = judge_tokens
        self._seed = seed
        self._varied = varied
        self._texts: list[TokenText] = []
        self._starts = [0]

    def add(
        self,
        question: Question,
        wrong: Sequence[str],
        settings: CandidateSettings | None = None,
        find: Find = find_candidates,
    ) -> bool:
        """Add a question, if there is evidence for its answer and for a wrong one; return whether there is."""
        if not wrong:
            return False
        random = Random(f"{self._seed} {question.id}")
        draws = [random.random() for _ in range(3)] if self._varied else _NOTHING_VARIED
        wording = random.getstate()
        questions = (question, *(_with_answer(question, answer) for answer in wrong))
        cases = [_make_case(one, *_best_evidence(one, settings, find), draws) for one in questions]
        if cases[0] is None or not any(cases[1:]):
            return False
        texts = ChainTexts(cases[0].candidates, self._tokenizer, self._judge_tokens)  # which cuts each passage once
        for case in filter(None, cases):
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


def _with_answer(question: Question, answer: str) -> Question:
    return question.model_copy(update={"answer": answer, "answer_aliases": [], "answer_entity": None})


def _make_case(question: Question, candidates: Candidates, chain: Candidate, draws: Sequence[float]) -> Case | None:
    """Return an answer with as much of its evidence as the draws decide; None if there is none."""
    views, passages, edges = candidates.views, chain.passages, chain.edges
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
    return Case(candidates, passages, question.answer, spans, edges)


def _best_evidence(question: Question, settings: CandidateSettings | None, find: Find) -> tuple[Candidates, Candidate]:
    """Return the best chain of an answer; if none leads to it, the passage with most of the question."""
    try:
        candidates = find(question, settings)
        return candidates, best_by_prior(candidates)
    except QuestionError:
        views = [PassageView(passage) for passage in question.passages]
        tails = [number for number, view in enumerate(views) if answer_spans(question, view)]
        return Candidates(question, views, tails, (), False), Candidate(_closest(question, views, tails), (), 0.0)


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
