"""Results of what people tried are kept, the latest of them."""

from rechain.recovery import Recoverer
from rechain.schema import Question
from rechain.web.forms import PastedQuestion
from rechain.web.results import Result, Results


def result(answer: str) -> Result:
    form = PastedQuestion(question="Where?", answer=answer, passages="In Prague.")
    content = form.entry().content
    assert isinstance(content, Question)
    return Result(form, content, frozenset({"0"}), Recoverer("lexical").recover(content))


def test_a_result_is_given_back_as_it_was() -> None:
    results, kept = Results(), result("Prague")
    key = results.add(kept)
    assert results.get(key) == kept
    assert (len(key), results.get("other")) == (22, None)
    assert results.add(kept) == key
    results.close()


def test_the_oldest_make_room() -> None:
    results = Results(most=3)
    keys = [results.add(result(str(number))) for number in range(5)]
    assert [results.get(key) is not None for key in keys] == [False, False, True, True, True]
    results.add(result("2"))  # asked again, so it is not the oldest any more
    results.add(result("5"))
    assert [results.get(key) is not None for key in keys] == [False, False, True, False, True]
    results.close()


def test_all_together_are_of_bounded_size() -> None:
    one = result("Prague")
    size = sum(len(part.model_dump_json()) for part in (one.form, one.question, one.recovered))
    results = Results(most_bytes=3 * size)
    keys = [results.add(result(f"Prague {number}")) for number in range(6)]
    kept = [results.get(key) is not None for key in keys]
    assert kept[-1] and not kept[0]
    assert 1 <= sum(kept) <= 3
    results.close()
