"""From a question to its chains: build C, score it, keep the best."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from inspect import getattr_static
from math import exp, isfinite
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rechain.answers.claims import read_answer
from rechain.candidates import Candidate, Candidates, CandidateSettings, find_candidates, find_of_any_shape
from rechain.datasets.inputs import PassageLike, QuestionLike, as_entry, as_question
from rechain.datasets.mapping import FieldMap
from rechain.datasets.objects import rows_of
from rechain.datasets.reading import Entry, MappingLike, PassageSource
from rechain.datasets.records import read_by_id
from rechain.errors import QuestionError, RechainError
from rechain.schema import Chain, Claim, HeldAnswer, Link, Passage, Problem, Question, Recovered, Verdict
from rechain.scoring import BASELINES
from rechain.scoring.beliefs import Offers
from rechain.scoring.jointly import Offer, low_confidence
from rechain.scoring.model import BUNDLED, BatchModel, Contributions, Model, PlayerStep, StepwiseModel, bundled_folder
from rechain.scoring.steps import find_steps
from rechain.scoring.verdicts import conclude, judge_claims
from rechain.system.batches import batches
from rechain.system.digests import SHA256, file_digest, read_json
from rechain.system.stores import path_of
from rechain.text.collection import PassageCollection, Statistics

if TYPE_CHECKING:
    from rechain.reader.embedding import BundledEncoder
    from rechain.reader.model import ChainReaderModel
    from rechain.retrieval.finding import FindSettings
    from rechain.retrieval.index import Index

T = TypeVar("T")
_VERDICT_OF_ERROR: Mapping[str, Verdict] = {"no_answer": "no_answer", "no_tail": "unsupported"}
"""what errors say of an answer; others say nothing, such as that no chain has as many passages as were asked for"""
_SURE = 0.95
"""how often such an answer is what it seems: "I could not find it" may go on with something that can be checked, and
what a passage says in quite other words is not found"""
_STATISTICS = [name for name in vars(Statistics) if name in ("stamp", "passages") or name.startswith("count_")]
"""what a collection has"""
BATCH_SIZE = 32
"""questions that a network scores together: more are no faster on a CPU and take more memory"""


@dataclass(frozen=True, slots=True)
class Options:
    """Which of a question's chains are returned, and with what."""

    top: int = 1
    """how many, best first"""
    explain: bool = False
    """whether to add what contributed to each score"""
    min_confidence: float | None = None
    """chains of less confidence are dropped"""

    def __post_init__(self) -> None:
        """Say which option is wrong."""
        if not isinstance(self.top, Integral) or self.top < 1:
            raise RechainError(f"top should be a whole number, 1 or more, not {self.top!r}.")
        least = self.min_confidence
        if least is not None and not (isinstance(least, Real) and 0 <= least <= 1):
            raise RechainError(f"min_confidence should be a number between 0 and 1, not {least!r}.")


class NoConfidenceError(RechainError):
    """Confidence is demanded of a model that has none."""


class _Scored(NamedTuple):
    """What contributes to the score of a chain, how confident the model is of it, and what its players say."""

    contributions: Contributions
    confidence: float | None = None
    steps: Sequence[PlayerStep] = ()
    support: Sequence[float] | None = None
    """what the judge says of each claim of the answer, by the best chain"""
    share: float | None = None
    """its probability as if no more than one chain were right, if the model tells how confident it is"""


class _ScoredEntry(NamedTuple):
    """A question, its candidates and what a model says of each; or why there are none."""

    entry: Entry
    options: Options
    found: Candidates | QuestionError
    scored: Sequence[_Scored] = ()


class Recoverer:
    """Recovers chains with a model.

    The model is a name ("default" comes with the package; "lexical", "bm25" and "random" learn nothing), the folder of
    a saved model or a training run, the name of a model on the Hub, or anything that scores candidates.
    """

    def __init__(
        self,
        model: str | Path | Model | BatchModel = BUNDLED,
        *,
        settings: CandidateSettings | None = None,
        top: int = 1,
        explain: bool = False,
        device: str | None = None,
        min_confidence: float | None = None,
        corpus: "Statistics | Index | str | Path | None" = None,
        found: int | None = None,
    ) -> None:
        """Set up recovery: `top` chains a question; `explain` adds what contributed to each score.

        `device` is where a trained model computes: a GPU if there is one, unless it is named. Chains of less than
        `min_confidence` are dropped, which only a model with confidence allows. `corpus` is the collection that the
        questions' passages come from: its statistics say what is rare. In an index, or the folder of one, `found`
        passages (12, or 60 where the data names a question's entities) are sought for every question; a
        `PassageCollection` has those that questions name by id.
        """
        self.collection = _opened(corpus)
        """the collection that passages come from, if there is one"""
        self._find_settings = _find_settings(found)
        self.factory = partial(
            Recoverer,
            model,
            settings=settings,
            top=top,
            explain=explain,
            device=device,
            min_confidence=min_confidence,
            corpus=self.collection,  # not its folder, in which another process may find another index
            found=found,
        )
        """makes such a recoverer again, in another process say"""
        self._model: Model | BatchModel
        if isinstance(model, str | Path):
            self._name, self._model = f"'{model}'", _load(str(model), device)
        elif not any(callable(getattr(model, name, None)) for name in ("score", "score_many")):
            raise RechainError(
                f"a model should be a name, a folder or something that scores candidates, not {model!r:.80}."
            )
        else:
            self._name, self._model = type(model).__name__, model
            self._move(device)
        self._settings = settings or CandidateSettings()
        self._encoder: BundledEncoder | None = None
        self._options = self._check(Options(top, explain, min_confidence))

    def __reduce__(self) -> tuple[Callable[[], "Recoverer"], tuple[()]]:
        """Return how pickle makes it again: a model that has a name is loaded by it."""
        return self.factory, ()

    @classmethod
    def from_pretrained(cls, name: str | Path = BUNDLED, **options: Any) -> "Recoverer":
        """Return a recoverer with the model of the package, a folder or the Hub; options are those of `Recoverer`."""
        return cls(name, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model into a folder from which `from_pretrained` loads it."""
        from rechain.reader.pretrained import save

        save(self.reader(), Path(folder))

    def push_to_hub(self, name: str, **options: Any) -> str:
        """Put the model on the Hub and return its address; options are those of `huggingface_hub.create_repo`."""
        from rechain.reader.pretrained import push

        return push(self.reader(), name, **options)

    def reader(self) -> "ChainReaderModel":
        """Return its model, which has to be a chain reader."""
        from rechain.reader.model import ChainReaderModel

        if not isinstance(self._model, ChainReaderModel):
            raise RechainError(f"the model {self._name} is not a chain reader, which alone can be saved or shared so.")
        return self._model

    def recover(
        self,
        question: QuestionLike | str,
        answer: Any = None,
        passages: Iterable[PassageLike] = (),
        *,
        mapping: MappingLike | None = None,
    ) -> Recovered:
        """Recover the chains of a Question or a dict with its fields, or of a text with its answer and passages.

        Passages are Passage objects, dicts with their fields, documents of LangChain or Haystack, nodes of LlamaIndex,
        or plain texts, whose ids are then their positions. A question may also be a sample of Ragas or what a chain or
        pipeline returns, an answer a response that holds its passages. A mapping says which fields of a dict hold what:
        {"question": "user_input", "answer": "output.text", "passages": "documents"}.
        """
        if isinstance(question, str):
            question = as_question("question", "question", question, answer, passages)
        fields = FieldMap.of(mapping) if mapping else None
        entry = as_entry("question", "question", question, fields, self.index)
        if isinstance(entry.content, QuestionError):
            raise entry.content
        return next(self.recover_entries([entry]))

    def recover_many(
        self,
        questions: Iterable[QuestionLike],
        *,
        batch_size: int = BATCH_SIZE,
        workers: int = 0,
        device: str | None = None,
        show_progress: bool = False,
        mapping: MappingLike | None = None,
    ) -> Iterator[Recovered]:
        """Recover the chains of many questions, in their order, and read no more than a few batches of them ahead.

        Questions are Questions, dicts with the fields of any known format, tuples of question, answer and passages,
        whose ids are then their positions, what `rechain.datasets.read_entries` yields, or what `recover` takes of
        other libraries; they may come as a table of pandas or Arrow or as a Hugging Face dataset. A mapping says which
        fields hold what, as for `recover`. One that cannot be read or has no chain has its error and the others go on.

        `workers` is the number of processes that work on batches at the same time, each with its own copy of the model;
        with 0 this process reads one batch ahead, or one question if the model cannot score many together. `device` is
        where the model is moved first; `show_progress` shows a bar on standard error.
        """
        return self._over_batches(
            Recoverer._recover_batch, "Recovering", questions, batch_size, workers, device, show_progress, mapping
        )

    def recover_jointly(
        self,
        questions: Iterable[QuestionLike],
        *,
        batch_size: int = BATCH_SIZE,
        workers: int = 0,
        device: str | None = None,
        show_progress: bool = False,
        mapping: MappingLike | None = None,
    ) -> Iterator[Recovered]:
        """Recover the chains of questions over one collection, which tell each other what passages relate.

        Questions and options are those of `recover_many`. All questions are read, and their candidates kept in a
        temporary file, before the first has its chains: each counts for all others that offer the same steps, a
        passage and the two entities by which a chain enters and leaves it. Only questions whose entities the data
        names take part, as those of DrugHop and MedHop; others have the chains that `recover_many` would give them.
        """
        found = self._over_batches(
            Recoverer._offer_batch, "Reading", questions, batch_size, workers, device, show_progress, mapping
        )
        return self._settle(found)

    def _settle(self, found: Iterable[Offer]) -> Iterator[Recovered]:
        """Yield the chains of questions, in their order, once all offers are known."""
        offers = Offers()
        with TemporaryFile() as file:
            for offer in found:
                offer.add_to(offers)
                file.write(offer.to_json().encode() + b"\n")
            beliefs = offers.learn()
            file.seek(0)
            for position, line in enumerate(file):
                yield Offer.of_json(line).settle(beliefs, position, self._options.top, self._options.min_confidence)

    def _over_batches(
        self,
        do: "Callable[[Recoverer, FieldMap | None, Sequence[tuple[int, QuestionLike]]], list[T]]",
        activity: str,
        questions: Iterable[QuestionLike],
        batch_size: int,
        workers: int,
        device: str | None,
        show_progress: bool,
        mapping: MappingLike | None,
    ) -> Iterator[T]:
        """Do something with batches of questions, here or in worker processes."""
        rows = rows_of(questions)
        fields = FieldMap.of(mapping) if mapping else None
        if not isinstance(batch_size, Integral) or batch_size < 1:
            raise RechainError(f"batch_size should be a whole number, 1 or more, not {batch_size!r}.")
        if not isinstance(workers, int) or workers < 0:
            raise RechainError(f"workers should be a whole number, 0 or more, not {workers!r}.")
        self._move(device)
        size = batch_size if workers or isinstance(self._model, BatchModel) else 1
        done = self._stream(do, batches(enumerate(rows), size), workers, fields)
        if not show_progress:
            return done
        from rechain.system.progress import counted

        return counted(done, activity, len(questions) if isinstance(questions, Sized) else None)

    def _stream(
        self,
        do: "Callable[[Recoverer, FieldMap | None, Sequence[tuple[int, QuestionLike]]], list[T]]",
        tasks: Iterable[list[tuple[int, QuestionLike]]],
        workers: int,
        mapping: FieldMap | None,
    ) -> Iterator[T]:
        if not workers:
            for batch in tasks:
                yield from do(self, mapping, batch)
            return
        from rechain.system.processes import in_order

        make = partial(partial, do, self, mapping)
        preload = [__name__, *network_modules(self.factory)]
        for done in in_order(make, tasks, workers, lambda batch: f"questions[{batch[0][0]}]", preload=preload):
            yield from done

    def _recover_batch(self, mapping: FieldMap | None, batch: Sequence[tuple[int, QuestionLike]]) -> list[Recovered]:
        return list(self.recover_entries(self._entries(mapping, batch)))

    def _offer_batch(self, mapping: FieldMap | None, batch: Sequence[tuple[int, QuestionLike]]) -> list[Offer]:
        return list(self.offer_entries(self._entries(mapping, batch)))

    def _entries(self, mapping: FieldMap | None, batch: Sequence[tuple[int, QuestionLike]]) -> Iterator[Entry]:
        index = self.index
        return (as_entry(f"questions[{n}]", str(n), question, mapping, index) for n, question in batch)

    def map(
        self, dataset: Any, *, batch_size: int = BATCH_SIZE, mapping: MappingLike | None = None, **options: Any
    ) -> Any:
        """Return a Hugging Face dataset of questions, in any known format, with its chains as further columns.

        They are `verdict`, `verdict_probability`, `claims`, `chains` and `error`, and with a collection `collection`. A
        mapping says which columns hold what, as for `recover`. Options are those of the dataset's own `map`, such as
        `num_proc`.
        """
        from rechain.exports.hf_datasets import columns_with, map_dataset

        fields = FieldMap.of(mapping) if mapping else None
        stamp = model_facts(self.factory), self._stamp
        columns = columns_with(self.collection is not None)
        return map_dataset(dataset, self.recover_entries, stamp, batch_size, fields, columns, self.index, **options)

    def recover_entries(self, entries: Iterable[Entry]) -> Iterator[Recovered]:
        """Recover the chains of questions that were read: all together if the model can score many, else one by one."""
        for batch in self._together(entries):
            yield from self._recover(batch)

    def offer_entries(self, entries: Iterable[Entry]) -> Iterator[Offer]:
        """Return what questions that were read offer for joint recovery, the first of its two passes."""
        for batch in self._together(entries):
            for entry, options, found, scored in self._score_batch(batch):
                if isinstance(found, QuestionError):
                    yield Offer.of(self._unanswered(entry, found))
                elif any(steps := find_steps(found)):
                    # The verdict, where there is one, is on the answer by the model's own best chain.
                    every = replace(options, top=len(steps), min_confidence=None)
                    ranking = _ranking(scored)
                    in_order = [steps[number] for number in ranking]
                    shares = _shares([scored[number] for number in ranking])
                    yield Offer.of(_recovered(entry, found, scored, every), in_order, entry.where, shares)
                else:
                    yield Offer.of(_recovered(entry, found, scored, options))

    def _together(self, entries: Iterable[Entry]) -> Iterator[list[tuple[Entry, Options]]]:
        """Yield what is scored together: all questions if the model can score many, else each by itself."""
        batch = [(entry, self._options) for entry in entries] if isinstance(self._model, BatchModel) else None
        yield from ([(entry, self._options)] for entry in entries) if batch is None else [batch]

    def recover_together(self, batch: Sequence[tuple[Entry, Options]]) -> list[Recovered]:
        """Recover the chains of questions that are scored together, each with its own options."""
        for _, options in batch:
            self._check(options)
        return list(self._recover(batch))

    @property
    def index(self) -> "Index | None":
        """The index that finds passages, if there is one."""
        if self.collection is None:
            return None
        from rechain.retrieval.index import Index  # not at the top: the search engine is loaded where there is an index

        return self.collection if isinstance(self.collection, Index) else None

    def with_passages(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries with the passages that the index has for their questions, if there is an index."""
        if self.collection is None or (index := self.index) is None:
            return list(entries)
        from rechain.retrieval.finding import fill_entries

        return fill_entries(index, entries, self._find_settings, self._encoder_for(index))

    def _encoder_for(self, index: "Index") -> "BundledEncoder | None":
        """Return what embeds questions, if the index has vectors: for all models that which embedded the passages."""
        if index.info.vectors is None:
            return None
        if self._encoder is None:
            from rechain.reader.embedding import BundledEncoder

            is_bundled = self._name == f"'{BUNDLED}'"  # then it is here already
            self._encoder = BundledEncoder(self.reader() if is_bundled else None)
        return self._encoder

    def _recover(self, batch: Sequence[tuple[Entry, Options]]) -> Iterator[Recovered]:
        for entry, options, found, scored in self._score_batch(batch):
            if isinstance(found, QuestionError):
                yield self._unanswered(entry, found)
            else:
                yield _recovered(entry, found, scored, options)

    def _score_batch(self, batch: Sequence[tuple[Entry, Options]]) -> Iterator[_ScoredEntry]:
        """Yield the candidates of every question and the scores of its chains, or why it has none."""
        entries = self.with_passages([entry for entry, _ in batch])
        batch = [(entry, options) for entry, (_, options) in zip(entries, batch, strict=True)]
        found = [self._find(entry.content) for entry, _ in batch]
        explain = any(options.explain for _, options in batch)
        scored = iter(_score(self._model, [c for c in found if isinstance(c, Candidates)], explain))
        for (entry, options), candidates in zip(batch, found, strict=True):
            if isinstance(candidates, QuestionError):
                yield _ScoredEntry(entry, options, candidates)
            elif isinstance(of_question := next(scored), QuestionError):
                yield _ScoredEntry(entry, options, of_question)
            else:
                yield _ScoredEntry(entry, options, candidates, of_question)

    @property
    def _stamp(self) -> str | None:
        """The stamp of the collection, if there is one."""
        return None if self.collection is None else self.collection.stamp

    def _unanswered(self, entry: Entry, error: QuestionError) -> Recovered:
        """Return that a question has no chain and, if only for its answer, what that says of the answer."""
        question, verdict, claims = entry.content, None, list[Claim]()
        if self.has_confidence and isinstance(question, Question):
            verdict = _verdict_without_chain(question, error)
            if verdict == "unsupported":
                read = read_answer(question.question, question.answer)
                claims = [Claim(text=claim.text, verdict=verdict) for claim in read.claims]
        return Recovered(
            id=entry.id,
            collection=self._stamp,
            verdict=verdict,
            verdict_probability=None if verdict is None else _SURE,
            claims=claims,
            chains=[],
            error=Problem.of(entry.located(error)),
        )

    def _find(self, question: Question | QuestionError) -> Candidates | QuestionError:
        """Return the chains among which the model chooses, or why there are none."""
        chooses_hops = isinstance(self._model, BatchModel) and self._model.chooses_hops
        try:
            if isinstance(question, QuestionError):
                return question
            if not chooses_hops:
                return find_candidates(question, self._settings, self.collection)
            meaning = getattr(self._model, "meaning", None)
            return find_of_any_shape(question, self._settings, meaning, self.collection)
        except QuestionError as error:
            return error

    def _check(self, options: Options) -> Options:
        if options.min_confidence is not None and not self.has_confidence:
            raise NoConfidenceError(
                f"the model {self._name} tells no confidence, so none can be demanded of its chains."
            )
        return options

    @property
    def has_confidence(self) -> bool:
        """Whether the model says how confident it is of a chain."""
        return isinstance(self._model, BatchModel)

    def _move(self, device: str | None) -> None:
        if device is None:
            return
        from rechain.system.devices import device_named

        move = getattr(self._model, "to", None)
        if move is None:
            raise RechainError(f"the model {self._name} cannot be moved to a device; leave the device out.")
        self._model = move(device_named(device))
        self.factory = partial(self.factory, device=device)


def _verdict_without_chain(question: Question, error: QuestionError) -> Verdict | None:
    if error.code == "too_few_passages" and not question.passages:
        return "unsupported"
    return _VERDICT_OF_ERROR.get(error.code)


def _score(
    model: Model | BatchModel, batch: Sequence[Candidates], explain: bool
) -> list[Sequence[_Scored] | QuestionError]:
    """Score the chains of questions together or, where the model refuses one of them, each question by itself."""
    if not batch:
        return []
    try:
        if not isinstance(model, BatchModel):
            return [_score_alone(model, candidates, explain) for candidates in batch]
        return [
            [
                _Scored(parts, confidence, steps, scores.support, share)
                for parts, confidence, steps, share in zip(
                    scores.contributions,
                    scores.confidences,
                    scores.steps or [()] * len(candidates.chains),
                    scores.shares or scores.confidences,
                    strict=True,
                )
            ]
            for scores, candidates in zip(model.score_many(batch), batch, strict=True)
        ]
    except QuestionError as error:
        if len(batch) == 1:
            return [error]
        return [scored for candidates in batch for scored in _score(model, [candidates], explain)]


def _score_alone(model: Model, candidates: Candidates, explain: bool) -> Sequence[_Scored]:
    contributions = model.score(candidates)
    steps = model.steps(candidates) if explain and isinstance(model, StepwiseModel) else [()] * len(contributions)
    return [_Scored(parts, None, of_chain) for parts, of_chain in zip(contributions, steps, strict=True)]


def _recovered(entry: Entry, candidates: Candidates, scored: Sequence[_Scored], options: Options) -> Recovered:
    """Return the best chains of a question that are confident enough, or that the best is not; and the verdict."""
    ranked = [(scored[number], candidates.chains[number]) for number in _ranking(scored)[: options.top]]
    own = entry.own or frozenset()
    chains = [_chain(candidates, candidate, scores, own, options.explain) for scores, candidate in ranked]
    least, error = options.min_confidence or 0.0, low_confidence(chains, options.min_confidence)
    verdict, probability, claims = _judge(candidates, *ranked[0])
    return Recovered(
        id=candidates.question.id,
        collection=None if candidates.collection is None else candidates.collection.stamp,
        verdict=verdict,
        verdict_probability=probability,
        claims=claims,
        chains=[chain for chain in chains if error is None and (chain.confidence or 0.0) >= least],
        error=None if error is None else Problem.of(entry.located(error)),
    )


def _ranking(scored: Sequence[_Scored]) -> list[int]:
    """Return the numbers of chains, the greatest score first, in the order of C where scores are equal."""
    return sorted(range(len(scored)), key=lambda number: -_sum(scored[number].contributions))


def _shares(scored: Sequence[_Scored]) -> list[float]:
    """Return the probability of every chain; of a model that tells none, by their scores alone."""
    shares = [one.share for one in scored if one.share is not None]
    if len(shares) == len(scored):
        return shares
    scores = [_sum(one.contributions) for one in scored]
    weights = [exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def _judge(
    candidates: Candidates, scored: _Scored, chain: Candidate
) -> tuple[Verdict | None, float | None, list[Claim]]:
    """Return the verdict on an answer by the best chain, if the model is one that tells how confident it is."""
    if scored.confidence is None or candidates.question.answer_entity is not None:
        return None, None, []
    judged = judge_claims(candidates, chain, scored.confidence, scored.support)
    claims = [
        Claim(
            text=one.held.claim.text,
            verdict="supported" if one.is_supported else "unsupported",
            passage=None if one.passage is None else candidates.views[one.passage].passage.id,
            span=None if one.passage is None else one.held.sentence(one.passage, candidates.views[one.passage]),
        )
        for one in judged
    ]
    return *conclude(judged), claims


def _chain(candidates: Candidates, candidate: Candidate, scored: _Scored, own: frozenset[str], explain: bool) -> Chain:
    passages = [candidates.views[number].passage.id for number in candidate.passages]
    confidence = scored.confidence
    if confidence is not None and not 0 <= confidence <= 1:
        raise RechainError(f"the model gave a chain the confidence {confidence}, which is no probability.")
    return Chain(
        shape=candidate.shape,
        passages=passages,
        links=candidate.links,
        answer=_held_answer(candidates, candidate),
        own=[passage for passage in passages if passage in own],
        score=_sum(scored.contributions),
        confidence=None if confidence is None else float(confidence),
        why=_why(scored, passages, candidate.links) if explain else None,
    )


def _held_answer(candidates: Candidates, chain: Candidate) -> HeldAnswer | None:
    """Return which passage of a chain holds the answer best, the last where several do."""
    holdings = [(passage, candidates.holdings.best(passage)) for passage in reversed(chain.passages)]
    held = [(passage, holding) for passage, holding in holdings if holding is not None]
    if not held:
        return None
    passage, holding = max(held, key=lambda one: one[1].strength)
    view = candidates.views[passage]
    spans = filter(None, candidates.holdings.spans(passage, view))
    return HeldAnswer(match=holding.match, passage=view.passage.id, span=next(spans, None))


def _why(scored: _Scored, passages: Sequence[str], links: Sequence[Link]) -> dict[str, Any]:
    """Return what adds up to a score and, under "steps", what the players say on the way."""
    steps = [
        {
            "player": step.player,
            **({} if step.passage is None else {"passage": passages[step.passage]}),
            **({} if step.link is None else {"link": links[step.link].entity}),
            "probability": min(step.probability, 1.0),  # rounding may lift it a little above
        }
        for step in scored.steps
    ]
    return {**scored.contributions, **({"steps": steps} if steps else {})}


def _sum(contributions: Contributions) -> float:
    score = sum(contributions.values())
    if not isfinite(score):
        raise RechainError(f"the model gave a chain the score {score}, by {dict(contributions)}.")
    return score


def _opened(corpus: "Statistics | Index | str | Path | None") -> "Statistics | None":
    """Return a collection; one that is named by its folder is an index, which is opened."""
    if isinstance(corpus, str | Path):
        from rechain.retrieval.index import Index

        return Index(corpus)
    # Without a look at the values: a stamp takes a while to compute.
    if corpus is not None and any(getattr_static(corpus, name, None) is None for name in _STATISTICS):
        raise RechainError(
            f"a corpus should be an index or its folder, or a PassageCollection, not {type(corpus).__name__}."
        )
    return corpus


def _find_settings(found: int | None) -> "FindSettings | None":
    """Return how many passages are sought; it is a mistake to seek none, or too many."""
    if found is None:
        return None
    from rechain.retrieval.finding import FindSettings  # not at the top: it loads the search engine

    return FindSettings(found)


def read_collection(source: PassageSource) -> PassageCollection | None:
    """Return passages that questions name by id, or the file of them, as a collection; None where there are none."""
    if source is None or isinstance(source, PassageCollection):
        return source
    return PassageCollection(source if isinstance(source, Mapping) else read_by_id(path_of(source), Passage))


def model_facts(factory: partial[Recoverer]) -> dict[str, str]:
    """Return the name of a recoverer's model and the digest of its files; a baseline has none."""
    model = _model_of(factory)
    if not isinstance(model, str | Path):
        return {"name": type(model).__name__}
    name = str(model)
    if name in BASELINES:
        return {"name": name}
    if name == BUNDLED:
        folder = bundled_folder()
    elif _is_folder(name):
        folder = Path(name)
    elif "/" not in name:  # no model has such a name, as loading it will say
        return {"name": name}
    else:
        from rechain.reader.pretrained import find

        folder = find(name)
    return {"name": name, "sha256": _digest_of_model(folder)}


def network_modules(factory: partial[Recoverer]) -> list[str]:
    """Return the modules that worker processes should share: torch takes each of them longer than all else it loads."""
    model = _model_of(factory)
    return ["rechain.reader.pretrained"] if isinstance(model, str | Path) and is_reader(str(model)) else []


def _model_of(factory: partial[Recoverer]) -> Any:
    return (*factory.args, BUNDLED)[0]


def _digest_of_model(folder: Path) -> str:
    """Return the digest of all that a model is loaded from, which neither checkpoints nor logs nor its card are."""
    with suppress(OSError, ValueError, TypeError, LookupError):  # a config that has digests of itself and all others
        return str(read_json(folder / "config.json")[SHA256]["config.json"])
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        is_other = file.name.startswith((".", "checkpoint")) or file.suffix in (".md", ".provenance")
        if file.is_file() and not is_other:
            digest.update(f"{file.name} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def is_reader(name: str) -> bool:
    """Return whether a model is a chain reader by its name: neither a baseline nor what a training run has left."""
    if name in BASELINES:
        return False
    return (Path(name) / "config.json").exists() if _is_folder(name) else name == BUNDLED or "/" in name


def _is_folder(name: str) -> bool:
    return bool(name) and Path(name).is_dir()  # no name is not the folder in which we are


def _load(name: str, device: str | None) -> Model | BatchModel:
    """Return a baseline by its name, what a training run has left in a folder, or a saved chain reader."""
    if name in BASELINES:
        return BASELINES[name]()
    from rechain.system.devices import device_named

    if _is_folder(name) and not is_reader(name):
        from rechain.training.models import load_model

        return load_model(Path(name), device_named(device))
    if not is_reader(name):
        known = ", ".join((BUNDLED, *BASELINES))
        raise RechainError(
            f"there is no model '{name}'; the models are {known}, or a model's folder or name on the Hub."
        )
    from rechain.reader.pretrained import load

    return load(name, device_named(device))
