"""The labelling desk: two annotators at once, keys typed fast, saves that fail, files in and out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from rechain.evaluation.statistics import kappa_with_interval

pytestmark = pytest.mark.web

VALUES = {"y": "yes", "n": "no", "u": "unsure"}


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory, towns: Callable[..., list[Any]]) -> Path:
    path = tmp_path_factory.mktemp("questions") / "towns.jsonl"
    path.write_text("".join(question.model_dump_json(exclude_none=True) + "\n" for question in towns(4, traps=True)))
    return path


def asked_of(page: Page) -> str:
    return str(page.locator(".unit").first.get_attribute("data-question"))


def units_of(page: Page) -> list[tuple[str, str]]:
    units = page.locator(".unit").evaluate_all("all => all.map(({dataset: d}) => [d.question, d.passages, d.entities])")
    return [(name, _compact([json.loads(passages), json.loads(entities)])) for name, passages, entities in units]


def labels_of(served: Any, question: str, annotator: str) -> list[tuple[str, str]]:
    """Return what somebody said of which unit, in the order in which it was said."""
    found = served.get(f"/labels?question={question}")
    return [(_unit(one), one["value"]) for one in found if one["annotator"] == annotator and not one["settles"]]


def values_of(served: Any, question: str, annotator: str) -> list[str]:
    return [value for _, value in labels_of(served, question, annotator)]


def _unit(label: dict[str, Any]) -> str:
    return _compact([label["unit"]["passages"], label["unit"]["entities"]])


def _compact(parts: list[Any]) -> str:
    return json.dumps(parts, separators=(",", ":"))


def begin(visit: Any, keyboard: Any, served: Any, name: str, mode: str = "pairs", **options: Any) -> Page:
    page: Page = visit(served, "/label", **options)
    keyboard.start(page, name, mode)
    return page


def test_two_annotators_at_once_lose_nothing_and_see_how_far_they_agree(visit: Any, keyboard: Any, serve: Any) -> None:
    served = serve("--model", "lexical", "--overlap", "1")
    served.wait_for_chains()  # before, units come as the candidates do, and not to both alike
    pages = {name: begin(visit, keyboard, served, name, "chains") for name in ("Ada", "Ben")}
    units, question = units_of(pages["Ada"]), asked_of(pages["Ada"])
    assert units == units_of(pages["Ben"])
    typed = {"Ada": ("yn" * len(units))[: len(units)], "Ben": "nyn" + ("ny" * len(units))[: len(units) - 3]}
    differing = [unit for unit, one, two in zip(units, *typed.values(), strict=True) if one != two]
    for keys in zip(*typed.values(), strict=True):  # in turns, nobody waits until anything is saved
        for page, key in zip(pages.values(), keys, strict=True):
            page.keyboard.press(key)
    for page in pages.values():
        keyboard.saved(page, len(units))

    for name, keys in typed.items():
        given = [(unit, VALUES[key]) for (_, unit), key in zip(units, keys, strict=True)]
        assert labels_of(served, question, name) == given
    see_agreement(pages["Ada"], served, *typed.values())
    settle(pages["Ada"], served, question, differing)


def see_agreement(page: Page, served: Any, one: str, two: str) -> None:
    page.goto(f"{served.address}/label")
    cells = page.get_by_role("region", name="Agreement").locator("tbody tr").locator("th, td")
    kappa = kappa_with_interval(one, two, ["the question"] * len(one))
    assert kappa is not None and 0 < kappa.value < 1
    share = f"{100 * sum(map(str.__eq__, one, two)) / len(one):.0f} %"
    figures = [f"{kappa.value:.2f}", "too few questions for an interval"]
    expect(cells).to_have_text(["Ada, Ben", "chains", str(len(one)), share, *figures])


def settle(page: Page, served: Any, question: str, differing: list[tuple[str, str]]) -> None:
    count = len(differing)
    page.get_by_role("link", name=f"To settle, where annotators differ or are unsure: {count} of {count}").click()
    page.locator(".unit.current").wait_for()
    assert units_of(page) == differing
    expect(page.locator(".unit.current .said li")).to_have_text(["Ada: yes", "Ben: no"])

    page.keyboard.press("y")
    expect(page.get_by_role("status")).to_contain_text("Saved “yes”.")
    settled = [one for one in served.get(f"/labels?question={question}") if one["settles"]]
    assert [(_unit(one), one["value"]) for one in settled] == [(differing[0][1], "yes")]
    page.keyboard.press("z")
    expect(page.get_by_role("status")).to_contain_text("Undone.")
    assert not any(one["settles"] for one in served.get(f"/labels?question={question}"))

    page.keyboard.press("n")
    expect(page.get_by_text(f"{count - 1} of {count} wait to be settled.")).to_be_visible()
    page.reload()  # one that is settled stands apart, and is undone from here, too
    expect(page.get_by_text(f"{count - 1} of {count} wait to be settled.")).to_be_visible()
    expect(page.get_by_role("heading", name="Settled", exact=True)).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_text(f"{count} of {count} wait to be settled.")).to_be_visible()


@pytest.fixture(scope="module")
def served(serve: Any) -> Any:
    """The examples, all of which everybody gets."""
    return serve("--model", "lexical", "--overlap", "1")


def test_keys_move_change_and_take_back(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Mover")
    question, units = asked_of(page), units_of(page)
    keyboard.label(page, "yyy")
    page.keyboard.type("kkn")  # back to the second, and no
    expect(page.locator("#unit-2 [data-value=no]")).to_have_attribute("aria-pressed", "true")
    keyboard.saved(page, 3)
    assert dict(labels_of(served, question, "Mover"))[units[1][1]] == "no"
    page.keyboard.press("z")
    expect(page.locator("#unit-2 [data-value=yes]")).to_have_attribute("aria-pressed", "true")
    assert values_of(served, question, "Mover") == ["yes"] * 3
    page.keyboard.press("ArrowRight")
    expect(page.locator("#unit-3")).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("#unit-2")).to_be_focused()


def test_a_key_too_many_changes_nothing_and_enter_leads_on(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Hasty")
    question, units = asked_of(page), units_of(page)
    keyboard.label(page, "y" * len(units))
    expect(page.get_by_role("status")).to_contain_text("All that is needed is labelled: Enter for the next question.")
    page.keyboard.type("nn")
    page.keyboard.press("Enter")
    page.keyboard.type("nnn")  # to nobody or to the next question, but never to the one that was left
    expect(page.locator(".unit").first).not_to_have_attribute("data-question", question)
    assert values_of(served, question, "Hasty") == ["yes"] * len(units)


def test_a_question_with_nothing_to_label_lets_one_go_on(
    visit: Any, keyboard: Any, serve: Any, questions: Path, tmp_path: Path
) -> None:
    passages = [{"id": "only", "title": "Nothing", "text": "Nothing leads to anything."}]
    lonely = {"id": "lonely", "question": "What leads where?", "answer": "nowhere", "passages": passages}
    file = tmp_path / "questions.jsonl"
    file.write_text(questions.read_text() + json.dumps(lonely) + "\n")
    served = serve(file, "--model", "lexical")
    page = begin(visit, keyboard, served, "Ada")
    first = asked_of(page)
    for leave in (lambda: page.keyboard.press("Enter"), lambda: page.get_by_role("link", name="Next question").click()):
        page.goto(f"{served.address}/label/question?id=lonely")
        expect(page.get_by_text("there is nothing to label")).to_be_visible()
        leave()
        expect(page.locator(".unit").first).to_have_attribute("data-question", first)


_HIDDEN = """buttons => buttons.filter((button) => {
  const box = button.getBoundingClientRect();
  return !button.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}).length"""


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_the_buttons_of_what_is_asked_are_never_hidden(
    visit: Any, keyboard: Any, served: Any, size: tuple[int, int]
) -> None:
    viewport = {"width": size[0], "height": size[1]}
    page = begin(visit, keyboard, served, f"Looker {size[0]}", viewport=viewport)
    for number in range(2, 6):
        keyboard.label(page, "y")
        expect(page.locator(".unit.current")).to_have_attribute("id", f"unit-{number}")
        assert page.locator(".unit.current [data-value]").evaluate_all(_HIDDEN) == 0


def test_the_latest_label_is_undone_though_it_is_of_another_question(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Back")
    question, units = asked_of(page), units_of(page)
    keyboard.label(page, "y" * len(units))
    page.keyboard.press("Enter")
    expect(page.locator(".unit").first).not_to_have_attribute("data-question", question)
    keyboard.ready(page)
    page.keyboard.press("z")
    expect(page.locator(".unit").first).to_have_attribute("data-question", question)
    expect(page.get_by_role("status")).to_have_text(f"{len(units) - 1} of {len(units)} done.")


def test_a_save_that_fails_says_so_and_shows_no_label(visit: Any, keyboard: Any, serve: Any, tmp_path: Path) -> None:
    options = ("--model", "lexical", "--labels", tmp_path / "labels.sqlite")
    served = serve(*options)
    page = begin(visit, keyboard, served, "Ada")
    question = asked_of(page)
    keyboard.label(page, "y")
    served.kill()
    page.keyboard.press("y")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("Not saved: the server does not answer. Label it again.")
    expect(page.locator("#unit-2")).to_be_focused()  # it is the one to label again
    keyboard.saved(page, 1)
    expect(page.locator(".unit [aria-pressed=true]")).to_have_count(1)
    page.keyboard.press("s")
    page.keyboard.press("z")
    expect(alert).to_have_text("Not undone: the server does not answer.")
    assert asked_of(page) == question

    served = serve(*options, port=served.port)
    keyboard.label(page, "y")
    expect(alert).to_be_hidden()
    assert values_of(served, question, "Ada") == ["yes", "yes"]


def test_what_is_no_longer_needed_is_said_jumped_over_and_may_be_labelled(
    visit: Any, keyboard: Any, served: Any
) -> None:
    page = begin(visit, keyboard, served, "Thrifty")
    question, count = asked_of(page), len(units_of(page))
    unneeded, labelled = page.locator(".unit.unneeded"), 0
    while not unneeded.count():
        keyboard.label(page, "n")
        labelled += 1
    spared = unneeded.count()
    assert spared < count - labelled
    expect(unneeded.get_by_text("No longer needed: its chains are wrong already.")).to_have_count(spared)
    expect(page.get_by_role("status")).to_contain_text(f"{labelled} of {count} done, {spared} no longer needed.")
    page.keyboard.press("z")
    expect(unneeded).to_have_count(0)
    keyboard.label(page, "n")
    page.locator(".places .unneeded").first.click()
    page.locator(".unit.current").get_by_role("button", name="Yes").click()
    expect(unneeded).to_have_count(spared - 1)
    keyboard.saved(page, labelled + 1)  # what is said of a label that is saved would take the place of what follows
    left = count - labelled - spared
    page.locator(".unit.current").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"{left} left here; S skips this question for now.")
    assert asked_of(page) == question
    while page.locator(".unit.current").count():
        page.keyboard.press("n")
    expect(page.get_by_role("status")).to_contain_text("All that is needed is labelled")
    expect(page.locator(".unit.saving")).to_have_count(0)
    assert labelled < len(values_of(served, question, "Thrifty")) < count
    expect(page.get_by_role("link", name="Next question")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".unit").first).not_to_have_attribute("data-question", question)


def test_a_question_is_skipped_for_now_by_key_and_button(
    visit: Any, keyboard: Any, serve: Any, questions: Path
) -> None:
    page = begin(visit, keyboard, serve(questions, "--model", "lexical", "--overlap", "1"), "Ada")
    seen = [asked_of(page)]
    for leave in (lambda: page.keyboard.press("s"), lambda: page.get_by_role("button", name="Skip").click()) * 2:
        with page.expect_navigation():
            leave()
        keyboard.ready(page)
        seen.append(asked_of(page))
    assert seen == [f"town-{number}" for number in (0, 1, 2, 3, 0)]


def test_notes_go_with_labels_and_come_back(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Writer")
    question, note = asked_of(page), page.locator("#unit-1 textarea")
    note.focus()
    page.keyboard.type("you may say: yes, no")  # letters that are keys elsewhere
    page.keyboard.press("Enter")
    expect(page.locator("#unit-1")).to_be_focused()
    assert notes_of(served, question, "Writer") == []
    keyboard.label(page, "u")
    assert notes_of(served, question, "Writer") == [("unsure", "you may say: yes, no")]
    page.reload()
    keyboard.ready(page)
    expect(note).to_have_value("you may say: yes, no")
    page.keyboard.press("k")
    note.fill("no")
    page.keyboard.press("Enter")
    expect(page.locator(".unit.saving")).to_have_count(0)
    assert notes_of(served, question, "Writer") == [("unsure", "no")]


def notes_of(served: Any, question: str, annotator: str) -> list[tuple[str, str | None]]:
    found = served.get(f"/labels?question={question}")
    return [(one["value"], one["note"]) for one in found if one["annotator"] == annotator]


def test_what_one_is_unsure_of_is_looked_at_again(visit: Any, keyboard: Any, serve: Any, questions: Path) -> None:
    page = begin(visit, keyboard, serve(questions, "--model", "lexical"), "Ada")
    keyboard.label(page, "uy")
    page.goto(page.url.partition("/label")[0] + "/label/disagreements")
    keyboard.ready(page)
    for key, told in (("u", "1 of 1 wait to be settled."), ("z", "1 of 1 wait"), ("y", "0 of 1 wait to be settled.")):
        page.keyboard.press(key)
        expect(page.locator(".unit.saving")).to_have_count(0)
        expect(page.get_by_text(told)).to_be_visible()
        if key == "z":
            keyboard.ready(page)


@pytest.fixture
def medhop(real_data: Path) -> tuple[Path, Path]:
    """MedHop questions, and the labels that people gave to their pairs."""
    return real_data / "medhop" / "dev_5.json.gz", real_data / "medhop" / "interactions.jsonl"


def test_labels_of_medhop_come_in_and_go_out_in_the_browser(visit: Any, serve: Any, medhop: tuple[Path, Path]) -> None:
    questions, labelled = medhop
    page: Page = visit(serve(questions, "--model", "lexical"), "/label")
    page.locator("input[type=file]").set_input_files(labelled)
    form = page.locator("form.import")
    form.get_by_label("as").fill("the paper")
    form.get_by_role("button", name="Import", exact=True).click()
    expect(form.get_by_role("status")).to_contain_text("labels imported")
    page.reload()
    expect(page.get_by_role("region", name="Progress").get_by_role("rowheader")).to_have_text(["the paper"])
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export labelled pairs").click()
    known = {f"MH_dev_{number}" for number in range(5)}
    asked = {pair for pair in pairs_in(labelled) if pair[0] in known}
    assert len(asked) > 20
    assert pairs_in(Path(downloading.value.path())) == asked


def pairs_in(path: Path) -> set[tuple[Any, ...]]:
    rows = map(json.loads, path.read_text().splitlines())
    return {(row["id"], row["support"], frozenset((row["a"], row["b"])), row["interacts"]) for row in rows}


def test_a_file_that_is_not_json_is_refused_with_its_line(visit: Any, served: Any, tmp_path: Path) -> None:
    page, file = visit(served, "/label"), tmp_path / "broken.jsonl"
    file.write_text('{"id": "d01", "chains": []}\n<b>no</b>\n')
    page.locator("input[type=file]").set_input_files(file)
    page.locator("form.import").get_by_label("as").fill("Ada")
    page.keyboard.press("Enter")
    expect(page.locator("form.import").get_by_role("status")).to_have_text(
        "Not imported: line 2 is not JSON; nothing was imported."
    )
    assert labels_of(served, "d01", "Ada") == []


LONG = "The hall was rebuilt by hands unknown, and nobody wrote down why it had burnt. " * 60


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions: one of long passages, and one of 45 chains."""
    makers = [{"id": f"w{n}", "title": f"Work {n}", "text": f"Work {n} is by Anton Quill. {LONG}"} for n in range(45)]
    last = {"id": "quill", "title": "Anton Quill", "text": f"{LONG} Anton Quill was born in Prague."}
    asked = {"question": "Where was the maker of the works that nobody remembers born?", "answer": "Prague", "hops": 2}
    rows = [
        {"id": "long", **asked, "passages": [makers[0], last]},
        {"id": "wide", **asked, "passages": [*makers, last]},
    ]
    path = tmp_path_factory.mktemp("long") / "long.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def lengthy(serve: Any, long_texts: Path) -> Any:
    """A server with these."""
    return serve(long_texts, "--model", "lexical", "--overlap", "1")


def assert_in_sight(page: Page, *selectors: str) -> None:
    """Assert that elements are within the window, and that nothing covers them."""
    for selector in selectors:
        assert page.locator(selector).evaluate(_IN_SIGHT), selector


_IN_SIGHT = """one => {
  const box = one.getBoundingClientRect();
  const at = document.elementFromPoint(box.x + Math.min(box.width / 2, 40), box.y + box.height / 2);
  return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && one.contains(at);
}"""


_SCROLL = "() => { const before = scrollY; scrollBy(0, 300); return scrollY - before }"


@pytest.mark.parametrize("size", [(1280, 720), (360, 640), (2560, 1300)])
@pytest.mark.parametrize("mode", ["pairs", "chains"])
def test_question_answer_progress_and_buttons_stay_in_sight_however_long_the_text(
    visit: Any, keyboard: Any, lengthy: Any, size: tuple[int, int], mode: str
) -> None:
    name = f"Reader {mode} {size[0]}"
    page = begin(visit, keyboard, lengthy, name, mode, viewport={"width": size[0], "height": size[1]})
    always = (".in-sight h1", ".in-sight .answer-chip", ".progress [role=status]", ".unit.current [data-value=yes]")
    assert_in_sight(page, *always)  # as it loads
    page.locator(".unit.current .full").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert page.evaluate(_SCROLL) > 100
    assert_in_sight(page, *always)
    page.context.set_offline(True)
    page.keyboard.press("y")
    expect(page.get_by_role("alert")).to_have_text("Not saved: the server does not answer. Label it again.")
    assert_in_sight(page, ".in-sight .problem", *always)
    assert page.evaluate(_SCROLL) > 100
    assert_in_sight(page, ".in-sight .problem", *always)


def test_one_unit_is_shown_at_a_time_and_numbers_lead_to_the_others(visit: Any, keyboard: Any, lengthy: Any) -> None:
    page = begin(visit, keyboard, lengthy, "One", "chains")
    page.goto(f"{lengthy.address}/label/question?id=wide&mode=chains")
    keyboard.ready(page)
    shown = page.locator(".unit:visible")
    expect(shown).to_have_count(1)
    page.locator(".places button").nth(4).click()
    expect(shown).to_have_count(1)
    expect(shown).to_have_attribute("id", "unit-5")
    keyboard.label(page, "n")
    expect(page.locator(".places button").nth(4)).to_have_text("5: no")
    expect(shown).to_have_attribute("id", "unit-6")


def test_units_come_in_pages_by_keyboard_alone(visit: Any, keyboard: Any, lengthy: Any) -> None:
    page = begin(visit, keyboard, lengthy, "Paged", "chains")
    page.goto(f"{lengthy.address}/label/question?id=wide&mode=chains")
    keyboard.ready(page)
    for done, count in ((20, 20), (40, 20), (45, 5)):
        expect(page.locator(".unit")).to_have_count(count)
        keyboard.label(page, "n" * count)
        expect(page.get_by_role("status")).to_contain_text(f"{done} of 45 done.")
        expect(page.get_by_role("status")).to_contain_text("next page" if done < 45 else "next question")
        with page.expect_navigation():
            page.keyboard.press("Enter")
    assert len(values_of(lengthy, "wide", "Paged")) == 45
    assert asked_of(page) == "long"


def test_nothing_is_labelled_behind_the_help_or_while_keys_are_off(visit: Any, keyboard: Any, lengthy: Any) -> None:
    page = begin(visit, keyboard, lengthy, "Hal")
    question = asked_of(page)
    page.keyboard.press("?")
    page.keyboard.press("y")
    page.get_by_role("dialog").get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.reload()
    page.keyboard.press("u")
    page.locator(".unit.current [data-value=yes]").click()
    keyboard.saved(page, 1)
    assert values_of(lengthy, question, "Hal") == ["yes"]
