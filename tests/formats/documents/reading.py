"""What the tests of documents share: files written, found and read, and what holds of every extract."""

from pathlib import Path

from rechain.formats.documents import Extract, Refusal, Source, SplitSettings, find_sources, read_source


def sources_of(path: Path) -> list[Source]:
    return [item for item in find_sources([path]) if isinstance(item, Source)]


def read_one(path: Path, settings: SplitSettings | None = None) -> Extract | Refusal:
    [source] = sources_of(path)
    [outcome] = read_source(source, settings or SplitSettings())
    return outcome


def extract_of(path: Path, content: str | bytes, settings: SplitSettings | None = None) -> Extract:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    outcome = read_one(path, settings)
    assert isinstance(outcome, Extract), outcome
    check_extract(outcome)
    return outcome


def refusal_of(path: Path, content: str | bytes) -> Refusal:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    outcome = read_one(path)
    assert isinstance(outcome, Refusal), outcome
    check_refusal(outcome)
    return outcome


def check_refusal(refusal: Refusal) -> None:
    """The message is one sentence that begins with the name."""
    assert refusal.message.startswith(refusal.name) and refusal.message.endswith(".") and "\n" not in refusal.message


def check_extract(extract: Extract) -> None:
    """Every passage is a stretch of the text, in order, and none overlaps the next."""
    assert extract.text is not None and extract.passages
    end = 0
    for passage in extract.passages:
        fields = passage.model_extra or {}
        assert passage.text == extract.text[fields["start"] : fields["end"]]
        assert passage.text.strip() == passage.text != ""
        assert fields["start"] >= end
        end = fields["end"]
