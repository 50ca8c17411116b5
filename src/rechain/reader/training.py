"""How the chain reader learns from questions and answers alone.

Three views look at every candidate chain: cheap evidence, the Ranker that reads the chain, and the Reasoner that names
the link from the last passage alone. What they believe together (E step) is what each of them learns (M step). It
begins with the prior, as nothing else knows anything yet. Several readers can be taught together, each by what all of
them believe; their common belief at the end then teaches the one that is kept.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rechain.models.chain_reader import NEVER, ChainReader
from rechain.reader.data import QuestionBatch, ReaderData
from rechain.reader.settings import ReaderSettings
from rechain.system.devices import precision
from rechain.system.tensors import Array


class Views(NamedTuple):
    """What the three views say of chains: logits, [B, K] or [chains]."""

    ranker: Tensor
    reasoner: Tensor
    evidence: Tensor

    def joint(self, settings: ReaderSettings) -> Tensor:
        """Return what they say together."""
        ranker, reasoner = settings.ranker_weight * self.ranker, settings.reasoner_weight * self.reasoner
        return self.evidence + ranker + reasoner


def look(model: ChainReader, data: ReaderData, batch: QuestionBatch) -> Views:
    """Return what a reader says of the chains of some questions; every text is read once."""
    chains = batch.chains[batch.is_chain.cpu()]
    ranker = data.texts.read(data.chain_text[chains], model.rank)
    reasoner = _name_links(model, data, chains)
    return Views(_padded(ranker, batch), _padded(reasoner, batch), model.weigh(batch.features))


def _name_links(model: ChainReader, data: ReaderData, chains: Tensor) -> Tensor:
    """Return the log-probability of each chain's last link; where only one entity can link, nothing is read."""
    tails, slots = data.tail_text[chains], data.tail_slot[chains]
    found = torch.zeros(len(chains), device=data.device)
    open_tails = tails[slots > 1].unique()
    if not len(open_tails):
        return found
    entities = int(slots.max())
    links = data.texts.read(open_tails, lambda batch: model.name_links(batch, entities))
    is_open = torch.isin(tails, open_tails)
    rows = torch.searchsorted(open_tails, tails[is_open]).to(data.device)
    return found.masked_scatter(is_open.to(data.device), links[rows, (slots[is_open] - 1).to(data.device)])


def _padded(values: Tensor, batch: QuestionBatch) -> Tensor:
    """Return values of real chains as [B, K]."""
    return values.new_zeros(batch.is_chain.shape).masked_scatter(batch.is_chain, values)


class Beliefs:
    """What every reader of several last said of each chain, and what they believe together."""

    def __init__(self, readers: int, chains: int, device: torch.device, settings: ReaderSettings) -> None:
        self._ranker = torch.zeros(readers, chains, device=device)
        self._reasoner = torch.zeros(readers, chains, device=device)
        self._settings = settings

    def note(self, reader: int, batch: QuestionBatch, views: Views) -> None:
        """Remember what a reader said."""
        chains = batch.chains.to(batch.is_chain.device)[batch.is_chain]
        self._ranker[reader, chains] = views.ranker.detach()[batch.is_chain]
        self._reasoner[reader, chains] = views.reasoner.detach()[batch.is_chain]

    def of(self, batch: QuestionBatch, evidence: Tensor) -> Tensor:
        """Return the probability of each chain of some questions, [B, K]: the E step."""
        chains = batch.chains.to(batch.is_chain.device)
        views = Views(self._ranker.mean(0)[chains], self._reasoner.mean(0)[chains], evidence)
        return masked_softmax(views.joint(self._settings), batch)


def masked_softmax(logits: Tensor, batch: QuestionBatch) -> Tensor:
    """Return probabilities of the real chains."""
    return logits.masked_fill(~batch.is_chain, NEVER).softmax(-1)


def losses(views: Views, belief: Tensor, batch: QuestionBatch) -> Tensor:
    """Return how far ranker, evidence and Reasoner each are from the belief: the M step's loss, [3]."""
    ranker, evidence = (
        -(belief * logits.masked_fill(~batch.is_chain, NEVER).log_softmax(-1)).sum(-1).mean()
        for logits in (views.ranker, views.evidence)
    )
    return torch.stack([ranker, evidence, -(belief * views.reasoner).sum(-1).mean()])


class Lesson:
    """Readers that are taught together on the same questions."""

    def __init__(self, models: Sequence[ChainReader], settings: ReaderSettings, steps: int) -> None:
        self.models = models
        self._settings = settings
        self._optimisers = [_optimiser(model, settings) for model in models]
        self._schedules = [
            torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, steps, settings.warm_up_share))
            for optimiser in self._optimisers
        ]
        self._priors = [model.evidence.weight.detach().clone() for model in models]

    def learn(self, number: int, data: ReaderData, batch: QuestionBatch, belief: Callable[[Tensor], Tensor]) -> Views:
        """Take one step with a reader; `belief` gives the probabilities of chains where its evidence is told."""
        model = self.models[number].train()
        with precision(data.device):
            views = look(model, data, batch)
            loss = losses(views, belief(views.evidence.detach()), batch).sum()
        pull = (model.evidence.weight - self._priors[number]).square().sum()
        (loss + self._settings.evidence_pull * pull).backward()
        nn.utils.clip_grad_norm_(model.parameters(), self._settings.clip)
        self._optimisers[number].step()
        self._optimisers[number].zero_grad(set_to_none=True)
        self._schedules[number].step()
        return views


def train(
    make: Callable[[int], ChainReader],
    data: ReaderData,
    settings: ReaderSettings,
    questions: Array,
    pseudo: tuple[ReaderData, Array] | None = None,
) -> ChainReader:
    """Return a reader that was taught questions of these numbers; `make` makes an untaught one from a seed.

    Where there are pseudo questions, it is warmed up with them, and what it learnt there counts from the beginning.
    """
    readers = [make(settings.seed + number) for number in range(settings.teachers + (settings.teachers > 1))]
    beliefs = None
    if pseudo is not None:
        prior = readers[0].evidence.weight.detach().clone()
        warm_up(readers[:1], pseudo[0], settings, pseudo[1])
        readers[0].evidence.weight.data.copy_(prior)  # pseudo questions tell nothing of what evidence weighs
        for reader in readers[1:]:
            reader.load_state_dict(readers[0].state_dict())
        beliefs = final_beliefs(readers[: settings.teachers], data, settings, questions)
    taught = teach_together(readers[: settings.teachers], data, settings, questions, beliefs)
    if settings.teachers > 1:
        teach(readers[-1], taught, data, settings, questions)
    return readers[-1]


def warm_up(models: Sequence[ChainReader], data: ReaderData, settings: ReaderSettings, questions: Array) -> None:
    """Teach readers pseudo questions, whose chains are known as they were made from them."""
    lesson = Lesson(models, settings, settings.warm_up_epochs * _steps(questions, settings))
    for chosen in _batches(questions, settings, settings.warm_up_epochs):
        batch = data.batch(chosen)
        made = batch.made.float()
        for number in range(len(models)):
            lesson.learn(number, data, batch, lambda _, made=made: made)  # type: ignore[misc]


def teach_together(
    models: Sequence[ChainReader],
    data: ReaderData,
    settings: ReaderSettings,
    questions: Array,
    beliefs: Beliefs | None = None,
) -> Beliefs:
    """Teach readers what they believe together, from some beliefs or the prior on; return what they end up with."""
    beliefs = beliefs or Beliefs(len(models), data.chains, data.device, settings)
    lesson = Lesson(models, settings, settings.epochs * _steps(questions, settings))
    for chosen in _batches(questions, settings, settings.epochs):
        batch = data.batch(chosen)
        for number in range(len(models)):
            views = lesson.learn(number, data, batch, lambda evidence, batch=batch: beliefs.of(batch, evidence))  # type: ignore[misc]
            if settings.reestimates:
                beliefs.note(number, batch, views)
    return final_beliefs(models, data, settings, questions)


def final_beliefs(
    models: Sequence[ChainReader], data: ReaderData, settings: ReaderSettings, questions: Array
) -> Beliefs:
    """Return what trained readers believe of questions."""
    beliefs = Beliefs(len(models), data.chains, data.device, settings)
    for number, model in enumerate(models):
        for batch, views in examine(model, data, questions):
            beliefs.note(number, batch, views)
    return beliefs


def teach(model: ChainReader, beliefs: Beliefs, data: ReaderData, settings: ReaderSettings, questions: Array) -> None:
    """Teach one reader what others believe."""
    lesson = Lesson([model], settings, settings.epochs * _steps(questions, settings))
    for chosen in _batches(questions, settings, settings.epochs):
        batch = data.batch(chosen)
        lesson.learn(0, data, batch, lambda evidence, batch=batch: beliefs.of(batch, evidence))  # type: ignore[misc]


def examine(
    model: ChainReader, data: ReaderData, questions: Array, size: int = 256
) -> Iterator[tuple[QuestionBatch, Views]]:
    """Yield what a reader says of questions, many at a time."""
    model.eval()
    for start in range(0, len(questions), size):
        batch = data.batch(questions[start : start + size])
        with torch.inference_mode(), precision(data.device):
            yield batch, look(model, data, batch)


def _optimiser(model: ChainReader, settings: ReaderSettings) -> torch.optim.Optimizer:
    """Return an optimiser with a rate of its own for the encoder, for what is new, and for what evidence weighs."""
    groups: dict[str, list[nn.Parameter]] = {"encoder": [], "new": [], "evidence": []}
    for name, parameter in model.named_parameters():
        part = name.split(".")[0]
        groups[part if part in groups and "marks" not in name else "new"].append(parameter)
    rates = (settings.learning_rate, settings.head_learning_rate, settings.evidence_learning_rate)
    decays = (settings.weight_decay, 0.0, 0.0)
    return torch.optim.AdamW(
        {"params": group, "lr": rate, "weight_decay": decay}
        for group, rate, decay in zip(groups.values(), rates, decays, strict=True)
    )


def _rate(step: int, steps: int, warm_up: float) -> float:
    """Return the share of the learning rate at a step: growing, then falling to nothing."""
    grown = max(warm_up * steps, 1.0)
    return min((step + 1) / grown, max((steps - step) / max(steps - grown, 1.0), 0.0))


def _steps(questions: Array, settings: ReaderSettings) -> int:
    return -(-len(questions) // settings.batch_size)


def _batches(questions: Array, settings: ReaderSettings, epochs: int) -> Iterator[Array]:
    """Yield the questions in random order, batch by batch, so many times."""
    generator = np.random.default_rng(settings.seed)
    for _ in range(epochs):
        order = generator.permutation(questions)
        for start in range(0, len(order), settings.batch_size):
            yield order[start : start + settings.batch_size]
