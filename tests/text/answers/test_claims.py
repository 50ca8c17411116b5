"""Answers as people and chatbots write them: what is telling in them, and which are none."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rechain.text.answers.claims import MOST_CLAIMS, read_answer
from rechain.text.words import phrase

DIRECTOR = "Who directed Inception?"
HOLIDAYS = "How many days of annual leave do employees get?"
HOME = "May employees work from home?"


def firsts(question: str, answer: str) -> list[str]:
    """Return the most telling phrase of each claim."""
    return [claim.phrases[0].strip() for claim in read_answer(question, answer).claims]


@pytest.mark.parametrize(
    "answer",
    [
        "Christopher Nolan",
        "Christopher Nolan.",
        "**Christopher Nolan**",
        "Answer: Christopher Nolan",
        "The answer is Christopher Nolan.",
        "Based on the provided context, the director of Inception is Christopher Nolan [1].",
        "Inception was directed by [Christopher Nolan](https://example.org). I hope this helps!",
        "Sure! Christopher Nolan directed Inception. Let me know if you need anything else.",
        "You asked who directed Inception. The answer is Christopher Nolan.",
        'Regarding your question "Who directed Inception?": Christopher Nolan.',
        "The documents discuss Inception. Therefore, the answer is Christopher Nolan.",
        "the director of inception is christopher nolan",
        "Christopher Nolan is the answer to your question.",
        "As an AI language model, I can't watch films. According to the context, it was Christopher Nolan.",
        "<p>It was <b>Christopher Nolan</b>.</p>",
        "## Director\n\n- Christopher Nolan",
        "Die Antwort lautet: Christopher Nolan.",
        "根据提供的资料，答案是Christopher Nolan。希望对您有帮助。",
    ],
)
def test_the_short_answer_is_found_in_its_sentence(answer: str) -> None:
    reading = read_answer(DIRECTOR, answer)
    assert (reading.kind, reading.stance, len(reading.claims)) == ("text", None, 1)
    assert [claim.phrases[0] for claim in reading.claims] == [phrase("Christopher Nolan")]
    assert reading.claims[0].words == ("christopher", "nolan")


@pytest.mark.parametrize(
    ("question", "answer", "first"),
    [
        ("Who is Audrey Williams's husband?", "Her husband is Hank Williams, Jr.", "hank williams jr"),
        ("Which crime family?", "He was with the DeCavalcante crime family.", "decavalcante crime family"),
        ("What medal was he awarded?", "The medal that he was awarded is the Medal of Honor.", "medal of honor"),
        ("What did she star in?", "She starred in Mad About You.", "mad about you"),
        ("What song debuted?", "The song that debuted is Falling Away from Me.", "falling away from me"),
        ("Where is it based?", "It is in Columbus, Ohio.", "columbus ohio"),
        ("When did it start?", "It started on September 23, 1962, in a small town.", "september 23 1962"),
        (HOLIDAYS, "Employees get 27 days of annual leave.", "27 days"),
        (HOLIDAYS, "According to the handbook, full-time employees receive 27 days of paid leave.", "27 days"),
        ("Is there a fee?", "There is no fee.", "no fee"),
        ("When was it built?", "I don't know the exact date, but it was in 1999.", "1999"),
        ("What composed he last?", '"Making a Murderer" was the last that he composed.', "making a murderer"),
        ("When is it open?", "It is open from 9:30 to 18:00.", "from 9 30 to 18 00"),
        ("What is the film?", "It is Star Wars: The Force Awakens.", "star wars the force awakens"),
        ("Who plays him?", "He is played by Captain B.J. Hunnicutt.", "captain b j hunnicutt"),
        (
            "Who is the grandfather of Louise of Prussia?",
            "It is Frederick William I of Prussia.",
            "frederick william i of prussia",
        ),
        ("When did he die?", "He died on May 28, 2013.", "may 28 2013"),
        ("How many are there?", "There are about 450,000.", "about 450000"),
        ("What dynasty was it?", "Qing dynasty was the dynasty.", "qing dynasty"),
        ("What is played?", "So Free Am I", "so free am i"),
        ("《三体》的作者是谁？", "《三体》的作者是刘慈欣。", "刘 慈 欣"),
        ("公司的年假有多少天？", "根据员工手册，年假为27天。", "27 天"),
        ("Wer hat das Buch geschrieben?", "Laut den Dokumenten hat Thomas Mann das Buch geschrieben.", "thomas mann"),
    ],
)
def test_the_first_phrase_is_what_lies_beyond_the_question(question: str, answer: str, first: str) -> None:
    assert firsts(question, answer) == [first]


@pytest.mark.parametrize("answer", ["The older one is Oxford.", "Oxford is older than Cambridge.", "Oxford.", "Oxford"])
def test_an_option_of_the_question_is_the_part_that_is_named(answer: str) -> None:
    assert firsts("Which is older, Oxford or Cambridge?", answer) == ["oxford"]


def test_an_option_that_stands_alone_is_a_claim_beside_what_is_said_about_it() -> None:
    answer = "Leeds. It opened in 1987."
    assert firsts("Which of our sites is older, Leeds or Rotterdam?", answer) == ["leeds", "1987"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n",
        "…",
        "-",
        "Who directed Inception?",
        "N/A",
        "Unknown.",
        "I don't know",
        "I don’t know.",
        "\u200b\ufeff",
        "As an AI language model, I can't help with that.",
        "Je ne sais pas.",
        "No lo sé.",
        "I'm sorry, but I cannot find the answer in the provided documents.",
        "Unfortunately, the context does not contain information about that. Please consult another source.",
        "The documentation I have access to does not mention it, so I can't say.",
        "Sorry, the manuals don't say whether that is supported.",
        "It is not mentioned.",
        "The director is not specified in the given passages.",
        "This cannot be determined from the context.",
        "There is no information about this in the documents.",
        "No information about the director was found.",
        "Dazu liegen keine Informationen vor.",
        "Das weiß ich leider nicht. In den mir vorliegenden Informationen steht dazu nichts.",
        "资料中没有提到。",
        "抱歉，我无法回答这个问题。",
    ],
)
def test_an_answer_that_says_that_there_is_none_is_none(answer: str) -> None:
    reading = read_answer(DIRECTOR, answer)
    assert (reading.kind, reading.claims) == ("none", ())


@pytest.mark.parametrize(
    "answer",
    [
        "There is no fee.",
        "No information is shared with third parties.",
        "It is not allowed.",
        "The author of Beowulf is unknown.",
        "Nobody knows who he was before 1920.",
        "Do not take more than two tablets.",
        "!!!",
        "Great Expectations",
        "Es gibt keine Gebühren.",
        "没有手续费，可以随时取消。",
    ],
)
def test_an_answer_with_a_negation_is_an_answer(answer: str) -> None:
    assert read_answer("What about it?", answer).kind == "text"


@pytest.mark.parametrize(
    ("answer", "kind", "stance"),
    [
        ("yes", "judgement", "yes"),
        ("No.", "judgement", "no"),
        ("**Yes**", "judgement", "yes"),
        ("Yes, they may.", "judgement", "yes"),
        ("Ja.", "judgement", "yes"),
        ("nein", "judgement", "no"),
        ("是的。", "judgement", "yes"),
        ("不可以。", "judgement", "no"),
        ("True", "judgement", "yes"),
        ("Yes, employees may work from home.", "text", "yes"),
        ("Based on the handbook, yes: two days a week.", "text", "yes"),
        ("No, that is reserved for managers.", "text", "no"),
        ("可以，每周最多两天。", "text", "yes"),
        ("No fee applies.", "text", None),
        ("True Detective", "text", None),
        ("No Country for Old Men", "text", None),
    ],
)
def test_yes_and_no(answer: str, kind: str, stance: str | None) -> None:
    reading = read_answer(HOME, answer)
    assert (reading.kind, reading.stance) == (kind, stance)


def test_a_yes_that_repeats_the_question_tells_all_that_it_says() -> None:
    assert read_answer(HOME, "Yes, employees may work from home.").claims[0].words == ("employees", "work", "home")


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        ("- Berlin\n- Paris", ["berlin", "paris"]),
        ("We have these offices:\n\n1. Berlin\n2. **Paris** [2]\n3. Rome", ["berlin", "paris", "rome"]),
        ("• Berlin\n• Paris", ["berlin", "paris"]),
        ("<ul><li>Berlin</li><li>Paris</li></ul>", ["berlin", "paris"]),
        ("The offices are: Berlin and Paris.", ["berlin", "paris"]),
        ("The offices are Berlin, Paris, and Rome.", ["berlin", "paris", "rome"]),
        ("You find us in\n- Berlin\n- Paris", ["berlin", "paris"]),
        ("Berlin, Paris und Rom", ["berlin", "paris", "rom"]),
        ("| office | staff |\n|---|---|\n| Berlin | 30 |\n| Paris | 27 |", ["berlin 30", "paris 27"]),
    ],
)
def test_items_of_a_list_are_claims(answer: str, items: list[str]) -> None:
    assert firsts("Where are your offices?", answer) == items


@pytest.mark.parametrize("answer", ["March 2 and 3, 2012", "Lakota and Dakota Sioux", "Columbus, Ohio, United States"])
def test_dates_and_names_are_no_lists(answer: str) -> None:
    assert firsts("Who or when was it?", answer) == [phrase(answer).strip()]


def test_sentences_are_claims_of_their_own() -> None:
    reading = read_answer("Whose extension do I call?", "You should call Petra Novotná. It is 4417, i.e. the second.")
    assert [claim.text for claim in reading.claims] == [
        "You should call Petra Novotná.",
        "It is 4417, i.e. the second.",
    ]
    assert [claim.phrases[0] for claim in reading.claims] == [" petra novotna ", " 4417 "]


def test_what_repeats_the_question_is_no_claim() -> None:
    answer = "Employees get days of annual leave. They get 27 days."
    assert [claim.text for claim in read_answer(HOLIDAYS, answer).claims] == ["They get 27 days."]


def test_many_claims_are_merged() -> None:
    answer = " ".join(f"City{number} has a park." for number in range(50))
    claims = read_answer("Which parks are there?", answer).claims
    assert len(claims) == MOST_CLAIMS
    assert claims[-1].words[0] == "city19"
    assert {"city20", "city49"} <= {*claims[-1].words}


def test_an_answer_of_nothing_but_frames_is_looked_for_as_it_stands() -> None:
    assert firsts("What is the title?", "Great question!") == ["great question"]


PIECES = st.sampled_from(
    (
        *(*"[]()<>*_`#|-&\"'“”.,:;!?\n\t 。，、是不", "<li>", "</p>", "```", "1. ", "- ", "根据资料，", "答案是"),
        *("I don't know", "Yes, ", "No", "the answer is ", "Based on the context, ", "27", "Nolan"),
        *("🎻👩‍👩‍👧", "שלום", "مرحبا", "\u0301", "\ud7ff", "ß"),
    )
)
answers = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join))


@settings(max_examples=80, deadline=None)
@given(st.one_of(st.just(DIRECTOR), answers), answers)
@example("[[[", "]]]((( [1] ](")
@example("", "\u0301.")
def test_any_answer_is_read(question: str, answer: str) -> None:
    reading = read_answer(question, answer)
    assert (reading.kind == "none") == (not reading.claims)
    for claim in reading.claims:
        assert claim.text
        assert all(words == f" {' '.join(words.split())} " != "  " for words in claim.phrases)
        assert bool(claim.phrases) == bool(claim.words)


@pytest.mark.parametrize(
    "piece",
    [
        "A sentence. ",
        "这是一个很长的句子",
        "[a](",
        "- item\n",
        "🎻",
        "שלום עולם. ",
        " ",
        ". ",
        "<script></s>",
        '"a ',
        "A, and ",
        "!",
    ],
)
def test_a_very_long_answer_is_read(piece: str) -> None:
    reading = read_answer(DIRECTOR, (piece * 100_000)[:100_000] + "x")
    assert len(reading.claims) <= MOST_CLAIMS
