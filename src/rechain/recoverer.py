"""From a question to its chains: build C, score it, return the best."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.inputs import PassageLike, QuestionLike, as_entry, as_question, rows_of
from rechain.formats.datasets.plain import FieldMap
from rechain.formats.datasets.questions import Entry, MappingLike
from rechain.models import AnyModel, describe_model, load_model, network_modules
from rechain.schema import Question, Recovered
from rechain.scoring.beliefs import Offer, Offers
from rechain.scoring.interface import BUNDLED, BatchModel, Model, Scores
from rechain.scoring.results import Options, probabilities, ranking, score, to_recovered, without_chain
from rechain.scoring.steps import find_steps
from rechain.system.log import counted
from rechain.system.processes import batches, in_order
from rechain.system.tensors import device_named
from rechain.text.candidates import Candidates, CandidateSettings, find_candidates
from rechain.text.collection import Statistics, is_collection
from rechain.text.evidence.search import find_evidence

if TYPE_CHECKING:
    from rechain.index.index import Index
    from rechain.index.search import FindSettings
    from rechain.reader.model import ChainReaderModel

T = TypeVar("T")
BATCH_SIZE = 32
"""questions that a network scores together: more are no faster on a CPU and take more memory"""


@dataclass(frozen=True)
class RecovererConfig:
    """The settings of a recoverer; they can be sent to other processes, each of which loads its own."""

    model: AnyModel = BUNDLED
    """a name, a folder, or an object that scores candidates"""
    settings: CandidateSettings = field(default_factory=CandidateSettings)
    """how candidates are built"""
    top: int = 1
    """chains a question, best first"""
    explain: bool = False
    """whether to add what contributed to each score"""
    device: str | None = None
    """where the model computes; None: a GPU if there is one"""
    min_confidence: float | None = None
    """drop chains of less confidence"""
    corpus: Statistics | None = None
    """the collection that the questions' passages come from: an open index, or passages in memory"""
    found: int | None = None
    """passages to find in the index for a question; None: 12, or 60 if the data names the question's entities"""

    def load(self) -> "Recoverer":
        """Load the model and return the recoverer."""
        return Recoverer(**vars(self))

    def with_newest_index(self) -> "RecovererConfig":
        """Return it with the index as it is now, if the corpus is an index, which may have been built again."""
        newest = getattr(self.corpus, "newest", None)
        return self if newest is None else replace(self, corpus=newest())

    def describe(self) -> dict[str, Any]:
        """Return the options that chains depend on, for provenance; a device only changes their rounding."""
        options = {name: getattr(self, name) for name in ("top", "explain", "min_confidence")}
        return {**options, **({} if self.found is None else {"found": self.found})}


class NoConfidenceError(RechainError):
    """A least confidence is required of a model that has no confidence."""


Scored = tuple[Candidates, Scores] | QuestionError
"""the candidates of a question and their scores, or why it has none"""


class Recoverer:
    """Recovers chains with a model.

    The model is a name ("default" comes with the package; "lexical", "bm25" and "random" learn nothing), the folder of
    a saved model or a training run, the name of a model on the Hub, or anything that scores candidates.
    """

    _find_settings: "FindSettings | None" = None

    def __init__(
        self,
        model: AnyModel = BUNDLED,
        *,
        settings: CandidateSettings | None = None,
        top: int = 1,
        explain: bool = False,
        device: str | None = None,
        min_confidence: float | None = None,
        corpus: "Statistics | Index | str | Path | None" = None,
        found: int | None = None,
    ) -> None:
        """Load the model; `top` is the number of chains a question, `explain` adds what contributed to each score.

        `device` is where a trained model computes: a GPU if there is one, unless it is named. Chains of less than
        `min_confidence` are dropped, which needs a model with confidence. `corpus` is the collection that the
        questions' passages come from: its statistics decide what is rare. In an index, or the folder of one, `found`
        passages (12, or 60 if the data names a question's entities) are searched for every question; a
        `PassageCollection` contains those that questions name by id.
        """
        self.collection, self.index = _open_collection(corpus)
        if found is not None:
            from rechain.index.search import FindSettings  # not at the top: it loads the search engine

            self._find_settings = FindSettings(found)
        self.config = RecovererConfig(
            model,
            settings=settings or CandidateSettings(),
            top=top,
            explain=explain,
            device=device,
            min_confidence=min_confidence,
            corpus=self.collection,  # not its folder, which may contain another index by the time a worker opens it
            found=found,
        )
        """what it was made from; `config.load()` makes it again, in another process for example"""
        self._model: Model | BatchModel
        if isinstance(model, str | Path):
            self._name, self._model = f"'{model}'", load_model(str(model), device)
        elif any(callable(getattr(model, name, None)) for name in ("score", "score_many")):
            self._name, self._model = type(model).__name__, model
            self._move(device)
        else:
            raise RechainError(
                f"a model should be a name, a folder or something that scores candidates, not {model!r:.80}."
            )
        self._options = self._check(Options(top, explain, min_confidence))

    def __reduce__(self) -> "tuple[Callable[[RecovererConfig], Recoverer], tuple[RecovererConfig]]":
        """Return how pickle makes it again: a model that has a name is loaded by it."""
        return RecovererConfig.load, (self.config,)

    def take_newest_index(self) -> None:
        """Use the index as it is now, if it was built again; what runs for long calls this between questions."""
        self.config = self.config.with_newest_index()
        self.collection, self.index = _open_collection(self.config.corpus)

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
        pipeline returns, an answer a response that holds its passages. A mapping names the fields of a dict:
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
        whose ids are then their positions, what `rechain.formats.datasets.read_entries` yields, or what `recover` takes
        of other libraries; they may come as a table of pandas or Arrow or as a Hugging Face dataset. A mapping says
        which fields contain what, as for `recover`. A question that cannot be read or has no chain has an error; the
        others go on.

        `workers` is the number of processes that work on batches at the same time, each with its own copy of the model;
        with 0 this process reads one batch ahead, or one question if the model cannot score many together. `device` is
        where the model is moved first; `show_progress` shows a bar on standard error.
        """
        return self._over_batches(
            Recoverer.recover_entries, "Recovering", questions, batch_size, workers, device, show_progress, mapping
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
        """Recover the chains of questions over one collection, which inform each other about what passages relate.

        Questions and options are those of `recover_many`. All questions are read, and their candidates kept in a
        temporary file, before the first has its chains: each counts for all others that offer the same steps, a
        passage and the two entities by which a chain enters and leaves it. Only questions whose entities the data
        names take part, as those of DrugHop and MedHop; others have the chains that `recover_many` would give them.
        """
        offers = self._over_batches(
            Recoverer.offer_entries, "Reading", questions, batch_size, workers, device, show_progress, mapping
        )
        return self._settle(offers)

    def _settle(self, offers: Iterable[Offer]) -> Iterator[Recovered]:
        """Yield the chains of questions, in their order, when all offers are known."""
        known = Offers()
        with TemporaryFile() as file:
            for offer in offers:
                offer.add_to(known)
                file.write(offer.to_json().encode() + b"\n")
            beliefs = known.learn()
            file.seek(0)
            for position, line in enumerate(file):
                yield Offer.of_json(line).settle(beliefs, position, self._options.top, self._options.min_confidence)

    def _over_batches(
        self,
        do: "Callable[[Recoverer, Iterable[Entry]], Iterator[T]]",
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
        tasks = batches(enumerate(rows), batch_size if workers or isinstance(self._model, BatchModel) else 1)
        if workers:
            make = partial(partial, self._do_batch, do, fields)
            preload = [__name__, *network_modules(self.config.model)]
            done = in_order(make, tasks, workers, lambda batch: f"questions[{batch[0][0]}]", preload=preload)
        else:
            done = (self._do_batch(do, fields, batch) for batch in tasks)
        results = chain.from_iterable(done)
        if not show_progress:
            return results
        return counted(results, activity, len(questions) if isinstance(questions, Sized) else None)

    def _do_batch(
        self,
        do: "Callable[[Recoverer, Iterable[Entry]], Iterator[T]]",
        mapping: FieldMap | None,
        batch: Sequence[tuple[int, QuestionLike]],
    ) -> list[T]:
        entries = (as_entry(f"questions[{n}]", str(n), question, mapping, self.index) for n, question in batch)
        return list(do(self, entries))

    def map(
        self, dataset: Any, *, batch_size: int = BATCH_SIZE, mapping: MappingLike | None = None, **options: Any
    ) -> Any:
        """Return a Hugging Face dataset of questions, in any known format, with its chains as further columns.

        They are `verdict`, `verdict_probability`, `claims`, `chains` and `error`, and with a collection `collection`. A
        mapping names the columns, as for `recover`. Options are those of the dataset's own `map`, such as
        `num_proc`.
        """
        from rechain.formats.exports.arrow import ChainColumns

        fields = FieldMap.of(mapping) if mapping else None
        stamp = describe_model(self.config.model), None if self.collection is None else self.collection.stamp
        columns = ChainColumns(self.recover_entries, self.collection is not None, fields, self.index, stamp)
        return columns.add_to(dataset, batch_size, **options)

    def recover_entries(self, entries: Iterable[Entry]) -> Iterator[Recovered]:
        """Recover the chains of questions that were read: all together if the model can score many, else one by one."""
        for entry, options, scored in self._score((entry, self._options) for entry in entries):
            yield self._recovered(entry, options, scored)

    def recover_together(self, batch: Sequence[tuple[Entry, Options]]) -> list[Recovered]:
        """Recover the chains of questions, each with its own options, as `recover_entries` does."""
        for _, options in batch:
            self._check(options)
        return [self._recovered(entry, options, scored) for entry, options, scored in self._score(batch)]

    def offer_entries(self, entries: Iterable[Entry]) -> Iterator[Offer]:
        """Yield what questions offer for joint recovery, the first of its two passes."""
        for entry, options, scored in self._score((entry, self._options) for entry in entries):
            if not isinstance(scored, QuestionError) and any(steps := find_steps(scored[0])):
                # The verdict, if there is one, is on the answer by the model's own best chain.
                recovered = to_recovered(entry, *scored, replace(options, top=len(steps), min_confidence=None))
                order = ranking(scored[1])
                shares = probabilities(scored[1], order)
                yield Offer.of(recovered, [steps[number] for number in order], entry.where, shares)
            else:
                yield Offer.of(self._recovered(entry, options, scored))

    def _score(self, questions: Iterable[tuple[Entry, Options]]) -> Iterator[tuple[Entry, Options, Scored]]:
        """Yield questions with their passages, and their candidates with scores or why there are none."""
        find: Callable[[Question], Candidates]
        if isinstance(self._model, BatchModel) and self._model.chooses_hops:
            meaning = getattr(self._model, "meaning", None)
            find = partial(find_evidence, settings=self.config.settings, meaning=meaning, collection=self.collection)
        else:
            find = partial(find_candidates, settings=self.config.settings, collection=self.collection)
        for batch in [list(questions)] if isinstance(self._model, BatchModel) else ([one] for one in questions):
            entries: Sequence[Entry] = [entry for entry, _ in batch]
            if self.index is not None:
                entries = self._with_passages(self.index, entries)
            found: list[Candidates | QuestionError] = []
            for entry in entries:
                try:
                    question = entry.content
                    found.append(question if isinstance(question, QuestionError) else find(question))
                except QuestionError as error:
                    found.append(error)
            explain = any(options.explain for _, options in batch)
            scores = iter(score(self._model, [one for one in found if isinstance(one, Candidates)], explain))
            for entry, (_, options), candidates in zip(entries, batch, found, strict=True):
                if isinstance(candidates, QuestionError):
                    yield entry, options, candidates
                else:
                    scored = next(scores)
                    yield entry, options, scored if isinstance(scored, QuestionError) else (candidates, scored)

    def _with_passages(self, index: "Index", entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries with the passages that the index has for their questions."""
        from rechain.index.search import fill_entries

        return fill_entries(index, entries, self._find_settings)

    def _recovered(self, entry: Entry, options: Options, scored: Scored) -> Recovered:
        """Return the best chains of a question and the verdict on its answer, or why it has none."""
        if isinstance(scored, QuestionError):
            stamp = None if self.collection is None else self.collection.stamp
            return without_chain(entry, scored, self.has_confidence, stamp)
        return to_recovered(entry, *scored, options)

    def _check(self, options: Options) -> Options:
        if options.min_confidence is not None and not self.has_confidence:
            raise NoConfidenceError(
                f"the model {self._name} tells no confidence, so none can be demanded of its chains."
            )
        return options

    @property
    def has_confidence(self) -> bool:
        """Whether the model gives every chain a confidence."""
        return isinstance(self._model, BatchModel)

    def _move(self, device: str | None) -> None:
        """Move the model to a device, if one is named."""
        if device is None:
            return
        move = getattr(self._model, "to", None)
        if move is None:
            raise RechainError(f"the model {self._name} cannot be moved to a device; leave the device out.")
        self._model = move(device_named(device))
        self.config = replace(self.config, device=device)


def _open_collection(corpus: "Statistics | Index | str | Path | None") -> "tuple[Statistics | None, Index | None]":
    """Return a collection, and again if it is an index, which finds passages; a path is that of an index."""
    if corpus is None:
        return None, None
    from rechain.index.index import Index  # not at the top: it loads the search engine

    if isinstance(corpus, str | Path):
        corpus = Index(corpus)
    elif not is_collection(corpus):
        raise RechainError(
            f"a corpus should be an index or its folder, or a PassageCollection, not {type(corpus).__name__}."
        )
    return corpus, corpus if isinstance(corpus, Index) else None
