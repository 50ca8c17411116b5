"""How the chain reader learns from questions and answers alone, from prepared arrays on any GPU machine.

Three views look at every candidate chain: cheap evidence, the Ranker that reads the chain, and the Reasoner that names
the link of every passage but the first from that passage alone. What they believe together, with what other questions
say about the same steps (E step), is what each of them learns (M step). If wrong answers are known too, the judge
learns to distinguish the right answer of a question, with its best evidence, from wrong ones with theirs.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from rechain.errors import RechainError
from rechain.reader.network import NEVER, ChainReader, Texts
from rechain.reader.settings import ReaderSettings
from rechain.system.tensors import Array, Arrays, precision
from rechain.system.training import RunFolder, TrainingLog, TrainingState, is_shared

if TYPE_CHECKING:
    from rechain.reader.prepare import ReaderMaterial

_FEW = 8  # questions that show whether a reader's scores are still finite
_Batch = TypeVar("_Batch")
_Outputs = TypeVar("_Outputs")

# ---- data


class _Rows:
    """Rows of questions, each with texts, on a device; some questions are learned from, others are held out."""

    starts: str
    """the name of the array with the first row of each question"""

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.texts = Texts(arrays, device)
        self._starts = torch.from_numpy(arrays[self.starts])
        self.learned, self.held_out = np.arange(len(self)), np.arange(0)

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._starts) - 1

    def hold_out(self, share: float, seed: int) -> None:
        """Hold out a share of the questions, drawn at random."""
        shuffled = np.random.default_rng([seed, 0]).permutation(len(self))
        start = int(len(self) * share)
        self.learned, self.held_out = np.sort(shuffled[start:]), np.sort(shuffled[:start])

    def _members(self, questions: Array) -> tuple[Tensor, Tensor]:
        """Return the numbers of each question's rows, [B, K], and whether there is a row, [B, K].

        Rows go from a question's start to that of the next one; padding repeats the first row.
        """
        numbers = torch.as_tensor(questions)
        first, after = self._starts[numbers, None], self._starts[numbers + 1, None]  # [B, 1]
        place = torch.arange(int((after - first).max()))  # [K]
        exists = place < after - first  # [B, K]
        return (first + place).where(exists, first), exists


class QuestionBatch(NamedTuple):
    """The chains of B questions, up to K each."""

    is_chain: Tensor  # [B, K]; all else is padded if there is no chain
    chains: Tensor  # numbers of the chains, [B, K], on the CPU, where texts are gathered
    features: Tensor  # cheap evidence, [B, K, F]
    shared: Tensor  # what other questions say about each chain by the steps they share, [B, K]
    may_be: Tensor  # whether it may be right, by how many passages are needed, [B, K]


class ReaderData(_Rows):
    """The best chains of questions, cut into batches without a loop."""

    starts = "chain_start"

    def __init__(self, arrays: Arrays, device: torch.device | str) -> None:
        super().__init__(arrays, device)
        self.chain_text = torch.from_numpy(arrays["chain_text"])
        self.link_text = torch.from_numpy(arrays["link_text"])  # [chains, links]
        self.link_slot = torch.from_numpy(arrays["link_slot"])
        columns = (arrays[name] for name in ("features", "shared", "may_be"))
        self._columns = [torch.from_numpy(column).to(self.device) for column in columns]

    def batch(self, questions: Array) -> QuestionBatch:
        """Return the chains of questions of these numbers, [B]."""
        chains, is_chain = self._members(questions)
        index = chains.to(self.device)
        return QuestionBatch(is_chain.to(self.device), chains, *(column[index] for column in self._columns))


class CaseBatch(NamedTuple):
    """The answers to judge of B questions, up to K each; the first of each is right, the others wrong."""

    is_case: Tensor  # [B, K]
    texts: Tensor  # the numbers of their texts, [cases], on the CPU


class JudgeData(_Rows):
    """Right and wrong answers of questions with their evidence, as the judge reads them."""

    starts = "case_start"

    def batch(self, questions: Array) -> CaseBatch:
        """Return the answers to questions of these numbers, [B]."""
        cases, is_case = self._members(questions)
        return CaseBatch(is_case.to(self.device), cases[is_case])


# ---- views, beliefs and losses


class Views(NamedTuple):
    """The logits of chains by the three views, [B, K]."""

    ranker: Tensor
    reasoner: Tensor
    evidence: Tensor

    def joint(self, settings: ReaderSettings) -> Tensor:
        """Return the logits by all views together."""
        return self.evidence + settings.ranker_weight * self.ranker + settings.reasoner_weight * self.reasoner


def look(model: ChainReader, data: ReaderData, batch: QuestionBatch) -> Views:
    """Return a reader's views of the chains of some questions; every text is read once."""
    chains = batch.chains[batch.is_chain.cpu()]
    ranker = data.texts.read(data.chain_text[chains], model.rank)
    reasoner = _name_links(model, data, chains)
    return Views(_padded(ranker, batch), _padded(reasoner, batch), model.weigh(batch.features))


def _name_links(model: ChainReader, data: ReaderData, chains: Tensor) -> Tensor:
    """Return the log-probability of each chain's links together; a text with one entity to name is not read."""
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


def masked_softmax(logits: Tensor, batch: QuestionBatch) -> Tensor:
    """Return probabilities of the real chains."""
    return logits.masked_fill(~batch.is_chain, NEVER).softmax(-1)


def view_losses(views: Views, belief: Tensor, batch: QuestionBatch) -> Tensor:
    """Return the cross-entropies of Ranker, evidence and Reasoner with the belief: the M step's losses, [3]."""
    ranker, evidence = (
        -(belief * logits.masked_fill(~batch.is_chain, NEVER).log_softmax(-1)).sum(-1).mean()
        for logits in (views.ranker, views.evidence)
    )
    return torch.stack([ranker, evidence, -(belief * views.reasoner).sum(-1).mean()])


def judge_cases(model: ChainReader, data: JudgeData, batch: CaseBatch) -> Tensor:
    """Return the judge's logit of each answer of some questions, [B, K]."""
    logits = data.texts.read(batch.texts, model.judge)
    return logits.new_full(batch.is_case.shape, NEVER).masked_scatter(batch.is_case, logits)


def judge_loss(logits: Tensor, batch: CaseBatch) -> Tensor:
    """Return the judge's loss: it should prefer the right answer of each question, and classify each answer alone.

    The first teaches the difference between two answers, the second the verdict on a single one. Right and wrong
    answers weigh the same, however many are wrong.
    """
    wrong = batch.is_case[:, 1:]
    preferred = -logits.log_softmax(-1)[:, 0]
    of_wrong = (softplus(logits[:, 1:]) * wrong).sum(-1) / wrong.sum(-1)
    return (preferred + (softplus(-logits[:, 0]) + of_wrong) / 2).mean()


# ---- the loop


class ReaderTraining:
    """A training run of the chain reader by expectation maximisation (EM)."""

    def __init__(
        self,
        reader: ChainReader,
        data: ReaderData,
        settings: ReaderSettings,
        is_trained: bool = False,
        judged: JudgeData | None = None,
    ) -> None:
        """Set up a run; the beliefs of a reader that is trained already count from the beginning."""
        self.reader, self.data, self.judged, self.settings = reader, data, judged, settings
        self.optimiser = _optimiser(reader, settings)
        self._prior = reader.evidence.weight.detach().clone()  # [1, features]
        # the last logits of every chain
        self.last = {name: torch.zeros(len(data.chain_text), device=data.device) for name in ("ranker", "reasoner")}
        if is_trained:
            for batch, views in examine(look, reader, data, data.learned):
                self.remember(batch, views)
        self.state = TrainingState(
            reader,
            {"reader": self.optimiser},
            settings,
            phases=("EM",),
            criterion="agreement",
            checkpoint_steps=settings.checkpoint_steps,
            advice="lower learning_rate, head_learning_rate or clip",
            more=self.last,
        )

    def train(self) -> None:
        """Train to the end, from the beginning or from where the state is."""
        state, settings = self.state, self.settings
        while state.phase:
            while state.progress.epoch < settings.epochs and state.progress.worse < settings.patience:
                batches = self.batches(state.progress.epoch)
                self.reader.train()
                for questions, judged in batches[state.progress.step :]:
                    self._set_rates(state.progress.epoch * len(batches) + state.progress.step, len(batches))
                    state.end_step(self.step(questions, judged), len(batches))
                figures = self.held_out_figures()
                few = examine(look, self.reader, self.data, self.data.learned[:_FEW])
                state.end_epoch(figures, torch.cat([torch.stack(views).flatten() for _, views in few]))
            state.restore_best()
            state.end_phase()

    def batches(self, epoch: int) -> list[tuple[Array, Array]]:
        """Return the batches of an epoch in random order, each the questions to learn from and those to judge.

        A resumed epoch has the same ones.
        """
        generator, size = np.random.default_rng(self.settings.seed), self.settings.batch_size
        for _ in range(epoch + 1):  # one generator shuffles all epochs
            order = generator.permutation(self.data.learned)
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        judged = self.judged.learned if self.judged else np.arange(0)
        judged = np.random.default_rng([self.settings.seed, epoch]).permutation(judged)
        return list(zip(parts, np.array_split(judged, len(parts)), strict=True))

    def step(self, questions: Array, judged: Array) -> dict[str, Tensor]:
        """Take one step of the optimiser; return the losses by name."""
        reader, data, settings, judge = self.reader, self.data, self.settings, {}
        if self.judged and len(judged):
            cases = self.judged.batch(judged)
            with precision(data.device):
                loss = judge_loss(judge_cases(reader, self.judged, cases), cases)
            (settings.judge_weight * loss).backward()
            judge["judge"] = loss.detach()
        batch = data.batch(questions)
        with precision(data.device):
            views = look(reader, data, batch)
            belief = self.belief(batch, views.evidence.detach())  # E step
            losses = view_losses(views, belief, batch)  # M step
        pull = (reader.evidence.weight - self._prior).square().sum()
        (losses.sum() + settings.evidence_pull * pull).backward()
        nn.utils.clip_grad_norm_(reader.parameters(), settings.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.remember(batch, views)
        return dict(zip(("ranker", "evidence", "reasoner"), losses.detach(), strict=True)) | judge

    def belief(self, batch: QuestionBatch, evidence: Tensor) -> Tensor:
        """Return the probability of each chain by the last logits of Ranker and Reasoner, [B, K]: the E step.

        What other questions say counts here alone: the views learn it, and need no other questions in recovery.
        """
        chains = batch.chains.to(self.data.device)
        views = Views(self.last["ranker"][chains], self.last["reasoner"][chains], evidence + batch.shared)
        return masked_softmax(views.joint(self.settings).masked_fill(~batch.may_be, NEVER), batch)

    def remember(self, batch: QuestionBatch, views: Views) -> None:
        """Replace the last logits of some chains."""
        chains = batch.chains.to(self.data.device)[batch.is_chain]
        self.last["ranker"][chains] = views.ranker.detach()[batch.is_chain]
        self.last["reasoner"][chains] = views.reasoner.detach()[batch.is_chain]

    def _set_rates(self, step: int, epoch_steps: int) -> None:
        """Increase the learning rates in the first steps, then lower them to 0.

        They depend on the number of the step alone, so a resumed run needs no state of a schedule.
        """
        steps = self.settings.epochs * epoch_steps
        warm_up = max(self.settings.warm_up_share * steps, 1.0)
        share = min((step + 1) / warm_up, max((steps - step) / max(steps - warm_up, 1.0), 0.0))
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * share

    def held_out_figures(self) -> dict[str, float]:
        """Return figures on held-out questions, none of which needs a label: an agreement and the judge's preference.

        The agreement is the probability that a chain drawn by the Ranker is one drawn by the evidence, as this weighed
        at the start. Evidence and Ranker look at different things, so a Ranker that has learned what chains look like
        agrees on questions it has not seen, and one that has learned its own mistakes by heart does not. The joint
        belief would be no measure: the Ranker is part of it, and a surer Ranker would agree more with itself.

        The preference is how often the judge prefers the right answer.
        """
        data, judged, agreement, preference = self.data, self.judged, [], []
        if not len(data.held_out):
            return {}
        for batch, views in examine(look, self.reader, data, data.held_out):
            prior = batch.features @ self._prior[0]
            agreement.append((masked_softmax(views.ranker, batch) * masked_softmax(prior, batch)).sum(-1))
        figures = {"agreement": float(torch.cat(agreement).mean())}
        if not judged or not len(judged.held_out):
            return figures
        for cases, logits in examine(judge_cases, self.reader, judged, judged.held_out):
            is_wrong = cases.is_case[:, 1:]
            preference.append(((logits[:, :1] > logits[:, 1:]) & is_wrong).sum(-1) / is_wrong.sum(-1))
        return {**figures, "preference": float(torch.cat(preference).mean())}


def examine(
    read: Callable[[ChainReader, Any, _Batch], _Outputs],
    model: ChainReader,
    data: ReaderData | JudgeData,
    questions: Array,
    size: int = 256,
) -> Iterator[tuple[_Batch, _Outputs]]:
    """Yield what a reader returns for questions, many at a time; `read` is `look` or `judge_cases`."""
    model.eval()
    for start in range(0, len(questions), size):
        batch: Any = data.batch(questions[start : start + size])
        with torch.inference_mode(), precision(data.device):
            outputs = read(model, data, batch)
        yield batch, outputs


def _optimiser(model: ChainReader, settings: ReaderSettings) -> torch.optim.Optimizer:
    """Return an optimiser with one rate for the encoder, one for what is new, and one for the weights of evidence."""
    groups: dict[str, list[nn.Parameter]] = {"encoder": [], "new": [], "evidence": []}
    for name, parameter in model.named_parameters():
        part = name.split(".")[0]
        groups[part if part in groups and "marks" not in name else "new"].append(parameter)
    rates = (settings.learning_rate, settings.head_learning_rate, settings.evidence_learning_rate)
    decays = (settings.weight_decay, 0.0, 0.0)
    return torch.optim.AdamW(
        {"params": group, "lr": rate, "rate": rate, "weight_decay": decay}
        for group, rate, decay in zip(groups.values(), rates, decays, strict=True)
    )


# ---- a run in a folder


def train_reader(
    material: "ReaderMaterial",
    settings: ReaderSettings,
    folder: RunFolder,
    *,
    device: str = "cpu",
    resume: bool = False,
    log: TrainingLog | None = None,
) -> TrainingState:
    """Train from the beginning, or from the last checkpoint; write the model into the folder of the run."""
    from rechain.reader.model import ChainReaderModel
    from rechain.reader.pretrained import save

    if is_shared():  # each process would believe its own share of the chains alone
        raise RechainError("the chain reader is trained by one process; start it without torchrun.")
    training = start_training(material, settings, device)
    record = {**material.record, "settings": asdict(settings)}
    if resume and folder.is_begun:
        folder.check(record, "other questions or another encoder")
        training.state.load_last(folder.checkpoint)
    else:
        folder.begin(record)
    training.state.start(folder.checkpoint, log)
    training.train()
    model = ChainReaderModel(training.reader, material.tokenizer, settings)  # of floats, as they were trained
    cosine, layers = model.mean_unrelated_cosine(material.sentences), training.reader.judge_layers
    model.settings = settings.but(unlike=cosine, judge_layers=layers)
    save(model, folder.path)
    return training.state


def start_training(material: "ReaderMaterial", settings: ReaderSettings, device: str) -> ReaderTraining:
    """Return a run that is about to begin; some of the questions are held out."""
    from rechain.reader.pretrained import CONFIG, is_model, load_trainable

    judged = None if material.judged is None else JudgeData(material.judged, device)
    network = load_trainable(material.start, settings, settings.seed, judged is not None).network.to(device)
    data = ReaderData(material.questions, device)
    for rows in filter(None, (data, judged)):
        rows.hold_out(settings.held_out, settings.seed)
    return ReaderTraining(network, data, settings, is_model(material.start / CONFIG), judged)
