"""Cheap evidence: every feature of small questions by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
import pytest
from tests.passages import named_passages

from rechain.schema import Mention, Passage, Question
from rechain.text.answers.matcher import AnswerMatcher
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.evidence.features import FEATURES, NOTHING, PAIRS, Comparison, nothing, prior, weigh, weights
from rechain.text.evidence.search import find_evidence
from rechain.text.languages import idf, phrase_idf
from rechain.text.passage_views import PassageView
from rechain.text.words import Text

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
    rarity = phrase_idf(["zorilla"]) / 10
    expected = {
        "question words": head + tail,
        "least added": tail,
        "added": head + tail,
        "answer": 1,
        "answer of tail": 1,
        "no tail": 0,
        "others hold answer": 0,
        "answering sentence": tail,
        "tail words": tail,
        "tail sentence": tail,
        "tail named": 0,
        "tail title words": 0,
        "best sentences": head,
        "named": rarity,
        "title words": rarity,
        "other sense": 0,
        "links": 1.8,
        "leads to title": 1,
        "comes from title": 0,
        "linking sentences": head + tail,
        "answer links": 0,
        "question names link": 0,
        "weakest link": 1.8,
        "apart": 0,
        "one": 0,
        "two by title": 1,
        "two apart": 0,
        "named passages": 1,
        "reached": 1,
        "unreached": 0,
        "mentions": 0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_a_chain_over_the_answer_says_so(bridge_question: Question) -> None:
    found = evidence(find_candidates(bridge_question), 2, 1)
    weight = 6 + phrase_idf(["prague"])
    assert found["links"] == pytest.approx(weight / 10)
    assert (found["comes from title"], found["leads to title"]) == (1, 0)
    assert (found["answer links"], found["others hold answer"]) == (1, 1)
    assert found["least added"] == 0  # "Prague lies on a river" has no word of the question


def test_a_word_in_both_passages_counts_once() -> None:
    asked = question(
        "Who saw a Zimbelot?", "Ostrela", [("", "Zimbelot met Quorvath"), ("", "Quorvath saw Ostrela, Zimbelot")]
    )
    found = evidence(find_candidates(asked), 0, 1)
    assert found["question words"] == pytest.approx(tenth("zimbelot", "saw"))
    assert found["tail words"] == pytest.approx(tenth("zimbelot", "saw"))
    assert (found["least added"], found["added"]) == pytest.approx((0, tenth("saw")))


def test_titles_count_by_the_share_that_the_question_holds() -> None:
    passages = [("Brimlad Zimbelot", "by Quorvath"), ("Quorvath", "of Ostrela")]
    found = evidence(find_candidates(question("Who made the Zimbelot?", "Ostrela", passages)), 0, 1)
    share = idf("zimbelot") / (idf("zimbelot") + idf("brimlad"))
    assert found["title words"] == pytest.approx(share * phrase_idf(["brimlad", "zimbelot"]) / 10)
    assert (found["named"], found["tail named"], found["tail title words"]) == (0, 0, 0)


def test_a_tail_that_the_question_names() -> None:
    passages = [("Zimbelot", "by Quorvath"), ("Quorvath", "of Ostrela")]
    found = evidence(find_candidates(question("What did Quorvath make?", "Ostrela", passages)), 0, 1)
    rarity = phrase_idf(["quorvath"]) / 10
    assert (found["tail named"], found["tail title words"]) == pytest.approx((rarity, rarity))
    assert found["question names link"] == pytest.approx(tenth("quorvath"))
    assert (found["named"], found["title words"]) == (0, 0)


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
    found = evidence(find_evidence(question("Who knew Zimbelot?", "Ostrela", passages, hops=3)), 0, 1, 2)
    first, second = idf("quorvath"), 6 + idf("brimlad")
    assert found["links"] == pytest.approx((first + second) / 10)
    assert found["weakest link"] == pytest.approx(first / 10)
    assert (found["leads to title"], found["comes from title"]) == (1, 0)
    assert [found[name] for name in ("one", "three", "four")] == [0, 1, 0]


def given_question() -> Question:
    """Three passages of the data's entities: a pair in one sentence, twice; never; and once."""
    texts = ["DRUG and GENE. GENE with DRUG.", "GENE alone. A DRAG too.", "DRAG and GUNE."]
    named = {"DRUG": "drug:1", "GENE": "gene:1", "DRAG": "drug:2", "GUNE": "gene:9"}
    passages = named_passages(texts, named)
    ends = {"question_entities": ["drug:1"], "answer_entity": "gene:9"}
    return Question(id="q", question="What?", answer="GUNE", passages=passages, hops=3, **ends)


def test_where_the_data_names_entities_pairs_in_one_sentence_count() -> None:
    found = evidence(find_candidates(given_question()), 0, 1, 2)
    twice, never, once = log(2.1), log(0.1), log(1.1)
    assert found["pairs together"] == pytest.approx(2 * (twice + never + once))
    assert found["weakest pair"] == pytest.approx(2 * never)
    assert found["mentions"] == pytest.approx(2 * log(2 * 2))
    assert all(found[name] == 0 for name in FEATURES if name not in PAIRS)


def test_the_prior_is_the_table_in_the_order_of_the_features(bridge_question: Question) -> None:
    assert set(weights()) == {*FEATURES, NOTHING}
    assert prior().tolist() == [weights()[name] for name in FEATURES]
    candidates = find_candidates(bridge_question)
    assert candidates.chains[int(np.argmax(weigh(candidates) @ prior()))].passages == (0, 1)


def test_that_nothing_is_right_has_a_weight_or_is_as_likely_as_pairs_that_never_meet(bridge_question: Question) -> None:
    assert nothing(find_candidates(bridge_question)) == weights()[NOTHING]
    assert nothing(find_candidates(given_question())) == pytest.approx(2 * 3 * log(0.1) * weights()["pairs together"])


def test_the_evidence_of_a_chain_does_not_depend_on_the_others(bridge_question: Question) -> None:
    candidates = find_evidence(bridge_question.model_copy(update={"hops": None}))
    turned = replace(candidates, chains=candidates.chains[::-1])
    assert len(candidates.chains) > 3
    np.testing.assert_array_equal(weigh(turned)[::-1], weigh(candidates))


def test_a_single_passage_is_its_own_tail_and_has_no_links() -> None:
    passages = [("Zimbelot", "It was seen in Ostrela."), ("", "by Quorvath")]
    found = evidence(find_evidence(question("Where was the Zimbelot?", "Ostrela", passages, hops=1)), 0)
    rarity, words = phrase_idf(["zimbelot"]) / 10, tenth("was", "zimbelot")
    expected = {
        "question words": words,
        "names": tenth("zimbelot"),
        "added": words,
        "tail named": rarity,
        "named": 0,
        "tail words": words,
        "answering sentence": tenth("was"),
        "links": 0,
        "weakest link": 0,
        "apart": 0,
        "one": 1,
        "unreached": 0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


COMPARED = [("Zimbelot", "Old."), ("Quorvath", "New.")]


def test_passages_side_by_side_have_no_links_and_say_what_the_question_asks() -> None:
    found = evidence(find_evidence(question("Zimbelot or Quorvath?", "Quorvath", COMPARED)), 0, 1)
    rarity = phrase_idf(["zimbelot"]) / 10
    expected = {
        "question words": tenth("zimbelot", "quorvath"),
        "tail named": rarity,
        "named": rarity,
        "links": 0,
        "weakest link": 0,
        "apart": 1,
        "two apart": 1,
        "two apart: judgement": 0,
        "two apart: chooses": 1,
        "two apart: answer in question": 1,
        "two named": 1,
        "two named: compared": 1,
        "two lines": 0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        ("Which is older, Zimbelot or Quorvath?", "Quorvath", (0, 1, 1, 1)),
        ("Is Zimbelot older than Quorvath?", "no", (1, 1, 0, 0)),
        ("佐里拉还是卡门更早?", "卡门", (0, 1, 1, 1)),
        ("佐里拉或卡门?", "卡门", (0, 0, 1, 1)),
        ("Where was Zimbelot seen?", "Ostrela", (0, 0, 0, 0)),
    ],
)
def test_what_tells_that_a_question_compares(asked: str, answer: str, expected: tuple[int, ...]) -> None:
    asked_of = question(asked, answer, [*COMPARED, ("", "Zimbelot was seen in Ostrela. 卡门")])
    holdings = AnswerMatcher(asked_of).hold([PassageView(passage) for passage in asked_of.passages])
    assert Comparison.of(Text(asked), answer, holdings) == expected


def test_two_lines_of_evidence_are_one_step_apart() -> None:
    passages = [("Zimbelot", "by Vexlor"), ("Vexlor", "Old."), ("Quorvath", "by Brimlad"), ("Brimlad", "New.")]
    asked = question("Is the maker of Zimbelot or of Quorvath older?", "Zimbelot", passages, hops=4)
    (found,) = weigh(find_evidence(asked))
    of = dict(zip(FEATURES, found.tolist(), strict=True))
    expected = {"four": 1, "apart": 1, "two lines": 1, "two lines: chooses": 1, "two lines: judgement": 0}
    expected |= {"named passages": 2, "reached": 2, "unreached": 0, "two lines reached: compared": 1, "two apart": 0}
    assert {name: of[name] for name in expected} == expected


def test_a_passage_is_worth_what_the_others_do_not_say() -> None:
    texts = [("", "A Zimbelot form goes to Vexlor."), ("", "Ask Vexlor. That is Ostrela."), ("", "Lunch is at noon.")]
    asked = question("Who signs a Zimbelot form?", "Ostrela", texts)
    # "zimbelot", "form" and "ostrela" are in one of three passages each and count as much; "signs" is in none
    found = evidence(find_evidence(asked), 0, 1)
    expected = {
        "said": 1,
        "least said alone": 1 / 3,
        "said by the best alone": 2 / 3,
        "said in sentences": 1,
        "least said by a sentence": 1 / 3,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_words_that_several_passages_say_tell_less() -> None:
    texts = [("", "A Zimbelot for Vexlor."), ("", "Zimbelot: Vexlor is Ostrela."), ("", "Lunch is at noon.")]
    found = evidence(find_evidence(question("Who signs a Zimbelot form?", "Ostrela", texts)), 0, 1)
    zimbelot, ostrela = log(4 / 2), log(4 / 1)
    assert found["said by the best alone"] == pytest.approx(1)
    assert found["least said by a sentence"] == pytest.approx(0)
    alone = evidence(find_evidence(question("Who signs a Zimbelot form?", "Ostrela", texts, hops=1)), 0)
    assert alone["said"] == pytest.approx(zimbelot / (zimbelot + ostrela))


def test_the_claims_of_an_answer_may_be_in_several_passages() -> None:
    texts = [("", "It is red."), ("", "A Zimbelot and Vexlor."), ("", "Rain.")]
    found = find_evidence(question("What is there?", "- red\n- Zimbelot", texts))
    assert evidence(found, 0, 1)["answer"] == pytest.approx(1)
    alone = find_evidence(question("What is there?", "- red\n- Zimbelot", texts, hops=1))
    assert [evidence(alone, number)["answer"] for number in range(3)] == pytest.approx([0.5, 0.5, 0])
    assert [evidence(alone, number)["no tail"] for number in range(3)] == [0, 0, 1]


def test_where_no_title_is_named_some_numbers_weigh_by_themselves() -> None:
    texts = [("Leave", "A Zimbelot form goes to Vexlor."), ("Rules", "Vexlor is in Ostrela.")]
    parts = [name.removeprefix("no title named: ") for name in FEATURES if name.startswith("no title named: ")]
    for asked, is_named in (("Who signs a Zimbelot form?", False), ("Who signs a Zimbelot form, by the rules?", True)):
        found = evidence(find_evidence(question(asked, "Ostrela", texts)), 0, 1)
        own = [found[f"no title named: {name}"] for name in parts]
        assert own == ([0.0] * len(parts) if is_named else [found[name] for name in parts])
        assert found["links"] > 0


def test_a_question_without_a_word_of_the_passages_has_numbers_too() -> None:
    texts = [("", "Vexlor of Ostrela"), ("", "Vexlor")]
    assert np.isfinite(weigh(find_evidence(question("🎼❓", "Ostrela", texts, hops=1)))).all()


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
