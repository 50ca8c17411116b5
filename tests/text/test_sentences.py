"""The sentences of a passage under a question."""

import pytest

from rechain.schema import Passage, Question
from rechain.text.answers import AnswerMatcher
from rechain.text.passages import PassageView
from rechain.text.rarity import idf
from rechain.text.sentences import AskedSentences, rarities, stretches
from rechain.text.words import Text

TEXT = "The Zimbelot sang. The SANG of Quorvath, of Quorvath! It slept. Zimbelot sang of New Ostrela."


def sentences(asked: str = "Who sang of a Zimbelot?") -> AskedSentences:
    return AskedSentences(PassageView(Passage(id="p", text=TEXT)), rarities(Text(asked)))


def answer(text: str, *aliases: str) -> AnswerMatcher:
    return AnswerMatcher(Question(id="q", question="?", answer=text, answer_aliases=list(aliases), passages=[]))


def test_rarities_are_those_of_the_distinct_folded_words() -> None:
    assert rarities(Text("Ång the ANG!")) == {"ang": idf("ang"), "the": idf("the")}


def test_every_sentence_holds_some_of_the_question_each_word_once() -> None:
    assert sentences().overlaps == pytest.approx(
        [
            idf("zimbelot") + idf("sang"),
            idf("sang") + idf("of"),
            0,
            idf("zimbelot") + idf("sang") + idf("of"),
        ]
    )


@pytest.mark.parametrize(("name", "best"), [(" zimbelot ", 3), (" quorvath ", 1), (" it ", 2), (" ostrela ", 3)])
def test_the_best_sentence_with_a_name_holds_most_of_the_question(name: str, best: int) -> None:
    asked = sentences()
    assert asked.best_with(name) == asked.overlaps[best]
    assert asked.best_with(name) == asked.overlaps[best]  # told again


def test_names_are_whole_words_within_a_sentence() -> None:
    assert sentences().best_with(" zimbe ") == 0
    assert sentences().best_with(" sang the ") == 0


def test_the_sentences_that_hold_the_answer_or_an_alias() -> None:
    asked = sentences()
    assert asked.answering(answer("zimbelot")) == [0, 3]
    assert asked.answering(answer("Nobody", "new ostrela", "Quorvath")) == [1, 3]
    assert asked.best_answering(answer("zimbelot")) == asked.overlaps[3]
    assert asked.best_answering(answer("quorvath")) == asked.overlaps[1]
    assert (asked.answering(answer("Nobody")), asked.best_answering(answer("Nobody"))) == ([], 0)


def test_only_a_very_long_sentence_is_parted_and_no_name_is_lost_between_parts() -> None:
    long = " ".join(f"w{number}" for number in range(1000))
    view = PassageView(Passage(id="p", text=f"It slept. A {long}. It slept."))
    first, *parts, last = stretches(view)
    assert (first, last) == (view.sentences[0], view.sentences[2])
    assert (parts[0][0], parts[-1][1]) == view.sentences[1]
    texts = [view.passage.text[start:end] for start, end in parts]
    assert max(map(len, texts)) <= 300
    assert all(any(f"w{number} w{number + 1}" in text for text in texts) for number in range(999))
    short = PassageView(Passage(id="p", text=TEXT))
    assert list(stretches(short)) == short.sentences
