"""Which passages hold the answer, and how well."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import QuestionError
from rechain.schema import Mention, Passage, Question
from rechain.text import values
from rechain.text.answers import matcher
from rechain.text.answers.claims import Claim
from rechain.text.answers.matcher import AnswerMatcher, HeldClaim, Holding, Holdings, Meaning
from rechain.text.candidates import find_candidates
from rechain.text.languages import idf
from rechain.text.passage_views import PassageView
from rechain.text.values import same
from rechain.text.values.normal import read_items
from rechain.text.words import Text, phrase

SCATTERED, NEARBY, VALUE = 0.85, 0.7, 9.0
"""what telling words are worth in a sentence but not in a row, and in the sentence beside; the weight of a number"""


def question(answer: str, *texts: str, **fields: object) -> Question:
    passages = [Passage(id=str(number), text=text) for number, text in enumerate(texts)]
    return Question.model_validate({"id": "q", "question": "Which?", "answer": answer, "passages": passages, **fields})


def hold(asked: Question, meaning: Meaning | None = None) -> Holdings:
    return AnswerMatcher(asked).hold([PassageView(passage) for passage in asked.passages], meaning)


def tails(asked: Question) -> list[int]:
    return hold(asked).tails


def only(asked: Question, meaning: Meaning | None = None) -> tuple[int, Holding, str]:
    """Return the only passage that holds the only claim, how it does, and the words at its span."""
    (held,) = hold(asked, meaning).claims
    ((number, holding),) = held.holdings.items()
    assert holding.span is not None
    return number, holding, asked.passages[number].text[slice(*holding.span)]


@pytest.mark.parametrize(
    ("answer", "text", "held"),
    [
        ("car", "A car stops.", True),
        ("car", "A caravan stops.", False),
        ("car", "A car's wheel, (car)", True),
        ("dvorak", "Antonín DVOŘÁK", True),
        ("Dvořák", "Antonin Dvorak", True),
        ("Dvor\u030ca\u0301k", "Antonín Dvořák", True),
        ("1,234", "There were 1234 men.", True),
        ("1234", "There were 1,234 men.", True),
        ("234", "There were 1,234 men.", False),
        ("St. Louis", "St Louis, Missouri", True),
        ("St Louis", "in St. Louis", True),
        ("Saint Louis", "in St. Louis", False),
        ("C++", "Vitamin C is sour.", False),
        ("C", "Written in C++.", False),
        ("C++", "Written in C++.", True),
        ("Straße", "die STRASSE", True),
        ("!!!", "The band !!! plays.", True),
        ("!!!", "The band plays!", False),
        ("€120", "It costs €120.", True),
        ("€120", "It costs 120 euros.", True),
        ("120 €", "It costs EUR 120.", True),
        ("€120", "It costs 120.", False),
        ("€120", "It costs $120, or €130.", False),
        ("€120", "There are 120 guests.", False),
        ("€120 a night", "They pay €120 a night.", True),
        ("€120 a night", "They pay €120. Some 120 a night come.", False),
        ("50%", "Some 50 percent of 90.", True),
        ("50%", "Page 50.", False),
        ("$5 million", "They got 5 million dollars.", True),
        ("$5 million", "It has 5 million readers.", False),
        ("20°", "At 20° it melts.", True),
        ("A$AP Rocky", "A$AP Rocky sings.", True),
        ("東京", "彼は東京に住む", True),
        ("1990", "in 1990.", True),
        ("spider man", "Spider-Man", True),
        ("\u0301", "There is no accent here.", False),
        ("ﾞ", "There is no voiced mark here.", False),
    ],
)
def test_an_answer_is_held_as_whole_folded_words(answer: str, text: str, held: bool) -> None:
    assert AnswerMatcher(question(answer)).is_held_by(Passage(id="p", text=text)) is held


def test_a_number_without_the_answers_unit_is_a_weaker_match_or_none() -> None:
    texts = "There are 120 guests.", "| Price in EUR |\n|---|\n| 120 |"
    assert only(question("€120", *texts)) == (1, Holding("words", 1.0, (25, 28)), "120")
    number, holding, words = only(question("€120", *texts, "It has 120 rooms. The fee is €120."))
    assert (number, holding.match, words) == (2, "phrase", "120")
    fee = question("€120", "It has 120 rooms. The fee is €120.")
    assert sentences(fee) == {"€120": ["The fee is €120."]}
    assert hold(fee).spans(0, PassageView(fee.passages[0])) == [(30, 33)]
    assert tails(question("50%", passages=[Passage(id="p", title="The 50 % rule", text="It rains.")])) == [0]


def test_the_title_counts_too_but_not_across_into_the_text() -> None:
    passage = Passage(id="p", title="Prague (city)", text="Castle hill")
    assert AnswerMatcher(question("prague")).is_held_by(passage)
    assert not AnswerMatcher(question("Prague Castle")).is_held_by(passage)
    assert AnswerMatcher(question("***")).is_held_by(Passage(id="p", title="B***", text="x"))


def test_an_alias_counts_as_the_answer_does() -> None:
    asked = question("Praha", "Nothing here.", "Prague lies there.", "PRAHA", answer_aliases=["Prague"])
    assert tails(asked) == [1, 2]


def test_the_answers_entity_decides_whatever_the_text_says() -> None:
    passages = [
        Passage(id="text", text="p53 here", mentions=[Mention(entity="gene:2", start=0, end=3)]),
        Passage(id="entity", text="TP53 here", mentions=[Mention(entity="gene:1", start=0, end=4)]),
    ]
    asked = question("p53", passages=passages, answer_entity="gene:1")
    assert tails(asked) == [1]


def test_an_identifier_in_the_text_is_the_answers_entity_where_no_mentions_are_given() -> None:
    assert tails(question("DB00072", "DB00072 works", "DB00073 works", answer_entity="drug:DB00072")) == [0]


@pytest.mark.parametrize("answer", ["yes", "No", "YES.", " no ", "Yes!", "Ja.", "是的。"])
def test_a_mere_judgement_is_held_where_what_is_asked_stands(answer: str) -> None:
    asked = "Is Zimbelot older than Quorvath?"
    found = hold(question(answer, "It rains.", "Zimbelot is old.", "Yes or no.", "Quorvath is young.", question=asked))
    assert (found.tails, found.is_judgement, found.phrases, found.words) == ([1, 3], True, frozenset(), frozenset())
    total = sum(map(idf, ("zimbelot", "older", "than", "quorvath")))
    for passage in (1, 3):
        best = found.best(passage)
        assert best and (best.match, best.strength) == ("meaning", pytest.approx(SCATTERED * idf("zimbelot") / total))


def test_what_a_judgement_judges_is_not_looked_for_where_a_chain_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "_ClaimSearch", None)
    with pytest.raises(QuestionError, match="judges, and no passage can hold it"):
        find_candidates(question("yes", "A fox.", "A dog."))


def test_what_a_judgement_says_beside_yes_or_no_is_looked_for() -> None:
    asked = "Is Zimbelot older than Quorvath?"
    found = hold(question("No, Quorvath was built in 1910.", "Zimbelot is old.", "Quorvath: 1910.", question=asked))
    assert (found.tails, found.is_judgement) == ([1], False)


def test_a_judging_word_with_an_entity_is_an_answer_like_others() -> None:
    passages = [Passage(id="p", text="Yes plays", mentions=[Mention(entity="band:Yes", start=0, end=3)])]
    assert tails(question("Yes", passages=passages, answer_entity="band:Yes")) == [0]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (question("Oslo", "in Prague", answer_aliases=["Kristiania"]), "'Oslo' or 'Kristiania', nor what it says"),
        (question("Oslo", "in Oslo", answer_entity="city:1"), "mentions the answer's entity 'city:1'"),
        (question("x" * 200, "in Oslo"), "x{79}…'"),
    ],
)
def test_an_answer_that_no_passage_holds_gives_no_tail(asked: Question, reason: str) -> None:
    with pytest.raises(QuestionError, match=reason) as caught:
        tails(asked)
    assert caught.value.code == "no_tail"


@given(st.text(min_size=1).filter(str.strip), st.text("., ()\n", max_size=3), st.text("., ()\n", max_size=3))
def test_a_passage_that_is_the_answer_between_punctuation_holds_it(answer: str, before: str, after: str) -> None:
    assert AnswerMatcher(question(answer)).is_held_by(Passage(id="p", text=f"{before} {answer} {after}"))


@pytest.mark.parametrize("answer", ["", " \n", "-", "I don't know.", "Das weiß ich nicht.", "我不知道。"])
def test_no_answer_is_not_looked_for(answer: str) -> None:
    with pytest.raises(QuestionError, match="the answer is empty, or says that there is none") as caught:
        hold(question(answer, "I don't know what it is."))
    assert caught.value.code == "no_answer"


# ---- tiers


def test_word_for_word_nothing_else_is_asked() -> None:
    found = hold(question("27 days", "27 days.", "It has twenty-seven days.", "A 27 days' wait."))
    (held,) = found.claims
    assert held.holdings == {0: Holding("phrase", 1.0), 2: Holding("phrase", 1.0)}
    assert (found.phrases, found.words) == ({" 27 days "}, {"27", "days"})


def test_a_long_answer_that_stands_word_for_word_is_one_claim() -> None:
    answer = "Anton sings. Berta dances."
    found = hold(question(answer, "Anton sings.", f"They say: {answer}", question="What do they do?"))
    assert [held.claim.text for held in found.claims] == [answer]
    assert found.tails == [1]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("27 days", "Staff have twenty-seven days of leave."),
        ("one hour", "The token lasts 3,600 s."),
        ("May 14, 2023", "It opened on 14 May 2023."),
        ("May 2023", "It opened on May 14, 2023."),  # which is in May
        ("€1.5 million", "The fee is EUR 1,500,000 a year."),
        ("two certificates", "Bring your 2 certificates."),
        ("Bescheinigungen", "Eine Bescheinigung ist nötig."),
        ("二十天", "正式员工享有20天年假。"),
    ],
)
def test_numbers_dates_units_and_plurals_may_be_written_otherwise(answer: str, text: str) -> None:
    number, holding, words = only(question(answer, "Nobody knows 26 days, 13 June 2022 or 130 EUR.", text))
    assert (number, holding.match, holding.strength, words) == (1, "normalised", pytest.approx(SCATTERED), text)


ASKED = "Where was the composer of Zorilla born?"


@pytest.mark.parametrize(
    "answer",
    [
        "The composer of Zorilla was born in Ostrela.",
        "Based on the context, the answer is **Ostrela**.",
        "Ostrela is where the composer of Zorilla was born.",
    ],
)
def test_the_telling_part_of_a_sentence_is_what_the_question_does_not_say(answer: str) -> None:
    texts = "The composer of Zorilla was born.", "Anton Quill comes from Ostrela, he says."
    found = hold(question(answer, *texts, question=ASKED))
    assert (found.phrases, found.words) == ({" ostrela "}, {"ostrela"})
    assert only(question(answer, *texts, question=ASKED)) == (1, Holding("words", 1.0, (23, 30)), "Ostrela")


def test_words_count_by_rarity_and_less_in_the_sentence_beside_or_the_title() -> None:
    castle, ostrela = idf("castle"), idf("ostrela")
    for title, text in (("Ostrela", "It rains. The castle stands."), ("", "Ostrela is far. The castle stands.")):
        passages = [Passage(id="p", title=title, text=text)]
        _, holding, words = only(question("Ostrela Castle", passages=passages))
        near = max(castle + NEARBY * ostrela, ostrela + NEARBY * castle) if not title else castle + NEARBY * ostrela
        assert holding.match == "words"
        assert holding.strength == pytest.approx(SCATTERED * near / (castle + ostrela))
        assert words == ("The castle stands." if title else "Ostrela is far.")


def test_a_number_weighs_as_much_as_the_rarest_word() -> None:
    _, holding, _ = only(question("Twelve castles", "They own 12 huts."))
    assert holding.strength == pytest.approx(SCATTERED * VALUE / (VALUE + idf("castles")))


def test_a_little_is_chance_and_only_the_best_passages_are_kept() -> None:
    answer = "Ostrela, a small town of Brimlad"
    assert tails(question(answer, "A town.", "Ostrela of Brimlad, a small town.", "Ostrela, a town.")) == [1]
    with pytest.raises(QuestionError, match="nor what it says"):
        tails(question(answer, "A town."))
    many = hold(question(answer, *(f"Ostrela of Brimlad, {number}." for number in range(12)))).tails
    assert many == list(range(8))


def test_every_claim_has_its_own_passages() -> None:
    asked = question(
        "- red\n- green\n- Zimbelot", "It is green. Also red.", "So is Zimbelot.", question="What is there?"
    )
    found = hold(asked)
    assert [(held.claim.text, list(held.holdings)) for held in found.claims] == [
        ("red", [0]),
        ("green", [0]),
        ("Zimbelot", [1]),
    ]
    assert found.tails == [0, 1]
    assert found.words == {"red", "green", "zimbelot"}


def test_a_number_is_found_whatever_the_language_says_around_it() -> None:
    asked = question("Die Probezeit beträgt sechs Monate.", "Die Probezeit ist 6 Monate lang.", "Es regnet.")
    number, holding, words = only(asked.model_copy(update={"question": "Wie lange ist die Probezeit?"}))
    assert (number, words) == (0, "Die Probezeit ist 6 Monate lang.")
    assert holding.strength == pytest.approx(SCATTERED * VALUE / (VALUE + idf("betragt")))


def test_in_a_script_without_blanks_two_characters_count_together() -> None:
    texts = "秋天经常下雨。", "安东出生于布拉格城堡旁。", "城里拉近附近。"
    asked = question("作曲家出生于布拉格城堡附近。", *texts, question="佐里拉的作曲家出生在哪里?")
    number, holding, words = only(asked)
    assert (number, holding.match, words) == (1, "words", texts[1])
    assert holding.strength == pytest.approx(SCATTERED * 4 / 6)  # 布拉 拉格 格城 城堡, neither 堡附 nor 附近


def test_an_alias_may_be_written_otherwise_as_well() -> None:
    asked = question("four weeks", "It takes twenty-eight days.", "It rains.", answer_aliases=["28 days"])
    assert tails(asked) == [0]
    asked = question("Vexlor", "It rains.", "Quorvath takes twelve days.", answer_aliases=["12 days of Quorvath"])
    assert only(asked)[:1] == (1,)


def test_the_entity_of_the_answer_is_one_claim_of_the_passages_that_mention_it() -> None:
    passages = [Passage(id="p", text="TP53", mentions=[Mention(entity="gene:1", start=0, end=4)])]
    found = hold(question("I don't know", passages=passages, answer_entity="gene:1"))
    assert [held.holdings for held in found.claims] == [{0: Holding("phrase", 1.0)}]


# ---- meaning


def test_meaning_is_asked_where_words_do_not_show_a_claim() -> None:
    calls: list[tuple[list[str], list[str]]] = []

    def meaning(claims: Sequence[str], sentences: Sequence[str]) -> list[list[float]]:
        calls.append((list(claims), list(sentences)))
        return [[0.9 if "monsoon" in sentence else 0.5 for sentence in sentences] for _ in claims]

    texts = "A dry hill.", "It is far. The monsoon comes."
    number, holding, words = only(question("Heavy showers", *texts, question="What falls?"), meaning)
    assert (number, holding.match, words) == (1, "meaning", "The monsoon comes.")
    assert holding.strength == pytest.approx(0.6 * 0.9)  # likeness is worth less than words
    assert [sentences for _, sentences in calls] == [["A dry hill.", "It is far.", "The monsoon comes."]]
    assert only(question("The showers are heavy.", "Heavy are the showers."), meaning)[1].match != "meaning"
    assert len(calls) == 1
    with pytest.raises(QuestionError, match="no tail"):
        hold(question("Heavy showers", texts[0], question="What falls?"), meaning)


def test_of_very_many_sentences_those_are_compared_that_hold_most_of_the_question() -> None:
    compared: list[str] = []

    def meaning(claims: Sequence[str], sentences: Sequence[str]) -> list[list[float]]:
        compared.extend(sentences)
        return [[0.9 if "monsoon" in sentence else 0.5 for sentence in sentences] for _ in claims]

    texts = [f"Hill {number}. It is dry." for number in range(500)]
    texts[400] = "In Ostrela the monsoon comes."
    asked = question("Heavy showers", *texts, question="What falls in Ostrela?")
    assert only(asked, meaning)[:1] == (400,)
    assert len(compared) == 200


@pytest.mark.parametrize("answer", ["Es ist nicht weit von hier.", "倾盆大雨"])
def test_the_meaning_of_another_language_than_english_is_not_asked(answer: str) -> None:
    def meaning(claims: Sequence[str], sentences: Sequence[str]) -> list[list[float]]:
        raise AssertionError(claims)

    with pytest.raises(QuestionError, match="no tail"):
        hold(question(answer, "A dry hill.", question="What falls?"), meaning)


# ---- what is held


def test_the_best_holding_of_a_passage_is_its_strongest() -> None:
    claim = Claim("x", (), ())
    weak, strong = Holding("words", 0.4, (0, 3)), Holding("normalised", 0.8, (4, 7))
    found = Holdings([HeldClaim(claim, {0: weak, 2: weak}), HeldClaim(claim, {0: strong})])
    assert (found.best(0), found.best(1), found.best(2)) == (strong, None, weak)
    assert found.tails == [0, 2]


def test_spans_are_of_the_phrases_or_else_of_the_best_holding() -> None:
    view = PassageView(Passage(id="p", title="Ostrela", text="In Ostrela, at OSTRELA's gate."))
    holdings = {0: Holding("words", 0.5, (12, 14))}
    assert Holdings([HeldClaim(Claim("x", (), ()), holdings)], frozenset({" ostrela "})).spans(0, view) == [
        None,
        (3, 10),
        (15, 22),
    ]
    assert Holdings([HeldClaim(Claim("x", (), ()), holdings)], frozenset({" oslo "})).spans(0, view) == [(12, 14)]
    assert Holdings().spans(0, view) == []


# ---- the sentence that holds a claim


def sentences(asked: Question, meaning: Meaning | None = None) -> dict[str, list[str | None]]:
    """Return for each claim the sentences that hold it, passage by passage; None is a title."""
    views = [PassageView(passage) for passage in asked.passages]

    def texts(held: HeldClaim) -> Iterator[str | None]:
        for number in sorted(held.holdings):
            span = held.sentence(number, views[number])
            yield None if span is None else asked.passages[number].text[slice(*span)]

    return {held.claim.text: list(texts(held)) for held in AnswerMatcher(asked).hold(views, meaning).claims}


LEAVE = "Staff have thirty days of leave. It rains often. Requests go to Petra Novotna. The office is in Brimlad."
TABLE = """Our offices:

| Office | Lead | Desks |
|---|---|---|
| Ostrela | Petra Novotna | 30 |
| Brimlad | Yusuf Erdem | 45 |
"""
LIST = """Bring with you:
- your passport
- two certificates
- a photograph of Zimbelot"""


@pytest.mark.parametrize(
    ("asked", "answer", "text", "held"),
    [
        (
            "How much leave is there, and who grants it?",
            "You get 30 days. Petra Novotna grants it.",
            LEAVE,
            ["Staff have thirty days of leave.", "Requests go to Petra Novotna."],
        ),
        (
            "Who leads which office?",
            "- Yusuf Erdem leads Brimlad\n- Petra Novotna leads Ostrela",
            TABLE,
            ["| Brimlad | Yusuf Erdem | 45 |", "| Ostrela | Petra Novotna | 30 |"],
        ),
        (
            "What do I bring?",
            "1. A photograph\n2. 2 certificates\n3. Your passport",
            LIST,
            ["- a photograph of Zimbelot", "- two certificates", "- your passport"],
        ),
        (
            "Wie viel Urlaub gibt es, und wer genehmigt ihn?",
            "Es gibt 30 Tage. Petra Novotna genehmigt ihn.",
            "Anträge gehen an Petra Novotna, z. B. per Post. Alle haben dreißig Tage Urlaub.",
            ["Alle haben dreißig Tage Urlaub.", "Anträge gehen an Petra Novotna, z. B. per Post."],
        ),
        (
            "年假有几天?向谁申请?",
            "年假有二十天。请向诺沃特娜申请。",
            "申请交给诺沃特娜。办公室在城里。正式员工享有20天年假。",
            ["正式员工享有20天年假。", "申请交给诺沃特娜。"],
        ),
    ],
)
def test_claims_that_one_passage_holds_have_sentences_of_their_own(
    asked: str, answer: str, text: str, held: list[str]
) -> None:
    found = sentences(question(answer, "It snows.", text, question=asked))
    assert [one.strip() for of_claim in found.values() for one in of_claim if one] == held


@pytest.mark.parametrize(
    ("answer", "title", "text", "held"),
    [
        ("Ostrela", "", "It rains. He is from Ostrela. Ostrela is far.", "He is from Ostrela."),
        ("Ostrela", "Ostrela", "It rains.", None),
        ("Mr. Quill", "", "It rains. He met Mr. Quill there. It snows.", "He met Mr. Quill there."),
        ("Anton sings. Berta hums.", "", "See: Anton sings. Berta hums. All go.", "See: Anton sings. Berta hums."),
        ("!!!", "", "It rains. The band !!! plays.", "The band !!! plays."),
        ("!!!", "The band !!!", "It rains.", None),
    ],
)
def test_the_sentence_of_an_answer_that_stands_word_for_word(
    answer: str, title: str, text: str, held: str | None
) -> None:
    assert sentences(question(answer, passages=[Passage(id="p", title=title, text=text)])) == {answer: [held]}


def test_an_alias_has_its_sentence_as_the_answer_does() -> None:
    asked = question("Praha", "It rains. Prague lies there.", "PRAHA it is.", answer_aliases=["Prague"])
    assert sentences(asked) == {"Praha": ["Prague lies there.", "PRAHA it is."]}


def test_a_sentence_between_two_that_hold_something_holds_nothing_itself() -> None:
    found = sentences(question("Ostrela Castle", "It snows. Ostrela is far. It rains. The castle stands."))
    assert found == {"Ostrela Castle": ["Ostrela is far."]}


def test_what_only_the_title_holds_has_no_sentence() -> None:
    passages = [Passage(id="p", title="Ostrela", text="It rains. It snows.")]
    answer = "The composer of Zorilla was born in Ostrela, in a castle."
    (held,) = hold(question(answer, passages=passages, question=ASKED)).claims
    assert held.holdings[0].span is None
    assert held.sentence(0, PassageView(passages[0])) is None
    assert held.sentence(1, PassageView(passages[0])) is None  # which holds nothing


def test_the_sentence_that_means_a_claim_is_its_own() -> None:
    def meaning(claims: Sequence[str], texts: Sequence[str]) -> list[list[float]]:
        pairs = {"showers": "monsoon", "towers": "storey"}
        return [
            [0.9 if any(w in claim and pairs[w] in text for w in pairs) else 0.2 for text in texts] for claim in claims
        ]

    asked = question("- Heavy showers\n- Tall towers", "A fifth storey. The monsoon comes.", question="What is there?")
    assert sentences(asked, meaning) == {
        "Heavy showers": ["The monsoon comes."],
        "Tall towers": ["A fifth storey."],
    }


_WORDS = ["Ostrela", "castle", "Zimbelot", "27", "days", "布拉格", "Bescheinigung", "rains", "Mr."]


@given(
    st.lists(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6),
    st.sampled_from([". ", "\n- ", " |\n| ", "。", "!\n\n"]),
    st.lists(st.sampled_from(_WORDS[:-1]), min_size=1, max_size=3).map(" ".join),
    st.booleans(),
)
def test_a_claims_sentence_is_one_of_the_passage_and_holds_something_of_it(
    parts: list[str], joint: str, said: str, is_long: bool
) -> None:
    answer = f"They say that it was {said}, as far as one can see from this." if is_long else said
    asked = question(answer, joint.join(parts))
    view = PassageView(asked.passages[0])
    try:
        found = AnswerMatcher(asked).hold([view])
    except QuestionError:
        return
    for held in found.claims:
        for holding in held.holdings.values():
            span = held.sentence(0, view)
            assert span is not None
            start, end = span
            inside = [one for one in view.sentences if start <= one[0] and one[1] <= end]
            assert (start, end) == (inside[0][0], inside[-1][1])
            text = view.passage.text[start:end]
            if holding.match == "phrase":
                assert phrase(said) in Text(text).joined
            else:
                assert len(inside) == 1
                items = read_items(text)
                assert any(same(one, item) for one in read_items(held.claim.text) for item in items)


def test_so_much_text_is_read_for_its_meaning_whatever_is_asked() -> None:
    read: list[int] = []

    def meaning(claims: Sequence[str], sentences: Sequence[str]) -> list[list[float]]:
        read.append(sum(map(len, sentences)))
        return [[0.0] * len(sentences) for _ in claims]

    aliases = [f"Nothing of this, says number {n}." for n in range(1000)]
    asked = question("Wholly unsaid things.", *["A long row of words " * 100] * 100, answer_aliases=aliases)
    with pytest.raises(QuestionError):
        hold(asked, meaning)
    assert max(read) <= 24_000 and len(read) <= 50


def test_values_are_found_by_what_they_say_and_not_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[None] = []
    monkeypatch.setattr(values, "same", lambda one, two: compared.append(None) or same(one, two))
    numbers = [str(n) for n in range(1000, 3000)]
    asked = question(f"It was {', '.join(numbers[::40])}.", " ".join(numbers), " ".join(numbers[::-1]))
    assert tails(asked) == [0, 1]
    assert len(compared) < 1000
