import io

from rich.console import Console

from rechain.cli.display import show
from rechain.recoverer import Recoverer
from rechain.schema import Chain, Link, Question, Recovered


def shown(question: Question, model: Recoverer) -> str:
    console = Console(file=io.StringIO(), width=90, force_terminal=True, color_system="standard")
    show(question, model.recover(question), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_link_is_highlighted_in_both_passages_and_the_answer_in_the_last(bridge_question: Question) -> None:
    text = shown(bridge_question, Recoverer())
    assert text.count("\x1b[1;30;46mAnton Quillfeather\x1b[0m") == 1
    assert text.count("\x1b[1;3;30;46mAnton Quillfeather\x1b[0m") == 1  # the sentence with the answer is italic
    assert "\x1b[1;3;30;42mPrague\x1b[0m" in text
    assert text.index("1. Zorilla") < text.index("2. Anton Quillfeather")


def test_a_question_without_a_chain_says_why(bridge_question: Question) -> None:
    text = shown(bridge_question.model_copy(update={"answer": "Vienna"}), Recoverer())
    assert "no passage holds the answer 'Vienna'" in text


def test_brackets_in_titles_are_shown_as_they_are(bridge_question: Question) -> None:
    passages = [p.model_copy(update={"title": f"{p.title} [red]"}) for p in bridge_question.passages]
    assert "Zorilla [red]" in shown(bridge_question.model_copy(update={"passages": passages}), Recoverer())


def test_passages_side_by_side_have_no_link_between_them_and_the_verdict_is_told(bridge_question: Question) -> None:
    link = Link(entity="Prague", kind="name", weight=9.0, mentions=(None, None))
    chain = Chain(shape="parallel", passages=["city", "composer"], links=[link], score=1.0)
    console = Console(file=io.StringIO(), width=90)
    show(bridge_question, Recovered(id="q1", verdict="partly", chains=[chain]), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "partly supported" in text
    assert "↓" not in text
    assert text.index("1. Prague") < text.index("2. Anton Quillfeather")
