"""The labelling desk: evidence picked by few keys, two annotators, saves that fail, files in and out."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web


def labels_of(served: Any, question: str, annotator: str) -> list[tuple[str, str, list[str]]]:
    """Return what somebody said of an answer: the verdict, the shape of the evidence, and its passages."""
    found = [one for one in served.get(f"/labels?question={question}") if one["annotator"] == annotator]
    chains = [one["evidence"][0] if one["evidence"] else {"shape": "", "passages": []} for one in found]
    return [(one["value"], chain["shape"], chain["passages"]) for one, chain in zip(found, chains, strict=True)]


def begin(visit: Any, keyboard: Any, served: Any, name: str, question: str = "d01", **options: Any) -> Page:
    page: Page = visit(served, "/label", **options)
    keyboard.start(page, name)
    page.goto(f"{served.address}/label/question?id={question}")
    keyboard.ready(page)
    return page


@pytest.fixture(scope="module")
def served(serve: Any) -> Any:
    """The examples, all of which everybody gets."""
    return serve("--model", "lexical", "--overlap", "1")


@pytest.mark.parametrize(
    ("keys", "label"),
    [
        ("46s", ("supported", "chain", ["p4", "p6"])),  # a bridge
        ("46bs", ("supported", "parallel", ["p4", "p6"])),  # a comparison
        ("1246bb" + "p", ("partly", "graph", ["p1", "p2", "p4", "p6"])),
        ("3s", ("supported", "single", ["p3"])),
        ("nu", ("unsupported", "", [])),
        ("44c", ("unsure", "", [])),
    ],
)
def test_a_few_keys_label_an_answer_of_any_shape(
    visit: Any, keyboard: Any, served: Any, keys: str, label: tuple[str, str, list[str]]
) -> None:
    name = f"Keys {keys}"
    page = begin(visit, keyboard, served, name)
    keyboard.label(page, keys)
    keyboard.ready(page, "d02")
    verdict, shape, passages = label
    expected = verdict, shape, sorted(passages) if shape in ("parallel", "graph") else passages
    assert labels_of(served, "d01", name) == [expected]
    assert len(keys) <= (7 if shape == "graph" else 6)
    page.goto(f"{served.address}/label/question?id=d01")
    keyboard.ready(page)
    assert page.locator(".pick[aria-pressed=true]").count() == len(passages)


def test_a_verdict_of_support_needs_passages(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Hasty")
    page.keyboard.type("ns")
    expect(page.get_by_role("alert")).to_have_text("Pick the passages first, or choose another verdict.")
    assert labels_of(served, "d01", "Hasty") == []


def test_two_annotators_differ_and_a_third_resolves_it(visit: Any, keyboard: Any, served: Any) -> None:
    for name, keys in (("Ada", "46s"), ("Ben", "nu")):
        keyboard.label(begin(visit, keyboard, served, name, "d03"), keys)
    page = begin(visit, keyboard, served, "Eve", "d04")
    page.goto(f"{served.address}/label/disagreements")
    unit = page.locator(".unit").filter(has_text="Ada: supported").filter(has_text="Ben: unsupported no passage").last
    unit.locator("li").filter(has_text="Ben").get_by_role("button", name="Accept").click()
    expect(page.get_by_text("Resolved by Eve: unsupported").last).to_be_visible()
    page.goto(f"{served.address}/label")
    row = page.get_by_role("region", name="Progress").get_by_role("row").filter(has_text="Eve")
    expect(row.locator("td")).to_have_text([*"0000001", "0", "0"])  # verdicts, yes, no, resolved


def test_the_latest_label_is_undone_though_it_is_of_another_question(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Undo", "d05")
    keyboard.label(page, "1s")
    keyboard.ready(page, "d06")
    with page.expect_navigation():
        page.keyboard.press("z")
    keyboard.ready(page, "d05")
    assert labels_of(served, "d05", "Undo") == []
    page.keyboard.press("z")
    expect(page.get_by_role("alert")).to_have_text("Not undone: there is no label to undo.")


def test_a_save_that_fails_says_so_and_keeps_what_was_picked(
    visit: Any, keyboard: Any, serve: Any, tmp_path: Path
) -> None:
    options = ("--model", "lexical", "--labels", tmp_path / "labels.sqlite")
    served = serve(*options)
    page = begin(visit, keyboard, served, "Ada")
    served.kill()
    page.keyboard.type("46s")
    expect(page.get_by_role("alert")).to_have_text("Not saved: the server does not answer.")
    served = serve(*options, port=served.port)
    keyboard.label(page, "s")
    assert labels_of(served, "d01", "Ada") == [("supported", "chain", ["p4", "p6"])]


def test_a_note_goes_with_the_label_and_keys_typed_in_it_do_nothing(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Noter", "d07")
    page.get_by_label("Note").fill("")
    page.get_by_label("Note").press_sequentially("such nuns")
    page.locator("[data-value=unsupported]").click()
    keyboard.ready(page, "d08")
    (label,) = [one for one in served.get("/labels?question=d07") if one["annotator"] == "Noter"]
    assert (label["value"], label["note"]) == ("unsupported", "such nuns")


def test_nothing_is_labelled_behind_the_help_or_while_keys_are_off(visit: Any, keyboard: Any, served: Any) -> None:
    page = begin(visit, keyboard, served, "Hal", "d08")
    page.keyboard.press("?")
    page.keyboard.press("u")
    page.get_by_role("dialog").get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.type("1u")
    page.reload()
    keyboard.ready(page)
    page.keyboard.press("u")
    assert labels_of(served, "d08", "Hal") == []
    page.locator("[data-value=unsupported]").click()
    keyboard.ready(page, "d09")
    assert labels_of(served, "d08", "Hal") == [("unsupported", "", [])]


@pytest.fixture
def medhop(real_data: Path) -> tuple[Path, Path]:
    """MedHop questions, and the labels that people gave to their pairs."""
    return real_data / "medhop" / "dev_5.json.gz", real_data / "medhop" / "interactions.jsonl"


def test_labels_of_medhop_come_in_and_go_out_in_the_browser(
    visit: Any, keyboard: Any, serve: Any, medhop: tuple[Path, Path]
) -> None:
    questions, labelled = medhop
    served = serve(questions, "--model", "lexical")
    page: Page = visit(served, "/label")
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
    page.locator("input[name=annotator]").first.fill("Expert")
    page.get_by_label("What you label").select_option("pairs")
    page.get_by_role("button", name="Start labelling").click()
    keyboard.ready(page)
    heading = page.get_by_role("heading", level=2).first.inner_text()
    assert heading.startswith("Does this passage")
    keyboard.label(page, "n")
    keyboard.ready(page)
    assert page.get_by_role("heading", level=2).first.inner_text() != heading


def pairs_in(path: Path) -> set[tuple[Any, ...]]:
    rows = map(json.loads, path.read_text().splitlines())
    return {(row["id"], row["support"], frozenset((row["a"], row["b"])), row["interacts"]) for row in rows}


def test_a_file_that_is_not_json_is_refused_with_its_line(visit: Any, served: Any, tmp_path: Path) -> None:
    page, file = visit(served, "/label"), tmp_path / "broken.jsonl"
    file.write_text('{"id": "d01", "chains": []}\n<b>no</b>\n')
    page.locator("input[type=file]").set_input_files(file)
    page.locator("form.import").get_by_label("as").fill("Broken")
    page.keyboard.press("Enter")
    expect(page.locator("form.import").get_by_role("status")).to_have_text(
        "Not imported: line 2 is not JSON; nothing was imported."
    )
    assert labels_of(served, "d01", "Broken") == []
