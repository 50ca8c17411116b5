"""Pseudo questions: what they must hold, what they must not look at, and that they are hard."""

import os
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from itertools import islice
from pathlib import Path

import pytest

from rechain.candidates import find_candidates
from rechain.datasets import read_questions
from rechain.errors import RechainError
from rechain.preparation.pseudo import PseudoMaker, PseudoQuestion, PseudoSettings, make_pseudo_questions
from rechain.recovery import Recoverer
from rechain.schema import Mention, Passage, Question
from rechain.text.words import phrase

OPERA = Question(
    id="opera",
    question="SECRETQUESTION?",
    answer="SECRETANSWER",
    hops=2,
    passages=[
        Passage(
            id="Zorilla",
            title="Zorilla",
            text="Zorilla is a comic opera in three acts by Anton Quillfeather about a smuggler and a customs officer.",
        ),
        Passage(
            id="Anton Quillfeather",
            title="Anton Quillfeather",
            text="Anton Quillfeather was a composer and bandmaster born in Olomouc on 3 May 1871. "
            "He taught harmony at the conservatory of Ljubljana and conducted 42 concerts there.",
        ),
        Passage(
            id="Marta Vesely",
            title="Marta Vesely",
            text="Marta Vesely sang in an opera by Anton Quillfeather at the theatre of Graz in 1902.",
        ),
        Passage(
            id="Ljubljana",
            title="Ljubljana",
            text="Ljubljana is the capital of Slovenia and has a castle, a university and a bridge with dragons.",
        ),
        Passage(id="Weather", title="Weather", text="It rains often in autumn."),
    ],
)
BRIDGES = Question(
    id="bridges",
    question="SECRETQUESTION?",
    answer="SECRETANSWER",
    hops=2,
    passages=[
        Passage(
            id="Dragon Bridge",
            title="Dragon Bridge",
            text="The Dragon Bridge is a road bridge in Ljubljana with four statues, built by Josef Melan in 1901.",
        ),
        Passage(
            id="Josef Melan",
            title="Josef Melan",
            text="Josef Melan was an engineer from Vienna who taught at the technical university of Brno and "
            "invented a system of reinforced bridges.",
        ),
        Passage(
            id="Olomouc",
            title="Olomouc",
            text="Olomouc is a city in Moravia where Anton Quillfeather and Josef Melan once met.",
        ),
    ],
)
TEXTS = [OPERA, BRIDGES]
GENTLE = PseudoSettings(drop=0.5, drop_unique=0.0)
"""as few sentences as these have few words to spare"""


def mentioned(text: str, **entities: str) -> list[Mention]:
    """Return mentions of the entities, by the words that stand for them in a text."""
    spans = [(entity.replace("_", ":"), text.index(word), word) for entity, word in entities.items()]
    return [Mention(entity=entity, start=start, end=start + len(word)) for entity, start, word in spans]


def study(number: str, text: str, **entities: str) -> Passage:
    return Passage(id=number, text=text, mentions=mentioned(text, **entities))


DRUGS = Question(
    id="drugs",
    question="SECRETQUESTION?",
    answer="SECRETANSWER",
    question_entities=["drug:0"],
    answer_entity="gene:0",
    hops=3,
    link_types=["gene", "drug"],
    passages=[
        study("1", "Aspirin inhibits COX1 in mice.", drug_1="Aspirin", gene_1="COX1"),
        study("2", "COX1 is blocked by ibuprofen.", gene_1="COX1", drug_2="ibuprofen"),
        study("3", "We saw ibuprofen act upon PPARG.", drug_2="ibuprofen", gene_2="PPARG"),
        study("4", "COX1 was there. So was ibuprofen.", gene_1="COX1", drug_2="ibuprofen"),
        study("5", "Many genes such as PPARG are known.", gene_2="PPARG"),
    ],
)


def made_from(*questions: Question, count: int = 40, seed: int = 0) -> list[PseudoQuestion]:
    return list(make_pseudo_questions(questions, count, GENTLE, seed))


@pytest.fixture(scope="module")
def text_questions() -> list[PseudoQuestion]:
    return made_from(*TEXTS)


def test_as_many_are_made_as_asked_for_and_evenly(text_questions: list[PseudoQuestion]) -> None:
    assert Counter(pseudo.source for pseudo in text_questions) == {"opera": 20, "bridges": 20}


def test_ids_differ(text_questions: list[PseudoQuestion]) -> None:
    assert len({pseudo.question.id for pseudo in text_questions}) == len(text_questions)


def test_no_question_is_made_twice(text_questions: list[PseudoQuestion]) -> None:
    assert len({(p.source, p.question.question, p.question.answer) for p in text_questions}) == len(text_questions)


def test_the_chain_is_one_of_two_candidates_or_more(text_questions: list[PseudoQuestion]) -> None:
    for pseudo in text_questions:
        chains = [chain.passages for chain in find_candidates(pseudo.question).chains]
        assert pseudo.chain in chains
        assert len(chains) >= 2


def test_the_answer_stands_in_the_tail_and_neither_in_head_nor_question(text_questions: list[PseudoQuestion]) -> None:
    for pseudo in text_questions:
        head, tail = (pseudo.question.passages[number] for number in pseudo.chain)
        answer = phrase(pseudo.question.answer)
        assert answer in phrase(tail.text)
        assert answer not in phrase(f"{head.title} . {head.text}")
        assert answer not in phrase(pseudo.question.question)


def test_the_linking_entity_is_taken_out(text_questions: list[PseudoQuestion]) -> None:
    for pseudo in text_questions:
        (link,) = pseudo.links
        assert all(
            link in phrase(f"{p.title} {p.text}") for p in map(pseudo.question.passages.__getitem__, pseudo.chain)
        )
        assert phrase(link) not in phrase(pseudo.question.question)


def test_a_context_keeps_its_size(text_questions: list[PseudoQuestion]) -> None:
    sizes = {question.id: len(question.passages) for question in TEXTS}
    assert all(len(pseudo.question.passages) == sizes[pseudo.source] for pseudo in text_questions)


def test_distractors_come_from_other_sources_too(text_questions: list[PseudoQuestion]) -> None:
    own = {passage.id for passage in OPERA.passages}
    assert any(p.id not in own for q in text_questions if q.source == "opera" for p in q.question.passages)


def test_the_same_seed_makes_the_same_questions(text_questions: list[PseudoQuestion]) -> None:
    assert made_from(*TEXTS) == text_questions
    assert made_from(*TEXTS, seed=1) != text_questions


def test_the_seed_of_hashes_does_not_matter() -> None:
    demo = str(files("rechain").joinpath("data/demo.jsonl"))
    code = (
        "import sys; from rechain import read_questions; from rechain.preparation.pseudo import make_pseudo_questions\n"
        "print([list(made) for made in make_pseudo_questions(read_questions(sys.argv[1]), 50)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, demo],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


def test_a_source_gives_the_same_whatever_is_made_of_the_others(text_questions: list[PseudoQuestion]) -> None:
    alone = list(islice(PseudoMaker(TEXTS, GENTLE).from_source(BRIDGES), 20))
    assert alone == [pseudo for pseudo in text_questions if pseudo.source == "bridges"]


@pytest.mark.parametrize("sources", [TEXTS, [DRUGS]], ids=["texts", "entities"])
def test_text_and_answer_of_the_source_do_not_matter(sources: list[Question]) -> None:
    made = made_from(*sources, count=10)
    others = [question.model_copy(update={"question": "Who?", "answer": "Prague", "type": 7}) for question in sources]
    assert made_from(*others, count=10) == made
    assert not any("SECRET" in pseudo.question.model_dump_json() for pseudo in made)


def test_given_entities_make_another_pair_of_the_same_types() -> None:
    made = made_from(DRUGS, count=10)
    assert made
    for pseudo in made:
        question = pseudo.question
        assert (question.hops, question.link_types) == (3, ["gene", "drug"])
        assert question.question_entities[0].startswith("drug:")
        assert question.answer_entity is not None
        assert question.answer_entity.startswith("gene:")
        assert len(question.passages) <= 30
        chains = [(chain.passages, *(edge.key for edge in chain.edges)) for chain in find_candidates(question).chains]
        assert (pseudo.chain, *pseudo.links) in chains


def test_given_entities_are_asked_for_by_their_mentions() -> None:
    asked = {(pseudo.question.question, pseudo.question.answer) for pseudo in made_from(DRUGS, count=10)}
    assert asked == {("interacts_with Aspirin?", "PPARG")}


def test_a_pattern_may_be_given() -> None:
    made = list(make_pseudo_questions([DRUGS], 1, PseudoSettings(pattern="What does {} bind?")))
    assert made[0].question.question == "What does Aspirin bind?"


def test_passages_of_the_same_id_are_told_apart() -> None:
    numbered = [
        question.model_copy(
            update={"passages": [p.model_copy(update={"id": str(n)}) for n, p in enumerate(question.passages)]}
        )
        for question in TEXTS
    ]
    made = made_from(*numbered)
    assert any(" of bridges" in p.id for pseudo in made if pseudo.source == "opera" for p in pseudo.question.passages)


def test_passages_of_one_title_may_make_a_chain() -> None:
    titled = [passage.model_copy(update={"title": "Music"}) for passage in OPERA.passages]
    made = made_from(OPERA.model_copy(update={"passages": titled}), count=5)
    assert all(len(pseudo.question.passages) == len(titled) for pseudo in made)


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_a_mistake(count: int) -> None:
    with pytest.raises(RechainError, match="at least 1"):
        make_pseudo_questions(TEXTS, count)


def test_passages_without_links_are_a_mistake() -> None:
    alone = Question(id="1", question="Who?", answer="x", passages=OPERA.passages[-1:])
    with pytest.raises(RechainError, match="linked"):
        list(make_pseudo_questions([alone], 1))


@pytest.mark.parametrize(
    "settings",
    [{"drop": 1.1}, {"paraphrase": -0.1}, {"clause_words": (5, 4)}, {"patience": -1}, {"pattern": "What?"}],
    ids=lambda settings: next(iter(settings)),
)
def test_wrong_settings_are_named(settings: dict[str, object]) -> None:
    with pytest.raises(RechainError, match=next(iter(settings))):
        PseudoSettings(**settings)  # type: ignore[arg-type]


def test_real_texts_make_questions_that_the_lexical_rule_often_fails(real_data: Path) -> None:
    sources = islice(read_questions(real_data / "hotpotqa/open.json.gz"), 300)
    made = list(make_pseudo_questions(sources, 300))
    recovered = Recoverer("lexical").recover_many(pseudo.question for pseudo in made)
    right = [
        result.chains[0].passages == [pseudo.question.passages[number].id for number in pseudo.chain]
        for result, pseudo in zip(recovered, made, strict=True)
    ]
    assert len(right) >= 290
    assert 0.6 < sum(right) / len(right) < 0.85


def test_real_entities_make_questions(real_data: Path) -> None:
    folder = real_data / "drughop"
    sources = list(islice(read_questions(folder / "open.jsonl.gz", passages=folder / "passages.jsonl.gz"), 100))
    made = list(make_pseudo_questions(sources, 100))
    own = {(*question.question_entities, question.answer_entity) for question in sources}
    assert len(made) >= 90
    assert sum((*p.question.question_entities, p.question.answer_entity) in own for p in made) < 5
    assert all(len(pseudo.chain) == 3 for pseudo in made)
