"""The two entities of a step: how closely they stand together, and how rare they are, worked by hand."""

from collections.abc import Sequence
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.recoverer import Recoverer
from rechain.schema import Mention, Passage, Question
from rechain.scoring.interface import Lexical
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.collection import PassageCollection
from rechain.text.evidence.pairs import NEARNESS_FACTOR, RARITY_FACTOR, Closeness, EntityPairs, closeness
from rechain.text.passage_views import PassageView
from rechain.text.words import Span

DRUG, GENE = "drug:A", "gene:X"


def passage(name: str, text: str, *mentions: tuple[str, str, int]) -> Passage:
    """A passage with mentions: the entity, its words, and which of their occurrences."""
    return Passage(id=name, text=text, mentions=[_mention(text, *mention) for mention in mentions])


def _mention(text: str, entity: str, words: str, occurrence: int) -> Mention:
    start = -1
    for _ in range(occurrence + 1):
        start = text.index(words, start + 1)
    return Mention(entity=entity, start=start, end=start + len(words))


def of_pair(text: str, *mentions: tuple[str, str, int]) -> Closeness:
    return closeness(PassageView(passage("p", text, *mentions)), DRUG, GENE)


def test_entities_count_by_sentences_mentions_and_the_words_between() -> None:
    text = "Aspirin binds the old COX. Aspirin again. COX, then."
    mentions = [(DRUG, "Aspirin", 0), (GENE, "COX", 0), (DRUG, "Aspirin", 1), (GENE, "COX", 1)]
    together, times, distance = of_pair(text, *mentions)
    assert together == pytest.approx(log(1 + 0.1))  # the first sentence alone
    assert times == pytest.approx(log(2 * 2))
    assert distance == pytest.approx(log(1 + 0))  # "COX. Aspirin": no word between


def test_a_mention_within_a_name_of_the_other_entity_does_not_stand_together_with_it() -> None:
    within = (DRUG, "insulin", 0), (GENE, "insulin receptor", 0)
    together, times, distance = of_pair("The insulin receptor is old.", *within)
    assert (together, times) == (pytest.approx(log(0.1)), 0.0)
    assert distance == pytest.approx(log(1 + 5))  # nowhere apart: as far as the text is long
    apart = of_pair("The insulin receptor binds insulin.", *within, (DRUG, "insulin", 1))
    assert apart == pytest.approx((log(0.1), log(2), log(1 + 1)))  # all of the gene's mentions overlap
    again = of_pair("The insulin receptor binds it. Insulin, insulin receptor.", *within, (DRUG, "Insulin", 0))
    assert again.together == pytest.approx(log(0.1))


def test_a_mention_of_the_name_that_overlaps_nothing_counts() -> None:
    text = "The insulin receptor is old. IR binds insulin."
    mentions = (DRUG, "insulin", 0), (GENE, "insulin receptor", 0), (GENE, "IR", 0), (DRUG, "insulin", 1)
    assert of_pair(text, *mentions)[0] == pytest.approx(log(1.1))


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=5)


@given(SPANS, SPANS)
def test_sorted_mentions_tell_what_comparing_each_with_each_does(ones: list[Span], twos: list[Span]) -> None:
    text = " ".join("ab" for _ in range(20)).ljust(60, ".")
    mentions = [
        Mention(entity=entity, start=start, end=end)
        for entity, spans in ((DRUG, ones), (GENE, twos))
        for start, end in spans
    ]
    view = PassageView(Passage(id="p", text=text, mentions=mentions))
    found = closeness(view, DRUG, GENE)
    assert found.distance == pytest.approx(log(1 + _nearest(view, ones, twos)))
    is_apart = [_apart(spans, others) for spans, others in ((ones, twos), (twos, ones))]
    shared = {view.sentence_number(s) for s, _ in is_apart[0]} & {view.sentence_number(s) for s, _ in is_apart[1]}
    assert found.together == pytest.approx(log(len(shared) + 0.1))


def _overlap(one: Span, two: Span) -> bool:
    return one[0] < two[1] and two[0] < one[1]


def _apart(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    return [span for span in spans if not any(_overlap(span, other) for other in others)]


def _nearest(view: PassageView, ones: Sequence[Span], twos: Sequence[Span]) -> int:
    gaps = [
        sum(min(one[1], two[1]) <= start < max(one[0], two[0]) for start, _ in view.text.places)
        for one in ones
        for two in twos
        if not _overlap(one, two)
    ]
    return min(gaps, default=len(view.text.places))


def step(name: str, one: str, two: str) -> Passage:
    """A passage whose one sentence holds two entities side by side."""
    kinds = {"A": "drug", "X": "gene", "Z": "gene", "Y": "gene"}
    text = f"{one} {two}."
    return passage(name, text, (f"{kinds[one]}:{one}", one, 0), (f"{kinds[two]}:{two}", two, 0))


PASSAGES = [step("h1", "A", "X"), step("h2", "A", "Z"), step("t1", "X", "Y"), step("t2", "Z", "Y")]
QUESTION = Question(
    id="q",
    question="A?",
    answer="Y",
    answer_entity="gene:Y",
    question_entities=["drug:A"],
    link_types=["gene"],
    hops=2,
    passages=PASSAGES,
)
OTHERS = [step(f"x{number}", "X", "Y") for number in range(6)]


def collection(*passages: Passage) -> PassageCollection:
    return PassageCollection({one.id: one for one in passages})


def of_links(found: Candidates, values: Sequence[float]) -> dict[str, float]:
    return {chain.edges[0].key: value for chain, value in zip(found.chains, values, strict=True)}


def test_an_entity_that_many_passages_of_the_collection_mention_tells_less() -> None:
    found = find_candidates(QUESTION, collection=collection(*PASSAGES, *OTHERS))
    rarity = of_links(found, EntityPairs(found).rarity().tolist())
    # X is in 8 passages and Z in 2; each is in both steps of its chain, and all else is the same in both chains
    assert rarity == {"gene:Z": 0.0, "gene:X": pytest.approx(-RARITY_FACTOR * 2 * log(8 / 2))}


def test_an_entity_that_the_collection_does_not_know_counts_as_in_one_passage() -> None:
    found = find_candidates(QUESTION, collection=collection(*OTHERS))
    rarity = of_links(found, EntityPairs(found).rarity().tolist())
    assert rarity == {"gene:Z": 0.0, "gene:X": pytest.approx(-RARITY_FACTOR * 2 * log(6))}


def test_entities_far_apart_tell_less_with_and_without_a_collection() -> None:
    far = passage("h1", "A is quite far from X.", (DRUG, "A", 0), (GENE, "X", 0))
    found = find_candidates(QUESTION.model_copy(update={"passages": [far, *PASSAGES[1:]]}))
    pairs = EntityPairs(found)
    assert pairs.rarity().tolist() == [0.0, 0.0]
    assert of_links(found, pairs.nearness().tolist()) == {
        "gene:Z": 0.0,
        "gene:X": pytest.approx(-NEARNESS_FACTOR * log(1 + 4)),
    }


def test_only_with_a_collection_is_there_a_part_of_that_name() -> None:
    for of_passages in (None, collection(*PASSAGES)):
        for parts in Lexical().score(find_candidates(QUESTION, collection=of_passages)):
            assert ("collection" in parts) == (of_passages is not None)


@pytest.mark.parametrize("model", ["lexical", "default"])
def test_models_prefer_the_chain_of_the_rarer_entity(model: str) -> None:
    for common in ("X", "Z"):
        others = [step(f"x{number}", common, "Y") for number in range(50)]
        corpus = collection(*PASSAGES, *others)
        recovered = Recoverer(model, corpus=corpus, explain=True).recover(QUESTION)
        assert recovered.chains[0].links[0].entity != f"gene:{common}"
        assert recovered.chains[0].why is not None
        assert model == "default" or recovered.chains[0].why["collection"] == 0.0


def test_a_chain_that_lacks_a_pair_is_not_nearer_for_it() -> None:
    passages = [
        passage("head", "Aa, some words away, binds Xx.", ("a", "Aa", 0), ("x", "Xx", 0)),
        passage("other", "Xx meets Yy.", ("x", "Xx", 0), ("y", "Yy", 0)),
        passage("tail", "Xx meets Yy.", ("x", "Xx", 0), ("y", "Yy", 0)),
    ]
    ends = {"question_entities": ["a"], "answer_entity": "y", "hops": 2}
    found = find_candidates(Question(id="q", question="?", answer="Yy", passages=passages, **ends))
    nearness = dict(zip((chain.passages for chain in found.chains), EntityPairs(found).nearness(), strict=True))
    # The head has four words between; "other" names no entity of the question, which costs as much as the dearest step.
    assert nearness[0, 2] == nearness[1, 2] == 0.0
