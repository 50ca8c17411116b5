"""Cheap evidence: every feature of small questions by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
import pytest

from rechain.schema import Mention, Passage, Question
from rechain.text.evidence.features import FEATURES, PRIOR, nothing, weigh
from rechain.text.candidates import Candidates, find_candidates, find_of_any_shape
from rechain.text.languages import idf, phrase_idf

Evidence = dict[str, float]


def question(asked: str, answer: str, passages: Sequence[tuple[str, str]], hops: int = 2) -> Question:
    rows = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(passages)]
    return Question(id="q", question=asked, answer=answer, passages=rows, hops=hops)


def evidence(candidates: Candidates, *passages: int) -> Evidence:
    """Return the evidence for the first chain of some passages."""
    number = [chain.passages for chain in candidates.chains].index(passages)
    return dict(zip(FEATURES, weigh(candidates)[number].tolist(), strict=True))


def tenth(*words: str) -> float:
    return sum(map(idf, words)) / 10


def test_the_chain_that_the_question_means(bridge_question: Question) -> None:
    found = evidence(find_candidates(bridge_question), 0, 1)
    head, tail = tenth("zorilla", "opera"), tenth("was", "born")
    assert found == pytest.approx(
        {
            "question words": head + tail,
            "links": 1.8,
            "weakest link": 1.8,
            "leads to title": 1,
            "comes from title": 0,
            "names passage": phrase_idf(["zorilla"]) / 10,
            "names tail": 0,
            "title words": phrase_idf(["zorilla"]) / 10,
            "tail title words": 0,
            "other sense": 0,
            "head words": head,
            "tail words": tail,
            "linking sentences": head + tail,
            "answering sentence": tail,
            "answer links": 0,
            "answer before tail": 0,
            "question names link": 0,
            "pairs together": 0,
            "weakest pair": 0,
            "mentions": 0,
            "passages": 0,
        }
    )


def test_a_chain_over_the_answer_says_so(bridge_question: Question) -> None:
    found = evidence(find_candidates(bridge_question), 2, 1)
    weight = 6 + phrase_idf(["prague"])
    assert found["links"] == pytest.approx(weight / 10)
    assert (found["comes from title"], found["leads to title"]) == (1, 0)
    assert (found["answer links"], found["answer before tail"]) == (1, 1)
    assert found["head words"] == 0  # "Prague lies on a river" has no word of the question


def test_a_word_in_both_passages_counts_once() -> None:
    asked = question(
        "Who saw a Zimbelot?", "Ostrela", [("", "Zimbelot met Quorvath"), ("", "Quorvath saw Ostrela, Zimbelot")]
    )
    found = evidence(find_candidates(asked), 0, 1)
    assert found["question words"] == pytest.approx(tenth("zimbelot", "saw"))
    assert found["head words"] == pytest.approx(tenth("zimbelot"))
    assert found["tail words"] == pytest.approx(tenth("zimbelot", "saw"))


def test_titles_count_by_the_share_that_the_question_holds() -> None:
    passages = [("Brimlad Zimbelot", "by Quorvath"), ("Quorvath", "of Ostrela")]
    found = evidence(find_candidates(question("Who made the Zimbelot?", "Ostrela", passages)), 0, 1)
    share = idf("zimbelot") / (idf("zimbelot") + idf("brimlad"))
    assert found["title words"] == pytest.approx(share * phrase_idf(["brimlad", "zimbelot"]) / 10)
    assert (found["names passage"], found["names tail"], found["tail title words"]) == (0, 0, 0)


def test_a_tail_that_the_question_names() -> None:
    passages = [("Zimbelot", "by Quorvath"), ("Quorvath", "of Ostrela")]
    found = evidence(find_candidates(question("What did Quorvath make?", "Ostrela", passages)), 0, 1)
    rarity = phrase_idf(["quorvath"]) / 10
    assert (found["names tail"], found["tail title words"]) == pytest.approx((rarity, rarity))
    assert found["question names link"] == pytest.approx(tenth("quorvath"))
    assert (found["names passage"], found["title words"]) == (0, 0)


@pytest.mark.parametrize(
    ("asked", "senses"),
    [("Who made the Zimbelot?", 1), ("Who made the Zimbelot pinball?", 0), ("Who made the game?", 1)],
)
def test_a_title_in_brackets_that_the_question_does_not_ask_for(asked: str, senses: int) -> None:
    passages = [("Zimbelot (pinball)", "by Quorvath"), ("Quorvath", "of Ostrela")]
    assert evidence(find_candidates(question(asked, "Ostrela", passages)), 0, 1)["other sense"] == senses


def test_the_best_sentence_counts() -> None:
    head = "It was seen. Quorvath built it. Quorvath sang of a Zimbelot. The zimbelot was seen and built."
    tail = "Ostrela slept. Ostrela was seen. Quorvath ate a Zimbelot."
    asked = "Who was seen to have built a Zimbelot?"
    found = evidence(find_candidates(question(asked, "Ostrela", [("", head), ("", tail)])), 0, 1)
    assert found["answering sentence"] == pytest.approx(tenth("was", "seen"))
    best = max(tenth("a", "zimbelot"), tenth("built")) + tenth("a", "zimbelot")
    assert found["linking sentences"] == pytest.approx(best)


def test_longer_chains_have_a_weakest_link_and_more_passages() -> None:
    passages = [("", "Zimbelot met Quorvath"), ("", "Quorvath met Brimlad"), ("Brimlad", "of Ostrela")]
    found = evidence(find_of_any_shape(question("Who knew Zimbelot?", "Ostrela", passages, hops=3)), 0, 1, 2)
    first, second = idf("quorvath"), 6 + idf("brimlad")
    assert found["links"] == pytest.approx((first + second) / 10)
    assert found["weakest link"] == pytest.approx(first / 10)
    assert (found["leads to title"], found["comes from title"], found["passages"]) == (1, 0, 1)


def given_question() -> Question:
    """Three passages of the data's entities: a pair in one sentence, twice; never; and once."""
    texts = ["DRUG and GENE. GENE with DRUG.", "GENE alone. A DRAG too.", "DRAG and GUNE."]
    named = {"DRUG": "drug:1", "GENE": "gene:1", "DRAG": "drug:2", "GUNE": "gene:9"}
    passages = [
        Passage(
            id=str(n),
            text=text,
            mentions=[
                Mention(entity=entity, start=at, end=at + 4)
                for name, entity in named.items()
                for at in range(len(text))
                if text.startswith(name, at)
            ],
        )
        for n, text in enumerate(texts)
    ]
    ends = {"question_entities": ["drug:1"], "answer_entity": "gene:9"}
    return Question(id="q", question="What?", answer="GUNE", passages=passages, hops=3, **ends)


def test_where_the_data_names_entities_pairs_in_one_sentence_count() -> None:
    found = evidence(find_candidates(given_question()), 0, 1, 2)
    twice, never, once = log(2.1), log(0.1), log(1.1)
    assert found["pairs together"] == pytest.approx(twice + never + once)
    assert found["weakest pair"] == pytest.approx(never)
    assert found["mentions"] == pytest.approx(log(2 * 2))
    assert found["passages"] == 1
    assert (found["links"], found["weakest link"], found["answer links"], found["question names link"]) == (0, 0, 0, 0)


def test_the_prior_has_a_weight_for_every_feature_in_their_order(bridge_question: Question) -> None:
    weights = dict(zip(FEATURES, PRIOR.tolist(), strict=True))
    assert (weights["links"], weights["passages"], weights["names tail"]) == (5.25, -10.5, 0)
    candidates = find_candidates(bridge_question)
    assert candidates.chains[int(np.argmax(weigh(candidates) @ PRIOR))].passages == (0, 1)


def test_nothing_is_a_weak_link_and_few_words_or_pairs_that_never_meet(bridge_question: Question) -> None:
    words = nothing(weigh(find_candidates(bridge_question)))
    assert {name: value for name, value in zip(FEATURES, words.tolist(), strict=True) if value} == pytest.approx(
        {"question words": 1.5, "links": 0.7}
    )
    pairs = nothing(weigh(find_candidates(given_question())))
    assert {name: value for name, value in zip(FEATURES, pairs.tolist(), strict=True) if value} == pytest.approx(
        {"pairs together": 3 * log(0.1)}
    )


def test_the_evidence_of_a_chain_does_not_depend_on_the_others(bridge_question: Question) -> None:
    candidates = find_of_any_shape(bridge_question.model_copy(update={"hops": None}))
    turned = replace(candidates, chains=candidates.chains[::-1])
    assert len(candidates.chains) > 3
    np.testing.assert_array_equal(weigh(turned)[::-1], weigh(candidates))


def test_a_single_passage_has_no_links_and_is_its_own_head() -> None:
    passages = [("Zimbelot", "It was seen in Ostrela."), ("", "by Quorvath")]
    found = evidence(find_of_any_shape(question("Where was the Zimbelot?", "Ostrela", passages, hops=1)), 0)
    rarity, words = phrase_idf(["zimbelot"]) / 10, tenth("was", "zimbelot")
    assert {name: value for name, value in found.items() if value} == pytest.approx(
        {
            "question words": words,
            "names tail": rarity,
            "tail title words": rarity,
            "head words": words,
            "tail words": words,
            "answering sentence": tenth("was"),
            "passages": -1,
        }
    )


def test_passages_side_by_side_have_no_links() -> None:
    passages = [("Zimbelot", "Old."), ("Quorvath", "New.")]
    candidates = find_of_any_shape(question("Zimbelot or Quorvath?", "Quorvath", passages))
    found = evidence(candidates, 0, 1)
    rarity = phrase_idf(["zimbelot"]) / 10
    assert {name: value for name, value in found.items() if value} == pytest.approx(
        {
            "question words": tenth("zimbelot", "quorvath"),
            "names passage": rarity,
            "names tail": rarity,
            "title words": rarity,
            "tail title words": rarity,
            "head words": rarity,
            "tail words": rarity,
        }
    )


def test_the_sentence_that_holds_a_longer_answer_in_its_words_answers() -> None:
    passages = [("", "by Quorvath"), ("", "Quorvath sleeps. It was seen for twenty-seven days in the Zimbelot.")]
    candidates = find_candidates(question("When was the Zimbelot?", "27 days.", passages))
    assert evidence(candidates, 0, 1)["answering sentence"] == pytest.approx(tenth("was", "the", "zimbelot"))


def test_links_given_with_the_data_weigh_unless_pairs_tell_them_apart() -> None:
    texts = ["Polonium was found by Curie.", "Curie was born in Warsaw."]
    mentions = [Mention(entity="MC", start=texts[0].index("Curie"), end=27), Mention(entity="MC", start=0, end=5)]
    passages = [
        Passage(id=str(n), title=f"T{n}", text=text, mentions=[mention])
        for n, (text, mention) in enumerate(zip(texts, mentions, strict=True))
    ]
    asked = Question(id="q", question="Where was the finder born?", answer="Warsaw", passages=passages, hops=2)
    found = evidence(find_candidates(asked), 0, 1)
    assert found["links"] == pytest.approx((10 + phrase_idf(["curie"])) / 10)
    named = asked.model_copy(update={"question_entities": ["MC"]})
    assert evidence(find_candidates(named), 0, 1)["links"] == 0
