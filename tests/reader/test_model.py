"""The cascade: what is read, what adds up to a score, and how sure the model is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from rechain.formats.datasets import read_questions
from rechain.reader.cpu import has_byte_kernel
from rechain.reader.model import ChainReaderModel, best_cases
from rechain.reader.network import ChainReader, TextBatch
from rechain.reader.prepare import WrongAnswers
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import ChainTexts
from rechain.schema import Passage, Question
from rechain.scoring.interface import BatchModel, Scores
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.evidence.features import nothing, prior, weigh
from rechain.text.evidence.search import find_evidence

Make = Callable[[int], ChainReader]
Towns = Callable[..., list[Question]]

DEMO = Path(__file__).parents[2] / "src" / "rechain" / "data" / "demo.jsonl"


class KnownReader(ChainReader):
    """Says what it is told to, one value for every text in the order of their tokens, and notes what it reads."""

    def __init__(self, ranks: Callable[[list[int]], float] = len) -> None:
        torch.nn.Module.__init__(self)
        self.evidence = torch.nn.Linear(len(prior()), 1, bias=False)
        self.evidence.weight.data.copy_(torch.from_numpy(prior())[None])
        self._ranks = ranks
        self.read: list[list[int]] = []
        self.tails: list[list[int]] = []

    def rank(self, batch: TextBatch) -> Tensor:
        texts = [ids[:length] for ids, length in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]
        self.read += texts
        return torch.tensor([float(self._ranks(text)) for text in texts])

    def name_links(self, batch: TextBatch, entities: int) -> Tensor:
        self.tails += batch.ids.tolist()
        return torch.log_softmax(torch.arange(entities).float(), 0).expand(len(batch.ids), -1)


def web(asked: str = "Who was Quorvath of the Zimbelot?") -> Candidates:
    """Five chains of two, some of which hold more of the question than others."""
    texts = [
        "Zimbelot of Quorvath, who was",
        "of Quorvath",
        "by Brimlad",
        "Quorvath and Brimlad in Ostrela",
        "Brimlad of Ostrela",
    ]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    return find_candidates(Question(id="web", question=asked, answer="Ostrela", passages=passages, hops=2))


def ladder(**fields: object) -> Candidates:
    """Chains of two, three and four passages."""
    texts = ["Zimbelot met Quorvath", "Quorvath met Brimlad", "Brimlad met Vexlor", "Vexlor of Ostrela", "a Vexlor"]
    passages = [Passage(id=str(n), text=text) for n, text in enumerate(texts)]
    asked = "Who knew Zimbelot, Quorvath and Brimlad?"
    return find_evidence(
        Question.model_validate({"id": "q", "question": asked, "answer": "Ostrela", "passages": passages, **fields})
    )


TEMPERATURE = ReaderSettings().temperature


def shares_of(scores: Sequence[float], none: float) -> list[float]:
    """Return the shares of the eight best candidates beside that of none; the others have none."""
    least = sorted(scores)[-8:][0]
    chances = [exp(score / TEMPERATURE) if score >= least else 0.0 for score in scores]
    return [chance / (sum(chances) + exp(none / TEMPERATURE)) for chance in chances]


def model(tokenizer: Tokenizer, network: ChainReader, **settings: float) -> ChainReaderModel:
    return ChainReaderModel(network, tokenizer, ReaderSettings(**settings))  # type: ignore[arg-type]


def totals(scores: Scores) -> list[float]:
    return [sum(contributions.values()) for contributions in scores.contributions]


def column(scores: Scores, name: str) -> list[float]:
    return [contributions[name] for contributions in scores.contributions]


def test_it_is_a_model_that_scores_batches(tokenizer: Tokenizer) -> None:
    assert isinstance(model(tokenizer, KnownReader()), BatchModel)


# ---- what is read


def test_chains_beyond_the_margin_are_not_read(tokenizer: Tokenizer) -> None:
    candidates = web()
    evidence = np.sort(weigh(candidates) @ prior())[::-1]
    counts = []
    for margin in (0.0, *(float(evidence[0] - value) + 1e-3 for value in evidence[1:])):
        network = KnownReader()
        model(tokenizer, network, margin=margin).score_many([candidates])
        close = int((evidence >= evidence[0] - margin).sum())
        assert len(network.read) == (close if close > 1 else 0)
        counts.append(len(network.read))
    assert counts[0] == 0 and counts[-1] == len(candidates.chains) > 3
    assert len(set(counts)) > 2


def test_no_more_chains_are_read_than_are_worth_it(tokenizer: Tokenizer) -> None:
    network = KnownReader()
    (scores,) = model(tokenizer, network, margin=1000.0, most_chains=2).score_many([web()])
    assert len(network.read) == 2
    assert len(scores.confidences) == len(web().chains)


def test_nothing_is_read_where_one_chain_is_alone(tokenizer: Tokenizer) -> None:
    passages = [Passage(id="0", text="by Quorvath"), Passage(id="1", text="Quorvath of Ostrela")]
    alone = find_evidence(Question(id="q", question="Who?", answer="Ostrela", passages=passages, hops=2))
    network = KnownReader()
    (scores,) = model(tokenizer, network, margin=1000.0).score_many([alone])
    assert (network.read, network.tails) == ([], [])
    evidence = weigh(alone)
    assert totals(scores) == pytest.approx((evidence @ prior()).tolist())
    no_chain = nothing(alone)
    assert scores.confidences == pytest.approx([1 / (1 + exp((no_chain - totals(scores)[0]) / TEMPERATURE))])


def test_the_real_network_reads_few_chains_of_easy_questions(
    default_model: ChainReaderModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    rank = default_model.network.rank
    monkeypatch.setattr(default_model.network, "rank", lambda batch: read.append(len(batch.ids)) or rank(batch))
    asked = [find_evidence(question) for question in read_questions(DEMO)]
    default_model.score_many(asked)
    assert sum(read) < 0.5 * sum(len(candidates.chains) for candidates in asked)


# ---- what adds up


def test_what_the_network_says_counts_beside_evidence(tokenizer: Tokenizer) -> None:
    candidates = web()
    evidence = weigh(candidates) @ prior()
    read = np.argsort(-evidence, kind="stable")[:3].tolist()
    told = iter([7.0, 10.0, 8.0])
    network = KnownReader(lambda ids: next(told))
    settings = {"margin": 1000.0, "most_chains": 3, "ranker_weight": 0.5, "reasoner_weight": 0.0}
    (scores,) = model(tokenizer, network, **settings).score_many([candidates])
    assert column(scores, "evidence") == pytest.approx(evidence.tolist())
    ranker = column(scores, "ranker")
    assert sorted(ranker[number] for number in read) == [-1.5, -1.0, 0.0]
    others = set(range(len(ranker))) - set(read)
    assert others and {ranker[number] for number in others} == {-1.5}  # no better than the worst that was read
    assert totals(scores) == pytest.approx((evidence + ranker).tolist())
    assert scores.steps is not None
    said = sorted(scores.steps[number][0].probability for number in read)
    total = exp(7.0) + exp(8.0) + exp(10.0)
    assert said == pytest.approx([exp(7.0) / total, exp(8.0) / total, exp(10.0) / total])
    assert all(scores.steps[number] == [] for number in others)


def test_each_chain_has_what_was_said_of_it(tokenizer: Tokenizer) -> None:
    candidates = web()
    brimlad = tokenizer.encode("brimlad", add_special_tokens=False).ids[0]
    network = KnownReader(lambda ids: -ids.count(brimlad))
    settings = {"margin": 1000.0, "ranker_weight": 1.0, "reasoner_weight": 1.0}
    (scores,) = model(tokenizer, network, **settings).score_many([candidates])
    texts = [view.passage.text for view in candidates.views]
    counts = [sum(texts[passage].count("Brimlad") for passage in chain.passages) for chain in candidates.chains]
    assert column(scores, "ranker") == [min(counts) - count for count in counts]
    reasoner = dict(zip([chain.passages for chain in candidates.chains], column(scores, "reasoner"), strict=True))
    assert reasoner[0, 3] == reasoner[1, 3]  # one entity
    assert abs(reasoner[0, 3] - reasoner[2, 3]) == pytest.approx(1, abs=1e-6)  # two entities of one tail


def test_confidences_are_probabilities_that_leave_room_for_none(tokenizer: Tokenizer) -> None:
    candidates = web()
    (scores,) = model(tokenizer, KnownReader(), margin=1000.0).score_many([candidates])
    assert scores.confidences == pytest.approx(shares_of(totals(scores), nothing(candidates)))
    assert sum(scores.confidences) < 1


def test_a_temperature_makes_less_sure(tokenizer: Tokenizer) -> None:
    sure, less, undecided = (
        model(tokenizer, KnownReader(), temperature=temperature).score_many([web()])[0].confidences
        for temperature in (0.5, 2.0, 1e6)
    )
    assert max(sure) > max(less) > max(undecided)
    counted = [share for share in undecided if share]
    assert counted == pytest.approx([1 / (len(counted) + 1)] * len(counted), abs=1e-3)


def test_evidence_is_what_was_learnt_and_not_the_prior(tokenizer: Tokenizer) -> None:
    network = KnownReader()
    network.evidence.weight.data.mul_(-1)
    (scores,) = model(tokenizer, network, margin=0.0).score_many([web()])
    assert column(scores, "evidence") == pytest.approx((-(weigh(web()) @ prior())).tolist())


# ---- lengths and shapes


COMPARED = "Which is older, Zimbelot or Quorvath?"


def compared(answer: str) -> Candidates:
    texts = [("Zimbelot", "Old Brimlad."), ("Quorvath", "Older Brimlad."), ("Vexlor", "New.")]
    passages = [Passage(id=title, title=title, text=text) for title, text in texts]
    return find_evidence(Question(id="q", question=COMPARED, answer=answer, passages=passages))


@pytest.mark.parametrize("candidates", [ladder(), compared("Quorvath"), compared("yes")], ids=["chain", "or", "yes"])
def test_one_softmax_is_over_candidates_of_every_shape(tokenizer: Tokenizer, candidates: Candidates) -> None:
    assert len({(chain.shape, len(chain.passages)) for chain in candidates.chains}) > 3
    (scores,) = model(tokenizer, KnownReader(), margin=1000.0).score_many([candidates])
    assert scores.confidences == pytest.approx(shares_of(totals(scores), nothing(candidates)))
    assert set(scores.contributions[0]) == {"evidence", "ranker", "reasoner"}


def test_candidates_of_every_shape_are_read(tokenizer: Tokenizer) -> None:
    network, candidates = KnownReader(), compared("Quorvath")
    model(tokenizer, network, margin=1000.0).score_many([candidates])
    end = tokenizer.token_to_id("[SEP]")
    read = sorted(ids.count(end) - 1 for ids in network.read)
    assert read == sorted(len(chain.passages) for chain in candidates.chains)
    assert {chain.shape for chain in candidates.chains} >= {"single", "parallel"}


def test_what_the_search_has_described_is_not_described_again(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = ladder()
    assert candidates.evidence is not None
    (described,) = model(tokenizer, KnownReader(), margin=0.0).score_many([replace(candidates, evidence=None)])
    monkeypatch.setattr("rechain.reader.model.weigh", None)
    (scores,) = model(tokenizer, KnownReader(), margin=0.0).score_many([candidates])
    assert column(scores, "evidence") == pytest.approx(column(described, "evidence"))


@pytest.mark.parametrize("hops", [2, 3, 4])
def test_where_the_question_gives_the_length_others_are_no_candidates(tokenizer: Tokenizer, hops: int) -> None:
    candidates = ladder(hops=hops)
    (scores,) = model(tokenizer, KnownReader(), margin=1000.0).score_many([candidates])
    assert {len(chain.passages) for chain in candidates.chains} == {hops}
    assert sum(scores.confidences) < 1


# ---- batches


def test_of_many_questions_each_has_its_own(
    tokenizer: Tokenizer, towns: Towns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rechain.reader.network.TOKENS_AT_ONCE", 100)
    asked = [web(), *(find_candidates(question) for question in towns(4, traps=True)), ladder(), web("Who?")]
    reader = model(tokenizer, KnownReader(), margin=30.0)
    together = reader.score_many(asked)
    assert together == [reader.score_many([candidates])[0] for candidates in asked]
    assert reader.score_many([]) == []


@pytest.mark.skipif(not has_byte_kernel(), reason="this CPU does not sum products of bytes exactly")
def test_the_bundled_model_says_the_same_to_the_last_bit_in_any_batch(
    default_model: ChainReaderModel, towns: Towns
) -> None:
    free = {"hops": None, "link_types": None}
    demo = [question.model_copy(update=free if n < 3 else {}) for n, question in enumerate(read_questions(DEMO))]
    asked = [find_evidence(question) for question in [*demo[:8], *towns(4)]]
    alone = [default_model.score_many([candidates])[0] for candidates in asked]
    assert any(column(scores, "ranker") != [0.0] * len(scores.confidences) for scores in alone)
    assert default_model.score_many(asked) == alone
    assert default_model.score_many(asked[::-1])[::-1] == alone
    assert [scores for n in range(0, len(asked), 5) for scores in default_model.score_many(asked[n : n + 5])] == alone


def test_a_tiny_network_scores_every_chain(tokenizer: Tokenizer, tiny_reader: Make) -> None:
    for candidates in (web(), ladder()):
        (scores,) = model(tokenizer, tiny_reader(0), margin=1000.0).score_many([candidates])
        assert len(scores.contributions) == len(scores.confidences) == len(candidates.chains)
        assert all(np.isfinite(totals(scores)))
        assert 0 < sum(scores.confidences) <= 1


# ---- the judge


class KnownJudge(KnownReader):
    """Holds an answer to be supported by as much as there is to read."""

    judges = True

    def judge(self, batch: TextBatch) -> Tensor:
        return batch.lengths.float()


def test_the_best_chain_of_each_question_is_judged(tokenizer: Tokenizer) -> None:
    network = KnownJudge()
    asked = [web(), web("Who?"), ladder()]
    judging = model(tokenizer, network, judge_tokens=100)
    for candidates, scores in zip(asked, judging.score_many(asked), strict=True):
        best = candidates.chains[int(np.argmax(totals(scores)))]
        (case,) = best_cases(candidates, scores)
        assert (case.passages, case.edges, case.answer) == (best.passages, best.edges, "Ostrela")
        assert case.spans[best.passages[-1]]
        assert scores.support == [len(ChainTexts(candidates, tokenizer).case(case, 100).ids)]


def test_a_model_without_a_judge_says_nothing_of_support(tokenizer: Tokenizer) -> None:
    assert [scores.support for scores in model(tokenizer, KnownReader()).score_many([web()])] == [None]


def test_the_bundled_judge_prefers_right_answers(default_model: ChainReaderModel) -> None:
    questions = list(read_questions(DEMO))
    wrong_answers, wins = WrongAnswers(questions), []
    for question in questions[:5]:
        chosen = wrong_answers.choose(question, 3)
        others = [question.model_copy(update={"answer": answer}) for answer in chosen]
        right, *wrong = default_model.score_many([find_evidence(one) for one in (question, *others)])
        assert right.support
        wins += [right.support > scores.support for scores in wrong if scores.support]
    assert len(wins) >= 12 and sum(wins) / len(wins) > 0.8
