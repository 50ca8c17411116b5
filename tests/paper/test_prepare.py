"""From questions to arrays: where names stand, what is marked, and what is left out."""

from typing import Any

import numpy as np
import torch

from rechain.paper.data import Prepared
from rechain.paper.entities import entity_names
from rechain.paper.lexicon import Lexicon
from rechain.paper.prepare import Preparation, prepare
from rechain.paper.settings import GameSettings
from rechain.schema import Mention, Passage, Question
from rechain.text.candidates import find_candidates

Arrays = dict[str, np.ndarray[Any, Any]]


def make(*passages: Passage | tuple[str, str], answer: str = "Prague", **fields: Any) -> Question:
    rows = [
        one if isinstance(one, Passage) else Passage(id=str(n), title=one[0], text=one[1])
        for n, one in enumerate(passages)
    ]
    return Question(**({"id": "q", "question": "Where?", "answer": answer, "passages": rows} | fields))


def arrays(*questions: Question) -> Arrays:
    return prepare(questions, Lexicon({})).arrays()


def mentions(question: Question) -> list[dict[str, list[int]]]:
    """Return for every passage at which words each entity stands."""
    preparation = Preparation(Lexicon({}))
    assert preparation.take(question)
    told, names = preparation.arrays(), entity_names(find_candidates(question))
    places: list[dict[str, list[int]]] = []
    for first, end in zip(told["mention_start"], told["mention_start"][1:], strict=False):
        here: dict[str, set[int]] = {}
        for at in range(first, end):  # a title that is a name too is two entities
            here.setdefault(names[told["mention_entity"][at]].strip(), set()).add(int(told["mention_token"][at]))
        places.append({name: sorted(words) for name, words in here.items()})
    return places


def marks(question: Question) -> list[dict[int, list[int]]]:
    """Return for every passage the words that are marked, by kind."""
    told = arrays(question)
    found = []
    for first, end in zip(told["mark_start"], told["mark_start"][1:], strict=False):
        here: dict[int, list[int]] = {}
        for at in range(first, end):
            here.setdefault(int(told["mark_kind"][at]), []).append(int(told["mark_token"][at]))
        found.append({kind: sorted(words) for kind, words in here.items()})
    return found


# ---- where names stand

OPERA = make(
    ("Zorilla", "Zorilla is an opera by Anton Quillfeather, and Anton Quillfeather is proud."),
    ("Anton Quillfeather", "Anton Quillfeather was born in Prague. So was Mirabellus."),
    ("Mirabellus", "With Anton Quillfeather she went to Prague."),
)


def test_a_name_is_mentioned_at_its_first_word_in_title_and_text() -> None:
    places = mentions(OPERA)
    # the words of a passage are those of its title, then those of its text
    assert places[0]["anton quillfeather"] == [6, 9]
    assert places[1]["anton quillfeather"] == [0, 2]
    assert places[2]["anton quillfeather"] == [2]
    assert places[1]["mirabellus"] == [10]
    assert places[2]["mirabellus"] == [0]


def spans(question: Question) -> list[dict[str, list[tuple[int, int]]]]:
    """Return for every passage the words of the mentions of each merged entity, as (first, how many)."""
    told, names = arrays(question), entity_names(find_candidates(question), is_merged=True)
    columns = [told[f"mention_{name}"].tolist() for name in ("merged", "token", "length")]
    places: list[dict[str, list[tuple[int, int]]]] = []
    for first, end in zip(told["mention_start"], told["mention_start"][1:], strict=False):
        here: dict[str, list[tuple[int, int]]] = {}
        for entity, token, length in list(zip(*columns, strict=True))[first:end]:
            if entity >= 0:
                here.setdefault(names[entity].strip(), []).append((token, length))
        places.append({name: sorted(found) for name, found in here.items()})
    return places


def test_a_merged_entity_is_mentioned_once_by_all_words_of_its_name() -> None:
    # title, its two parts and a name are one; every mention counts once, over both of its words
    places = spans(OPERA)
    assert places[0]["anton quillfeather"] == [(6, 2), (9, 2)]
    assert places[1] == {"anton quillfeather": [(0, 2), (2, 2)], "mirabellus": [(10, 1)]}
    assert places[2]["anton quillfeather"] == [(2, 2)]


def test_a_surname_alone_is_a_mention_of_the_whole_name_if_few_passages_hold_it() -> None:
    texts = [(p.title, p.text) for p in OPERA.passages[:2]]
    alone, rain = (
        ("Mirabellus", "With Quillfeather she went to Prague."),
        [("", f"It rained {n} times.") for n in range(12)],
    )
    told = make(*texts, alone, *rain)  # three of fifteen passages hold the surname
    assert spans(told)[2]["anton quillfeather"] == [(2, 1)]
    assert 0b111 in arrays(told)["merged_passages"][:, 0].tolist()
    assert "anton quillfeather" not in spans(make(*texts, alone))[2]  # three of three


def test_merged_entities_of_the_data_are_the_same_and_have_the_words_of_their_offsets() -> None:
    told = arrays(GIVEN)
    assert told["merged_passages"].tolist() == told["entity_passages"].tolist()
    assert told["chain_merged"].tolist() == told["chain_entity"].tolist() == [[0]]
    assert spans(GIVEN) == [{"gene:7": [(9, 2)]}, {"gene:7": [(0, 2)]}]  # cox, 1


GIVEN = make(
    Passage(
        id="a",
        title="On two drugs",
        text="We saw it. Aspirin (ASA) binds cox-1, as aspirin does.",
        mentions=[
            Mention(entity="drug:1", start=11, end=18),
            Mention(entity="drug:1", start=20, end=23),
            Mention(entity="gene:7", start=31, end=36),
            Mention(entity="drug:1", start=41, end=48),
        ],
    ),
    Passage(
        id="b",
        text="COX-1 acts. It cuts warfarin down.",
        mentions=[Mention(entity="gene:7", start=0, end=5), Mention(entity="drug:2", start=20, end=28)],
    ),
    answer="warfarin",
    question_entities=["drug:1"],
    answer_entity="drug:2",
    hops=2,
    link_types=["gene"],
)


def test_given_mentions_stand_at_the_words_that_their_offsets_name() -> None:
    places = mentions(GIVEN)
    words = ["on", "two", "drugs", "we", "saw", "it", "aspirin", "asa", "binds", "cox"]
    assert places[0] == {"gene:7": [words.index("cox")]}
    assert places[1] == {"gene:7": [0]}


def test_the_chain_names_its_linking_entity_where_the_data_gives_it() -> None:
    assert arrays(GIVEN)["chain_entity"].tolist() == [[0]]
    assert arrays(OPERA)["chain_entity"].max() == -1


def test_words_far_into_a_long_passage_are_mentioned_behind_what_is_read_and_do_no_harm() -> None:
    filling = "and so on " * 12_000
    question = make(("Zorilla", f"{filling} Anton Quillfeather."), ("Anton Quillfeather", f"{filling} Prague."))
    told = arrays(question)
    assert told["mention_token"].min() == 0
    assert told["mention_token"].max() == 2**15 - 1
    assert told["mark_token"].min() == 2**15 - 1
    batch = Prepared(told, GameSettings()).batch(np.arange(1))
    assert bool((batch.mention_token >= 0).all())
    assert batch.mention_entity[0, 0].tolist() == [-1] * batch.mention_entity.shape[-1]


# ---- what is marked


def test_the_words_of_the_answer_are_marked() -> None:
    assert marks(OPERA) == [{}, {1: [7]}, {1: [7]}]


def test_given_ends_are_marked_with_the_sentences_that_hold_them() -> None:
    told = marks(GIVEN)
    # on two drugs, we saw it, aspirin asa binds cox 1 as aspirin does
    assert told[0] == {0: [6, 7, 12], 2: list(range(6, 14))}
    assert told[1] == {1: [5], 3: [3, 4, 5, 6]}


# ---- what is taken


def test_what_has_no_chain_or_one_of_another_length_is_left_out_and_counted() -> None:
    alone = make(("", "It rains."), ("", "Prague lies on a river."))
    nowhere = make(("", "It rains."), ("", "It snows."))
    few = make(("", "Prague lies on a river."))
    longer = OPERA.model_copy(update={"question": "Where was the maker of Zorilla born?", "hops": 3})
    preparation = prepare([OPERA, alone, nowhere, few, alone, longer], Lexicon({}))
    assert preparation.ids == ["q"]
    assert sum(preparation.left_out.values()) == 5
    assert preparation.left_out["no_link"] == 2
    assert preparation.left_out["too_few_passages"] == 1
    assert preparation.left_out["other_hops"] == 1
    assert len(preparation.left_out) == 4


def test_a_passage_that_many_questions_share_is_kept_once() -> None:
    other = OPERA.model_copy(update={"id": "other", "question": "Which town?"})
    told = arrays(OPERA, other)
    assert told["passage_text"].tolist() == [1, 2, 3, 1, 2, 3]
    assert told["question_text"].tolist() == [0, 4]
    assert len(told["text_start"]) == 6
    again = arrays(OPERA, OPERA.model_copy(update={"id": "again"}))
    assert again["question_text"].tolist() == [0, 0]


def test_a_text_that_is_a_question_and_a_passage_keeps_its_title_apart() -> None:
    question = make(("", "Where?"), *((p.title, p.text) for p in OPERA.passages))
    titled = make(("Where?", "Nowhere."), *((p.title, p.text) for p in OPERA.passages))
    assert arrays(question)["title_length"].tolist() == [0, 1, 2, 1]
    assert arrays(titled)["title_length"].tolist() == [0, 1, 1, 2, 1]  # the question, then four passages


def test_arrays_of_nothing_are_empty_and_have_their_shapes() -> None:
    told = Preparation(Lexicon({})).arrays()
    shapes = {name: array.shape for name, array in told.items()}
    assert shapes["chain_passages"] == (0, 2)
    assert shapes["chain_entity"] == (0, 1)
    assert shapes["entity_passages"] == (0, 1)
    assert shapes["mention_entity"] == shapes["tokens"] == shapes["question_text"] == (0,)
    assert told["passage_start"].tolist() == told["text_start"].tolist() == [0]
    assert len(Prepared(told, GameSettings())) in (0, 1)


def test_the_arrays_hold_what_a_baseline_says_of_every_chain() -> None:
    told, chains = arrays(OPERA), find_candidates(OPERA).chains
    assert told["chain_passages"].tolist() == [list(chain.passages) for chain in chains]
    assert torch.from_numpy(told["chain_lexical"]).isfinite().all()
    assert len(set(told["chain_lexical"].tolist())) > 1
