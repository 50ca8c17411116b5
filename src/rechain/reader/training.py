"""How the chain reader learns from questions and answers alone.

Three views look at every candidate chain: cheap evidence, the Ranker that reads the chain, and the Reasoner that names
the link of every passage but the first from that passage alone. What they believe together, with what other questions
tell of the same steps (E step), is what each of them learns (M step). It begins with the prior, as nothing else knows
anything yet. Several readers can be taught together, each by what all of them believe; their common belief at the end
then teaches the one that is kept.

Where wrong answers are known too, the one that is kept learns to judge: to tell the right answer of a question, with
the best evidence for it, from wrong ones with theirs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from rechain.errors import InputError
from rechain.models.chain_reader import NEVER, ChainReader
from rechain.reader.data import CaseBatch, JudgeData, QuestionBatch, ReaderData
from rechain.reader.settings import ReaderSettings
from rechain.system.devices import precision
from rechain.system.loop import TrainingLoop
from rechain.system.settings import PartShare, Positive
from rechain.system.tensors import Array


@dataclass(frozen=True)
class ReaderTrainingSettings(ReaderSettings):
    """How a run trains the chain reader: the reader's settings, and those that are not kept with the model."""

    held_out: PartShare = 0.1
    """share of the questions on which the agreement is measured, to stop early and keep the best"""
    patience: Positive = 2
    """epochs without a better agreement after which a phase stops"""
    checkpoint_steps: Positive = 200
    """a checkpoint is written after this many steps, and after every epoch"""


_FEW = 8
"""questions that show whether a reader still scores with numbers"""


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
    return Views(_padded(ranker, batch), _padded(reasoner, batch), model.weigh(batch.features) + batch.beside)


def _name_links(model: ChainReader, data: ReaderData, chains: Tensor) -> Tensor:
    """Return the log-probability of each chain's links together; where only one entity can link, nothing is read."""
    texts, slots = data.link_text[chains], data.link_slot[chains]  # [chains, links]
    links = torch.zeros(slots.shape, device=data.device)
    open_texts = texts[slots > 1].unique()
    if not len(open_texts):
        return links.sum(-1)
    entities = int(slots.max())
    named = data.texts.read(open_texts, lambda batch: model.name_links(batch, entities))
    is_open = torch.isin(texts, open_texts) & (slots > 0)
    rows = torch.searchsorted(open_texts, texts[is_open]).to(data.device)
    read = named[rows, (slots[is_open] - 1).to(data.device)]
    return links.masked_scatter(is_open.to(data.device), read).sum(-1)


def _padded(values: Tensor, batch: QuestionBatch) -> Tensor:
    """Return values of real chains as [B, K]."""
    return values.new_zeros(batch.is_chain.shape).masked_scatter(batch.is_chain, values)


class Beliefs:
    """What every reader of several last said of each chain, and what they believe together."""

    def __init__(self, readers: int, chains: int, device: torch.device, settings: ReaderSettings) -> None:
        self.ranker = torch.zeros(readers, chains, device=device)
        self.reasoner = torch.zeros(readers, chains, device=device)
        self._settings = settings

    def note(self, reader: int, batch: QuestionBatch, views: Views) -> None:
        """Remember what a reader said."""
        chains = batch.chains.to(batch.is_chain.device)[batch.is_chain]
        self.ranker[reader, chains] = views.ranker.detach()[batch.is_chain]
        self.reasoner[reader, chains] = views.reasoner.detach()[batch.is_chain]

    def of(self, batch: QuestionBatch, evidence: Tensor) -> Tensor:
        """Return the probability of each chain of some questions, [B, K]: the E step.

        What questions tell each other counts here alone: the views learn from it, and say it where nobody tells.
        """
        chains = batch.chains.to(batch.is_chain.device)
        views = Views(self.ranker.mean(0)[chains], self.reasoner.mean(0)[chains], evidence + batch.told)
        return masked_softmax(views.joint(self._settings), batch)


def masked_softmax(logits: Tensor, batch: QuestionBatch) -> Tensor:
    """Return probabilities of the real chains."""
    return logits.masked_fill(~batch.is_chain, NEVER).softmax(-1)


def losses(views: Views, belief: Tensor, batch: QuestionBatch) -> Tensor:
    """Return how far Ranker, evidence and Reasoner each are from the belief: the M step's loss, [3]."""
    ranker, evidence = (
        -(belief * logits.masked_fill(~batch.is_chain, NEVER).log_softmax(-1)).sum(-1).mean()
        for logits in (views.ranker, views.evidence)
    )
    return torch.stack([ranker, evidence, -(belief * views.reasoner).sum(-1).mean()])


def judge_cases(model: ChainReader, data: JudgeData, batch: CaseBatch) -> Tensor:
    """Return what a reader's judge says of each answer of some questions, [B, K]."""
    logits = data.texts.read(batch.texts, model.judge)
    return logits.new_full(batch.is_case.shape, NEVER).masked_scatter(batch.is_case, logits)


def judge_loss(logits: Tensor, batch: CaseBatch) -> Tensor:
    """Return how far the judge is from preferring the right answer of each question, and from calling each by its name.

    Among the answers of a question it learns what tells them apart; each by itself, to say it when asked of one alone.
    Right and wrong count alike, however many are wrong.
    """
    wrong = batch.is_case[:, 1:]
    preferred = -logits.log_softmax(-1)[:, 0]
    of_wrong = (softplus(logits[:, 1:]) * wrong).sum(-1) / wrong.sum(-1)
    return (preferred + (softplus(-logits[:, 0]) + of_wrong) / 2).mean()


class Questions(NamedTuple):
    """Questions of some numbers, and those of them that are held out."""

    data: ReaderData
    learned: Array
    held_out: Array = np.arange(0)


class Judged(NamedTuple):
    """Questions with wrong answers of some numbers, and those of them that are held out."""

    data: JudgeData
    learned: Array
    held_out: Array = np.arange(0)


class Batch(NamedTuple):
    """What is learnt in a step: questions of some numbers, and of others the answers."""

    questions: Array
    judged: Array


class ReaderTraining(TrainingLoop):
    """A run of the chain reader: a warm-up with pseudo questions, EM, and where several are taught, one by them all."""

    phases = ("warm-up", "EM", "student")
    criterion = "agreement"
    advice = "lower learning_rate, head_learning_rate or clip"
    mismatch = "is of another encoder or of other questions than these"
    parts = TrainingLoop.parts | {"beliefs"}

    def __init__(
        self,
        make: Callable[[int], ChainReader],
        questions: Questions,
        settings: ReaderTrainingSettings,
        pseudo: Questions | None = None,
        is_trained: bool = False,
        judged: Judged | None = None,
    ) -> None:
        """Set up a run; `make` makes a reader from a seed, always with the same weights of evidence.

        Where there are answers to be judged, readers have a judge.

        Where there are pseudo questions, it is warmed up with them, and what it learnt there counts from the beginning,
        as it does of a reader that is trained already.
        """
        super().__init__()
        self.settings: ReaderTrainingSettings = settings
        self.device = questions.data.device
        self.questions = questions
        self.pseudo = pseudo
        self.judged = judged
        self.readers = [make(settings.seed + number) for number in range(settings.teachers + (settings.teachers > 1))]
        self.network = nn.ModuleList(self.readers)
        self.optimisers = {str(number): _optimiser(reader, settings) for number, reader in enumerate(self.readers)}
        self.beliefs = self._no_beliefs()
        self._is_trained = is_trained
        self._prior = self.readers[0].evidence.weight.detach().clone()  # [1, features]

    @property
    def reader(self) -> ChainReader:
        """The one that is kept."""
        return self.readers[-1]

    def _no_beliefs(self) -> Beliefs:
        return Beliefs(self.settings.teachers, self.questions.data.chains, self.device, self.settings)

    def epochs(self, phase: str) -> int:
        """Return how many epochs a phase has at most."""
        settings = self.settings
        if phase == "warm-up":
            return settings.warm_up_epochs if self.pseudo else 0
        return settings.epochs if phase == "EM" or settings.teachers > 1 else 0

    def _taught(self, phase: str) -> Sequence[int]:
        """Return the numbers of the readers that a phase teaches."""
        teachers = self.settings.teachers
        return {"warm-up": range(1), "EM": range(teachers), "student": range(teachers, teachers + 1)}[phase]

    def _teaches_judge(self, phase: str) -> bool:
        """Return whether a phase teaches the reader that is kept what real questions tell."""
        return phase != "warm-up" and len(self.readers) - 1 in self._taught(phase)

    def _questions_of(self, phase: str) -> Questions:
        return self.pseudo if self.pseudo and phase == "warm-up" else self.questions

    def batches(self, phase: str, epoch: int) -> list[Batch]:
        """Return the questions in the random order of an epoch, batch by batch."""
        learned = self._questions_of(phase).learned
        generator, size = np.random.default_rng(self.settings.seed), self.settings.batch_size
        order = [generator.permutation(learned) for _ in range(epoch + 1)][-1]  # one generator shuffles all epochs
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        to_judge = np.arange(0)
        if self.judged and self._teaches_judge(phase):
            to_judge = np.random.default_rng([self.settings.seed, epoch]).permutation(self.judged.learned)
        return [Batch(*both) for both in zip(parts, np.array_split(to_judge, len(parts)), strict=True)]

    def step(self, phase: str, batch: Batch) -> dict[str, Tensor]:
        """Teach every reader of a phase what pseudo questions were made from, or what all readers believe."""
        data, sums = self._questions_of(phase).data, torch.zeros(3, device=self.device)
        chains, told = data.batch(batch.questions), {}
        for number in self._taught(phase):
            if len(batch.judged):
                told["judge"] = self._learn_to_judge(self.readers[number].train(), batch.judged)
            views, loss = self._learn(number, phase, data, chains)
            sums += loss
            if phase == "EM" and self.settings.reestimates:
                self.beliefs.note(number, chains, views)
        means = sums / len(self._taught(phase))
        return dict(zip(("ranker", "evidence", "reasoner"), means, strict=True)) | told

    def _learn_to_judge(self, reader: ChainReader, questions: Array) -> Tensor:
        """Add the gradient of the judge's loss to those of the step that follows; return the loss."""
        assert self.judged is not None  # else there is nothing to be judged in a batch
        batch = self.judged.data.batch(questions)
        with precision(self.device):
            loss = judge_loss(judge_cases(reader, self.judged.data, batch), batch)
        (self.settings.judge_weight * loss).backward()
        return loss.detach()

    def _learn(self, number: int, phase: str, data: ReaderData, batch: QuestionBatch) -> tuple[Views, Tensor]:
        """Take one step with a reader; return what it said before, and its losses."""
        reader, optimiser, settings = self.readers[number].train(), self.optimisers[str(number)], self.settings
        with precision(self.device):
            views = look(reader, data, batch)
            is_made = phase == "warm-up"
            belief = batch.made.float() if is_made else self.beliefs.of(batch, views.evidence.detach())
            loss = losses(views, belief, batch)
        pull = (reader.evidence.weight - self._prior).square().sum()
        (loss.sum() + settings.evidence_pull * pull).backward()
        nn.utils.clip_grad_norm_(reader.parameters(), settings.clip)
        self._set_rates(optimiser, phase)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return views, loss.detach()

    def _set_rates(self, optimiser: torch.optim.Optimizer, phase: str) -> None:
        """Let the learning rates grow in the first steps of a phase, then fall to nothing.

        They are set from the number of the step alone, so that a resumed run needs no state of a schedule.
        """
        steps = -(-len(self._questions_of(phase).learned) // self.settings.batch_size)
        share = _rate(
            self.progress.epoch * steps + self.progress.step, self.epochs(phase) * steps, self.settings.warm_up_share
        )
        for group, rate in zip(optimiser.param_groups, _rates(self.settings), strict=True):
            group["lr"] = rate * share

    def end_phase(self, phase: str) -> None:
        """Begin the next phase with new optimisers, and with what the readers believe by now."""
        for optimiser in self.optimisers.values():
            optimiser.state.clear()
        is_warm = phase == "warm-up" and self.pseudo is not None
        if is_warm:
            self.readers[0].evidence.weight.data.copy_(self._prior)  # pseudo questions tell nothing of what it weighs
            for reader in self.readers[1:]:
                reader.load_state_dict(self.readers[0].state_dict())
        has_student = phase == "EM" and self.settings.teachers > 1
        if is_warm or has_student or (phase == "warm-up" and self._is_trained):
            self.beliefs = self._examined()

    def _examined(self) -> Beliefs:
        """Return what the teachers believe of the questions that are learned from, now."""
        beliefs = self._no_beliefs()
        for number in range(self.settings.teachers):
            for batch, views in examine(self.readers[number], self.questions.data, self.questions.learned):
                beliefs.note(number, batch, views)
        return beliefs

    def held_out_figures(self) -> dict[str, float]:
        """Return the agreement of Ranker and evidence on held-out questions: no label is needed for it.

        It is the probability that a chain drawn by the Ranker is one drawn by the evidence, as this weighed at the
        start. Evidence and Ranker look at different things, so a Ranker that has learnt what chains look like agrees
        on questions it has not seen, and one that has learnt its own mistakes by heart does not. The joint belief
        would be no measure: the Ranker is part of it, and a surer Ranker would agree more with itself.
        """
        data, _, held_out = self.questions
        if not len(held_out):
            return {}
        agreement = [
            (masked_softmax(views.ranker, batch) * masked_softmax(self._weighed(batch), batch)).sum(-1)
            for number in self._taught(self.phases[self.progress.phase])
            for batch, views in examine(self.readers[number], data, held_out)
        ]
        return {self.criterion: float(torch.cat(agreement).mean())} | self._judgement()

    def _weighed(self, batch: QuestionBatch) -> Tensor:
        """Return what evidence said of chains at the start, [B, K]."""
        return batch.features @ self._prior[0] + batch.beside

    def _judgement(self) -> dict[str, float]:
        """Return how often the judge of the reader that is kept prefers the right answer of a held-out question."""
        if not self.judged or not len(self.judged.held_out):
            return {}
        if not self._teaches_judge(self.phases[self.progress.phase]):
            return {}
        data, _, held_out = self.judged
        shares = [
            ((logits[:, :1] > logits[:, 1:]) & batch.is_case[:, 1:]).sum(-1) / batch.is_case[:, 1:].sum(-1)
            for batch, logits in examine_judge(self.reader, data, held_out)
        ]
        return {"preference": float(torch.cat(shares).mean())}

    def outputs(self) -> Tensor:
        """Return what all readers say of the chains of a few questions."""
        data, learned, _ = self.questions
        few = [views for reader in self.readers for _, views in examine(reader, data, learned[:_FEW])]
        return torch.cat([torch.stack(views).flatten() for views in few])

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that decides how the run goes on, with what each reader last said of each chain."""
        tensors, metadata = super().state()
        beliefs = {"beliefs.ranker": self.beliefs.ranker, "beliefs.reasoner": self.beliefs.reasoner}
        return tensors | beliefs, metadata

    def load_state(self, tensors: Any, metadata: Any, where: str) -> None:
        """Go to where a state was returned."""
        super().load_state(tensors, metadata, where)
        try:
            self.beliefs.ranker.copy_(tensors["beliefs.ranker"])
            self.beliefs.reasoner.copy_(tensors["beliefs.reasoner"])
        except (KeyError, RuntimeError) as error:
            raise InputError(f"{where} {self.mismatch}.") from error


def examine(
    model: ChainReader, data: ReaderData, questions: Array, size: int = 256
) -> Iterator[tuple[QuestionBatch, Views]]:
    """Yield what a reader says of questions, many at a time."""
    model.eval()
    for start in range(0, len(questions), size):
        batch = data.batch(questions[start : start + size])
        with torch.inference_mode(), precision(data.device):
            views = look(model, data, batch)
        yield batch, views


def examine_judge(
    model: ChainReader, data: JudgeData, questions: Array, size: int = 256
) -> Iterator[tuple[CaseBatch, Tensor]]:
    """Yield what a reader's judge says of the answers to questions, many at a time."""
    model.eval()
    for start in range(0, len(questions), size):
        batch = data.batch(questions[start : start + size])
        with torch.inference_mode(), precision(data.device):
            logits = judge_cases(model, data, batch)
        yield batch, logits


def _rates(settings: ReaderSettings) -> tuple[float, float, float]:
    return settings.learning_rate, settings.head_learning_rate, settings.evidence_learning_rate


def _optimiser(model: ChainReader, settings: ReaderSettings) -> torch.optim.Optimizer:
    """Return an optimiser with one rate for the encoder, one for what is new, and one for what evidence weighs."""
    groups: dict[str, list[nn.Parameter]] = {"encoder": [], "new": [], "evidence": []}
    for name, parameter in model.named_parameters():
        part = name.split(".")[0]
        groups[part if part in groups and "marks" not in name else "new"].append(parameter)
    decays = (settings.weight_decay, 0.0, 0.0)
    return torch.optim.AdamW(
        {"params": group, "lr": rate, "weight_decay": decay}
        for group, rate, decay in zip(groups.values(), _rates(settings), decays, strict=True)
    )


def _rate(step: int, steps: int, warm_up: float) -> float:
    """Return the share of the learning rate at a step: growing, then falling to nothing."""
    grown = max(warm_up * steps, 1.0)
    return min((step + 1) / grown, max((steps - step) / max(steps - grown, 1.0), 0.0))
