"""What scores become, and the models that learn nothing."""

from collections import Counter
from collections.abc import Callable
from math import log

import pytest

from rechain.recoverer import Recoverer
from rechain.schema import Mention, Passage, Question
from rechain.scoring import BASELINES, BM25, Random
from rechain.scoring.interface import ALONE, JOINTLY, LINK_FACTOR, BatchModel, Calibration, Lexical
from rechain.text.candidates import find_candidates
from rechain.text.evidence.pairs import MENTION_FACTOR
from rechain.text.languages import idf
from rechain.text.linking import KINDS
from rechain.text.words import Text


def test_a_model_that_scores_many_questions_together_is_told_from_others(
    batch_fake: Callable[[], BatchModel],
) -> None:
    assert isinstance(batch_fake(), BatchModel)
    assert not any(isinstance(model(), BatchModel) for model in BASELINES.values())


def test_a_share_by_hand() -> None:
    # log-odds of 0.8 are log 4; half of them and 0 more are the odds of 2 to 1
    assert Calibration(0.5, 0.0).confidence(0.8) == pytest.approx(2 / 3)


@pytest.mark.parametrize("calibration", [ALONE, JOINTLY])
def test_shares_become_confidences_in_their_order(calibration: Calibration) -> None:
    confidences = list(map(calibration.confidence, [0.0, 1e-9, 0.1, 0.5, 0.9, 1.0]))
    assert confidences == sorted(confidences)
    assert all(0 < confidence < 1 for confidence in confidences)


def text_question(asked: str, *texts: str) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    return Question(id="q", question=asked, answer="Ostrela", passages=passages)


def test_words_of_the_question_in_either_passage_count_once_by_idf_and_links_by_weight() -> None:
    asked = "Which river, a long river, passes a castle and a bridge?"
    found = find_candidates(text_question(asked, "The river of Quorvath, a river", "Quorvath: river, castle, Ostrela"))
    (score,) = Lexical().score(found)
    shared = ["river", "castle", "a"]
    assert score["question words"] == pytest.approx(sum(map(idf, shared)))
    assert score["links"] == pytest.approx(LINK_FACTOR * (KINDS["name"].bonus + idf("quorvath")))
    assert set(score) == {"question words", "links"}


def test_the_head_that_the_question_speaks_of_is_preferred() -> None:
    texts = "A bridge by Quorvath", "A castle by Quorvath", "Quorvath was born in Ostrela"
    for asked, head in ("Where was the maker of the bridge born?", "0"), ("Where was the castle's maker born?", "1"):
        assert Recoverer("lexical").recover(text_question(asked, *texts)).chains[0].passages == [head, "2"]


def test_a_strong_link_outweighs_a_common_word() -> None:
    passages = [
        Passage(id="weak", text="an old quorvath was there"),
        Passage(id="strong", text="the friend of Brimlad"),
        Passage(id="tail", title="Brimlad", text="a quorvath in Ostrela"),
    ]
    question = Question(id="q", question="Who was there?", answer="Ostrela", passages=passages)
    assert Recoverer("lexical").recover(question).chains[0].passages == ["strong", "tail"]


def passage(name: str, text: str, **entities: str) -> Passage:
    """A passage in which each entity stands wherever its name does."""
    mentions = [
        Mention(entity=f"{kind}:{found}", start=at, end=at + len(found))
        for found, kind in entities.items()
        for at in range(len(text))
        if text.startswith(found, at)
    ]
    return Passage(id=name, text=text, mentions=mentions)


HEAD = passage("head", "A1 binds X1. A1 and X1 again. Then X1.", A1="drug", X1="gene")
FAR = passage("far", "A1 is old. But X1 is new.", A1="drug", X1="gene")
TAIL = passage("tail", "X1 meets Y1. No more.", X1="gene", Y1="gene")


def entity_question(*passages: Passage) -> Question:
    return Question(
        id="q",
        question="A1?",
        answer="Y1",
        answer_entity="gene:Y1",
        question_entities=["drug:A1"],
        link_types=["gene"],
        hops=2,
        passages=list(passages),
    )


def test_entity_pairs_count_by_the_sentences_and_mentions_they_share() -> None:
    found = find_candidates(entity_question(HEAD, TAIL))
    (score,) = Lexical().score(found)
    # head: A1 and X1 share 2 sentences, stand there 2 and 3 times; tail: X1 and Y1 share 1, once each
    assert score["pairs in one sentence"] == pytest.approx(log(2 + 0.1) + log(1 + 0.1))
    assert score["mentions"] == pytest.approx(MENTION_FACTOR * log(2 * 3))


def test_entities_in_one_sentence_are_preferred_to_entities_apart() -> None:
    recovered = Recoverer("lexical", top=2).recover(entity_question(FAR, HEAD, TAIL))
    assert [chain.passages for chain in recovered.chains] == [["head", "tail"], ["far", "tail"]]


def test_entities_that_share_no_sentence_still_have_a_score() -> None:
    (score,) = Lexical().score(find_candidates(entity_question(FAR, TAIL)))
    assert score["pairs in one sentence"] == pytest.approx(log(0.1) + log(1.1))
    assert score["mentions"] == 0.0


def test_identifiers_in_the_text_count_as_entities_do() -> None:
    passages = [
        Passage(id="far", text="DB00001 is old. But P04637 is new."),
        Passage(id="near", text="DB00001 binds P04637."),
        Passage(id="tail", text="P04637 binds DB00072."),
    ]
    question = Question(
        id="q",
        question="DB00001?",
        answer="DB00072",
        answer_entity="drug:DB00072",
        question_entities=["drug:DB00001"],
        link_types=["protein"],
        hops=2,
        passages=passages,
    )
    assert Recoverer("lexical").recover(question).chains[0].passages == ["near", "tail"]


TEXTS = [
    "Quorvath built a bridge, a long bridge over the river.",
    "Quorvath built a castle.",
    "Quorvath was born in Ostrela near the river.",
    "It rains.",
]


def bridges(asked: str) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(TEXTS)]
    return Question(id="q", question=asked, answer="Ostrela", passages=passages)


def by_formula(words: list[str], number: int, k1: float = 1.5, b: float = 0.75) -> float:
    documents = [Text(text).words for text in TEXTS]
    mean = sum(map(len, documents)) / len(documents)
    score = 0.0
    for word in words:
        holding, times = sum(word in d for d in documents), documents[number].count(word)
        rarity = log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        score += rarity * times / (times + k1 * (1 - b + b * len(documents[number]) / mean))
    return score


def test_a_chain_has_the_sum_of_its_passages_scores() -> None:
    found = find_candidates(bridges("Which bridge of the river?"))
    scores = BM25().score(found)
    assert len(scores) == 2
    for chain, score in zip(found.chains, scores, strict=True):
        words = ["bridge", "the", "river"]
        assert score["bm25"] == pytest.approx(sum(by_formula(words, p) for p in chain.passages), rel=1e-4)


@pytest.mark.parametrize(("asked", "head"), [("Which bridge?", "0"), ("A CASTLE!", "1")])
def test_the_passage_that_the_question_speaks_of_wins(asked: str, head: str) -> None:
    assert Recoverer("bm25").recover(bridges(asked)).chains[0].passages == [head, "2"]


def test_a_question_of_unknown_words_leaves_the_order_of_c() -> None:
    found = find_candidates(bridges("Warum?"))
    assert [score["bm25"] for score in BM25().score(found)] == [0.0, 0.0]


def test_passages_without_any_word_have_a_score_too() -> None:
    mentions = [{"entity": "gene:1", "start": 0, "end": 1}, {"entity": "gene:9", "start": 0, "end": 1}]
    passages = [Passage.model_validate({"id": str(n), "text": "!!!", "mentions": mentions}) for n in range(2)]
    symbols = Question(id="q", question="Which?", answer="?", answer_entity="gene:9", passages=passages)
    assert [score["bm25"] for score in BM25().score(find_candidates(symbols))] == [0.0, 0.0]


CHAINS = 5


def equal_chains(name: str) -> Question:
    heads = [Passage(id=str(number), text="a song of Quorvath") for number in range(CHAINS)]
    # entries about their titles: what many parts of documents share would not link
    others = [Passage(id=f"other {n}", title=f"Other{n}", text=f"Other{n} is.") for n in range(CHAINS)]
    tail = Passage(id="t", text="Quorvath, Ostrela")
    return Question(id=name, question="Who?", answer="Ostrela", passages=[*heads, tail, *others])


def pick(name: str, seed: int = 0) -> str:
    return Recoverer(Random(seed)).recover(equal_chains(name)).chains[0].passages[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_chain_is_picked_equally_often(seed: int) -> None:
    draws = 1000
    counts = Counter(pick(f"q{number}", seed) for number in range(draws))
    expected = draws / CHAINS
    chi_square = sum((counts[str(number)] - expected) ** 2 / expected for number in range(CHAINS))
    assert chi_square < 18.47  # 99.9 % of fair draws, 4 degrees of freedom


def test_a_pick_depends_on_question_id_and_seed_alone() -> None:
    names = [f"q{number}" for number in range(50)]
    picks = {name: pick(name) for name in names}
    model = Recoverer(Random())
    assert {name: model.recover(equal_chains(name)).chains[0].passages[0] for name in reversed(names)} == picks
    assert {name: pick(name, seed=1) for name in names} != picks


def test_every_chain_has_one_score() -> None:
    scores = Random().score(find_candidates(equal_chains("q")))
    assert len(scores) == CHAINS
    assert len({score["chance"] for score in scores}) == CHAINS
