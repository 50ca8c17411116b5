"""From candidates to the arrays that the chain reader learns from."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from tokenizers import Tokenizer

from rechain.reader.prepare import (
    JudgePreparation,
    Kind,
    ReaderPreparation,
    WrongAnswers,
    answer_spans,
    kind_of,
    write_sentence,
)
from rechain.reader.settings import ReaderSettings
from rechain.reader.texts import ChainTexts
from rechain.schema import Mention, Passage, Question
from rechain.text.candidates import Candidates, find_candidates
from rechain.text.evidence.features import prior, weigh
from rechain.text.passage_views import PassageView


def prepared(tokenizer: Tokenizer, *questions: Candidates, most: int = 6) -> ReaderPreparation:
    settings = ReaderSettings(max_tokens=100, passage_tokens=60, most_chains=most)
    preparation = ReaderPreparation(tokenizer, settings)
    for candidates in questions:
        preparation.add(candidates)
    return preparation


def test_the_best_chains_by_the_prior_are_kept_with_their_evidence(tokenizer: Tokenizer, web: Candidates) -> None:
    candidates = web
    preparation = prepared(tokenizer, candidates, most=2)
    totals = weigh(candidates) @ prior()
    (kept,) = preparation.kept
    assert (preparation.ids, len(kept)) == (["web"], 2)
    assert min(totals[kept]) >= max(np.delete(totals, kept))
    np.testing.assert_array_equal(preparation.arrays()["features"], weigh(candidates)[kept].astype(np.float32))


def test_every_chain_knows_its_texts(tokenizer: Tokenizer, bridge_question: Question, web: Candidates) -> None:
    asked = [web, find_candidates(bridge_question)]
    preparation = prepared(tokenizer, *asked)
    arrays = preparation.arrays()
    assert arrays["chain_start"].tolist() == np.cumsum([0, *map(len, preparation.kept)]).tolist()

    def text(number: int) -> tuple[list[int], list[int], list[int]]:
        start, end = arrays["text_start"][number : number + 2]
        return tuple(arrays[name][start:end].tolist() for name in ("ids", "marks", "slots"))  # type: ignore[return-value]

    chains = [(of, of.chains[n]) for of, kept in zip(asked, preparation.kept, strict=True) for n in kept]
    assert len(chains) == len(arrays["chain_text"])
    for number, (of, chain) in enumerate(chains):
        written = ChainTexts(of, tokenizer).chain(chain, 100)
        assert text(arrays["chain_text"][number]) == tuple(column.tolist() for column in written)
        assert len(arrays["link_text"][number]) == len(chain.edges)
        for edge, alone, slot in zip(
            chain.edges, arrays["link_text"][number], arrays["link_slot"][number], strict=True
        ):
            ids, _, slots = text(alone)
            linking = [token for token, own in zip(ids, slots, strict=True) if own == slot]
            assert tokenizer.decode(linking) == edge.link.entity.lower()


def test_questions_whose_entities_nobody_names_tell_each_other_nothing(tokenizer: Tokenizer, web: Candidates) -> None:
    preparation = prepared(tokenizer, web, web)
    shared = preparation.shared([0, 1])
    assert shared.shape == preparation.arrays()["chain_text"].shape
    assert not shared.any()


def test_what_others_tell_is_that_of_the_kept_chains(tokenizer: Tokenizer) -> None:
    def named(text: str, *entities: str) -> Passage:
        places = [(entity, text.index(entity)) for entity in entities]
        mentions = [Mention(entity=entity, start=start, end=start + len(entity)) for entity, start in places]
        return Passage(id=text, text=text, mentions=mentions)

    def asked(start: str) -> Candidates:
        passages = [
            named(f"{start} binds genex here.", start, "genex"),
            named("genex moves geney well.", "genex", "geney"),
            named(f"{start} and genez.", start, "genez"),
            named("genez is one. Another is geney.", "genez", "geney"),
        ]
        return find_candidates(
            Question(
                id=start, question=f"{start}?", answer="geney", question_entities=[start], answer_entity="geney",
                passages=passages,
            )
        )  # fmt: skip

    preparation = prepared(tokenizer, asked("druga"), asked("drugb"), most=1)
    together, alone = preparation.shared([0, 1]), preparation.shared([0])
    assert len(together) == 2
    assert together.any()  # the second passage's step is offered by both
    assert alone[0] == 0  # nobody else tells it anything


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_chains_are_kept_than_asked_for(tokenizer: Tokenizer, most: int, web: Candidates) -> None:
    assert len(prepared(tokenizer, web, most=most).arrays()["chain_text"]) == most


# ---- answers to be judged


def ask(answer: str = "Ostrela", asked: str = "Who was Quorvath?", **fields: object) -> Question:
    texts = [
        "about Quorvath",
        "Quorvath and Brimlad in Ostrela",
        "by Brimlad",
        "Vexlor, Munch and Quorvath",
        "a Zimbelot",
    ]
    passages = [Passage(id=str(n), title=f"P{n}", text=text) for n, text in enumerate(texts)]
    return Question.model_validate({"id": "q", "question": asked, "answer": answer, "passages": passages, **fields})


def judged(tokenizer: Tokenizer, question: Question, *wrong: str, varied: bool = False) -> list[str]:
    """Return the texts of a question's answers."""
    preparation = JudgePreparation(tokenizer, 100, varied)
    if not preparation.add(question, wrong):
        assert preparation.ids == []
        return []
    arrays = preparation.arrays()
    starts = arrays["text_start"]
    assert arrays["case_start"].tolist() == [0, len(starts) - 1]
    return [tokenizer.decode(arrays["ids"][start:end].tolist()) for start, end in pairwise(starts)]


def test_each_answer_is_judged_with_its_own_best_evidence(tokenizer: Tokenizer) -> None:
    right, wrong, alone = judged(tokenizer, ask(), "Vexlor", "P4")
    assert right.startswith("who was quorvath? ostrela p") and right.endswith("quorvath and brimlad in ostrela")
    assert wrong.startswith("who was quorvath? vexlor p") and wrong.endswith("vexlor, munch and quorvath")
    assert alone == "who was quorvath? p4 p4 : a zimbelot"


def test_passages_that_the_question_names_stand_side_by_side(tokenizer: Tokenizer) -> None:
    right, wrong = judged(tokenizer, ask("P1", "Which is older, P3 or P1?"), "P3")
    assert right.removeprefix("which is older, p3 or p1? p1 ") == wrong.removeprefix("which is older, p3 or p1? p3 ")
    assert right.index("vexlor") < right.index("brimlad")
    assert len(judged(tokenizer, ask("yes", "Are P3 and P1 old?"), "no")) == 2


def test_a_question_without_wrong_answers_or_without_evidence_is_left_out(tokenizer: Tokenizer) -> None:
    assert judged(tokenizer, ask()) == judged(tokenizer, ask(), "Nowhere") == []
    assert judged(tokenizer, ask("Nowhere"), "Munch") == []


def test_wording_and_evidence_vary_but_alike_for_right_and_wrong(tokenizer: Tokenizer) -> None:
    seen = set()
    for number in range(40):
        right, wrong = judged(tokenizer, ask(id=str(number)), "Vexlor", varied=True)
        is_sentence = not right.partition("? ")[2].startswith("ostrela p")
        assert is_sentence is not wrong.partition("? ")[2].startswith("vexlor p")
        seen.add((is_sentence, right.count(" : ")))
    assert {count for _, count in seen} >= {1, 2}
    assert {is_sentence for is_sentence, _ in seen} == {True, False}


def test_an_answer_is_found_in_text_and_title() -> None:
    view = PassageView(Passage(id="0", title="Ostrela", text="Ostrela is old. So OSTRELA was."))
    assert answer_spans(ask(), view) == [None, (0, 7), (19, 26)]
    assert answer_spans(ask("old"), view) == [(11, 14)]


# ---- answers as sentences


@pytest.mark.parametrize("asked", ["In which city was Ostrela's mayor born?", "Was it old?", "Name the town."])
def test_every_sentence_holds_the_answer_and_begins_with_a_capital(asked: str) -> None:
    written = {write_sentence(asked, "brown bread", Random(seed)) for seed in range(200)}
    assert len(written) >= 9
    assert all("brown bread" in text.lower() and text[0].isupper() for text in written)


def test_some_have_what_is_asked_for_where_the_question_begins_with_it() -> None:
    written = {write_sentence("Who is the mayor of Ostrela?", "Vexlor", Random(seed)) for seed in range(200)}
    assert "The mayor of Ostrela is Vexlor." in written
    assert not any("{" in text or "?" in text for text in written)
    written = {write_sentence("Is Vexlor the mayor?", "yes", Random(seed)) for seed in range(200)}
    assert not any("mayor" in text for text in written)


# ---- wrong answers: of the right kind, in the passages, and never the right answer in other words

BRIDGE = (
    "Ostrela is a town. Brimlad Vexlor built its bridge in 1871 for Quorvath Zimbelot.",
    "The bridge of Ostrela was widened in 1902 by Karel Munch.",
    "Marbeth Loon was a singer. She died in 1955.",
)


def bridge(answer: str, asked: str = "Who built the bridge of Ostrela?", **fields: object) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(BRIDGE)]
    record = {"id": "q", "question": asked, "answer": answer, "passages": passages, **fields}
    return Question.model_validate(record)


def chosen(asked: Question, others: Sequence[str] = (), most: int = 6) -> list[str]:
    pool = [asked, *(asked.model_copy(update={"answer": answer}) for answer in others)]
    return WrongAnswers(pool).choose(asked, most)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("yes", "judgement"),
        ("No.", "judgement"),
        ("1871", "year"),
        ("14 May 2023", "date"),
        ("3,677 seated", "number"),
        ("Brimlad Vexlor", "name"),
        ("a stone bridge", "phrase"),
        ("!!!", "phrase"),
    ],
)
def test_answers_are_told_apart_by_their_form(answer: str, kind: Kind) -> None:
    assert kind_of(answer) == kind


def test_wrong_answers_are_other_names_or_values_of_the_passages() -> None:
    assert set(chosen(bridge("Brimlad Vexlor"))) == {"Quorvath Zimbelot", "Karel Munch", "Marbeth Loon"}
    assert set(chosen(bridge("1871"))) == {"1902", "1955"}


def test_the_answers_of_other_questions_count_if_they_stand_in_the_passages_and_are_of_its_kind() -> None:
    asked = bridge("Brimlad Vexlor")
    wrong = WrongAnswers([asked, bridge("Karel Munch"), bridge("Nobody Else"), bridge("1902"), bridge("yes")])
    assert wrong.of_others(asked) == ["Karel Munch"]


@pytest.mark.parametrize(
    "other", ["Vexlor", "Brimlad Vexlor built", "Vexlor Brimlad", "The Brimlad Vexlor", "B. Vexlor"]
)
def test_what_is_almost_the_right_answer_is_not_wrong(other: str) -> None:
    assert other not in chosen(bridge("Brimlad Vexlor", answer_aliases=["B. Vexlor"]), [other])


def test_what_the_question_names_is_no_hard_answer_but_where_the_right_one_is_named_too() -> None:
    asked = "Who worked for Quorvath Zimbelot?"
    assert "Quorvath Zimbelot" not in chosen(bridge("Brimlad Vexlor", asked))
    passages = [Passage(id=name, title=name, text="A person.") for name in ("Ana Loon", "Bo Munch")]
    compared = Question(id="c", question="Who is older, Ana Loon or Bo Munch?", answer="Ana Loon", passages=passages)
    assert chosen(compared) == ["Bo Munch"]


def test_the_opposite_of_a_judgement_is_wrong() -> None:
    assert (chosen(bridge("Yes.")), chosen(bridge("no"))) == (["no"], ["yes"])


def test_a_phrase_has_phrases_of_its_length() -> None:
    wrong = chosen(bridge("bridge"))
    assert wrong and all(text.islower() and " " not in text for text in wrong)
    assert chosen(bridge("!!!")) == []


def test_half_are_of_others_as_far_as_there_are_and_the_question_decides_which() -> None:
    asked = bridge("Brimlad Vexlor")
    assert set(chosen(asked, ["Marbeth Loon"], most=2)) >= {"Marbeth Loon"}
    assert len(chosen(asked, most=1)) == 1
    assert chosen(asked, ["Karel Munch"]) == chosen(asked, ["Karel Munch"])
