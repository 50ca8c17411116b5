"""From a question to its chains."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain import CandidateSettings, Recoverer
from rechain.baselines import BASELINES
from rechain.candidates import Candidates
from rechain.errors import QuestionError, RechainError
from rechain.schema import Chain, Link, Mention, Passage, Problem, Question, Recovered


class LastIsBest:
    """A model that ranks candidates against their order."""

    def score(self, candidates: Candidates) -> Sequence[dict[str, float]]:
        return [{"place": float(number), "half": 0.5} for number, _ in enumerate(candidates.chains)]


@pytest.mark.parametrize("model", BASELINES)
def test_every_baseline_recovers_a_chain_of_the_question(bridge_question: Question, model: str) -> None:
    recovered = Recoverer(model).recover(bridge_question)
    (chain,) = recovered.chains
    assert (recovered.id, recovered.error) == ("q1", None)
    assert chain.passages[-1] in ("composer", "city")
    assert len(chain.links) == 1
    assert chain.why is None
    assert chain.confidence is None


def test_the_default_model_finds_the_chain_that_the_question_means(bridge_question: Question) -> None:
    (chain,) = Recoverer().recover(bridge_question).chains
    assert chain.passages == ["opera", "composer"]
    assert [link.entity for link in chain.links] == ["Anton Quillfeather"]


def test_chains_come_best_first_as_many_as_asked_for(bridge_question: Question) -> None:
    for top in (1, 2, 3, 10):
        chains = Recoverer(LastIsBest(), top=top).recover(bridge_question).chains
        assert [chain.score for chain in chains] == [2.5, 1.5, 0.5][:top]
    assert chains[0].passages == ["composer", "city"]


def test_an_explanation_tells_what_adds_up_to_the_score(bridge_question: Question) -> None:
    (chain,) = Recoverer("lexical", explain=True).recover(bridge_question).chains
    assert chain.why
    assert sum(chain.why.values()) == pytest.approx(chain.score)


def test_settings_are_passed_on(bridge_question: Question) -> None:
    (chain,) = Recoverer(settings=CandidateSettings(hops=3)).recover(bridge_question).chains
    assert len(chain.passages) == 3


def test_a_question_without_a_chain_has_its_error(bridge_question: Question) -> None:
    recovered = Recoverer().recover(bridge_question.model_copy(update={"answer": "yes"}))
    assert (recovered.id, recovered.chains) == ("q1", [])
    assert recovered.error
    assert recovered.error.code == "no_tail"


TEXTS = ["Zorilla is an opera by Anton Quillfeather.", "Anton Quillfeather was born in Prague.", "It rains."]


def test_plain_texts_will_do_as_passages() -> None:
    (chain,) = Recoverer().recover("Where was the composer of Zorilla born?", "Prague", TEXTS).chains
    assert chain.passages == ["0", "1"]


def test_dicts_and_passages_will_do_too() -> None:
    passages = [
        Passage(id="p", text=TEXTS[0]),
        {"title": "Anton Quillfeather", "text": TEXTS[1]},
        {"id": "r", "text": "."},
    ]
    (chain,) = Recoverer().recover("Where was the composer of Zorilla born?", "Prague", passages).chains
    assert chain.passages == ["p", "Anton Quillfeather"]


@pytest.mark.parametrize(
    ("answer", "passages", "code"),
    [(None, TEXTS, "empty_field"), ("Prague", [""], "empty_field"), ("Prague", [{"id": "p"}], "missing_field")],
)
def test_a_question_that_lacks_something_says_what(answer: str | None, passages: list[object], code: str) -> None:
    with pytest.raises(QuestionError) as caught:
        Recoverer().recover("Where?", answer, passages)
    assert caught.value.code == code


def test_passages_of_one_title_and_no_id_do_not_clash() -> None:
    passages = [{"title": "Zorilla", "text": TEXTS[0]}, {"title": "Zorilla", "text": TEXTS[1]}]
    (chain,) = Recoverer().recover("Where was the composer born?", "Prague", passages).chains
    assert len(set(chain.passages)) == 2


def test_an_unknown_model_is_an_error_that_names_the_known() -> None:
    with pytest.raises(RechainError, match="there is no model 'gpt'; the models are random, lexical, bm25"):
        Recoverer("gpt")


@pytest.mark.parametrize("model", BASELINES)
def test_a_question_has_the_same_chains_alone_and_among_others(bridge_question: Question, model: str) -> None:
    others = [
        bridge_question.model_copy(update={"id": f"other {n}", "answer": answer})
        for n, answer in enumerate(["Anton Quillfeather", "yes", "river"])
    ]
    recoverer = Recoverer(model, top=3)
    alone = Recoverer(model, top=3).recover(bridge_question)
    among = list(recoverer.recover_many([*others, bridge_question, *others]))
    assert among[3] == alone
    assert [recovered.id for recovered in among] == [
        "other 0",
        "other 1",
        "other 2",
        "q1",
        "other 0",
        "other 1",
        "other 2",
    ]


def test_many_questions_are_recovered_one_at_a_time(bridge_question: Question) -> None:
    taken = []

    def questions():
        for number in range(3):
            taken.append(number)
            yield bridge_question

    recovered = Recoverer().recover_many(questions())
    assert taken == []
    next(recovered)
    assert taken == [0]


# ---- records survive being written and read

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
filled = texts.filter(lambda text: any(not c.isspace() and c.isprintable() for c in text))
floats = st.floats(allow_nan=False, allow_infinity=False)
spans = st.tuples(st.integers(0, 100), st.integers(0, 100))


@st.composite
def passages(draw: st.DrawFn, number: int) -> Passage:
    text = draw(filled)
    starts = draw(st.lists(st.integers(0, len(text) - 1), max_size=3))
    mentions = [Mention(entity=draw(filled), start=s, end=draw(st.integers(s + 1, len(text)))) for s in starts]
    return Passage(id=f"{number}{draw(texts)}", title=draw(texts), text=text, mentions=mentions)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    hops = draw(st.one_of(st.none(), st.integers(2, 8)))
    types = st.lists(filled, min_size=(hops or 3) - 1, max_size=(hops or 3) - 1)
    return Question(
        id=draw(filled),
        question=draw(filled),
        answer=draw(filled),
        answer_aliases=draw(st.lists(filled, max_size=2)),
        question_entities=draw(st.lists(filled, max_size=2)),
        answer_entity=draw(st.one_of(st.none(), filled)),
        hops=hops,
        link_types=draw(st.one_of(st.none(), types)),
        passages=[draw(passages(number)) for number in range(draw(st.integers(0, 3)))],
        level=draw(st.one_of(st.none(), texts, st.integers(), st.lists(st.booleans()))),
    )


links = st.builds(
    Link,
    entity=texts,
    kind=st.sampled_from(["mention", "identifier", "title", "title part", "name", "word"]),
    weight=floats,
    mentions=st.tuples(st.one_of(st.none(), spans), st.one_of(st.none(), spans)),
)
chains = st.builds(
    Chain,
    passages=st.lists(texts, min_size=1, max_size=3),
    links=st.lists(links, max_size=2),
    score=floats,
    confidence=st.one_of(st.none(), st.floats(0, 1)),
    why=st.one_of(st.none(), st.dictionaries(texts, floats, max_size=2)),
)
problems = st.builds(Problem, code=texts, message=texts)
answers = st.builds(
    Recovered, id=st.one_of(st.none(), texts), chains=st.lists(chains, max_size=3), error=st.one_of(st.none(), problems)
)


@given(questions())
def test_a_question_written_and_read_is_the_same(question: Question) -> None:
    assert Question.model_validate_json(question.model_dump_json()) == question


@given(answers)
def test_recovered_chains_written_and_read_are_the_same(recovered: Recovered) -> None:
    line = recovered.to_json()
    assert "\n" not in line
    assert Recovered.model_validate_json(line) == recovered


def test_many_plain_texts_get_their_ids_quickly() -> None:
    start = time.perf_counter()
    recovered = Recoverer().recover("Who?", "Nobody", ["Some text."] * 30_000)
    assert recovered.error and recovered.error.code == "no_tail"
    assert time.perf_counter() - start < 10


def test_ids_that_are_taken_are_not_given_again() -> None:
    passages = [{"title": "1", "text": "by Quorvath"}, {"title": "1", "text": "Quorvath of Ostrela"}, "Quorvath"]
    recovered = Recoverer(top=9).recover("Who?", "Ostrela", passages)
    assert {passage for chain in recovered.chains for passage in chain.passages} == {"1", "1.1", "2"}
