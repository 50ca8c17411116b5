import os
from pathlib import Path

import pytest

from rechain.errors import RechainError
from rechain.formats.documents import Refusal, Source, find_sources


def write(path: Path, content: str = "Some text.") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def names(*sources: Path) -> list[str]:
    return [item.name for item in find_sources(sources) if isinstance(item, Source)]


def refusals(*sources: Path) -> dict[str, str]:
    return {item.name: item.message for item in find_sources(sources) if isinstance(item, Refusal)}


def test_files_of_a_folder_come_in_one_order_with_their_kinds(tmp_path: Path) -> None:
    for name in ("b.md", "a.TXT", "sub/c.html", "sub/d.pdf", "e.docx", "f.jsonl.gz", "README", "v1.2.md"):
        write(tmp_path / name)
    sources = [item for item in find_sources([tmp_path]) if isinstance(item, Source)]
    assert {source.name: source.kind for source in sources} == {
        "README": "text",
        "a.TXT": "text",
        "b.md": "markdown",
        "e.docx": "word",
        "f.jsonl.gz": "collection",
        "sub/c.html": "html",
        "sub/d.pdf": "pdf",
        "v1.2.md": "markdown",
    }
    assert [source.name for source in sources] == names(tmp_path)
    assert sources[0].size == len("Some text.") and sources[0].modified_ns > 0


def test_hidden_files_and_folders_are_left_out_without_a_word(tmp_path: Path) -> None:
    for name in (".git/config", ".env", "~$letter.docx", "a.txt"):
        write(tmp_path / name)
    assert [item.name for item in find_sources([tmp_path])] == ["a.txt"]


def test_other_kinds_of_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    for name in ("a.png", "old.doc"):
        write(tmp_path / name)
    messages = refusals(tmp_path)
    assert messages["a.png"].startswith("a.png ") and ".png" in messages["a.png"]
    assert "save it as .docx" in messages["old.doc"]


def test_a_file_named_by_itself_is_text_whatever_its_ending(tmp_path: Path) -> None:
    [source] = find_sources([write(tmp_path / "notes.xyz")])
    assert isinstance(source, Source) and (source.name, source.kind) == ("notes.xyz", "text")


def test_several_sources_are_told_apart_by_the_last_part_of_their_paths(tmp_path: Path) -> None:
    write(tmp_path / "one/docs/a.md")
    write(tmp_path / "two/docs/a.md")
    write(tmp_path / "docs.2/a.md")
    write(tmp_path / "c.txt")
    found = names(tmp_path / "one/docs", tmp_path / "docs.2", tmp_path / "two/docs", tmp_path / "c.txt")
    assert found == ["docs/a.md", "docs.2/a.md", "docs.3/a.md", "c.txt"]


def test_a_file_in_two_sources_is_found_once(tmp_path: Path) -> None:
    write(tmp_path / "docs/sub/a.md")
    assert names(tmp_path / "docs", tmp_path / "docs/sub") == ["docs/sub/a.md"]


def test_a_source_that_does_not_exist_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(RechainError, match=r"nowhere cannot be read: No such file or directory"):
        find_sources([tmp_path, tmp_path / "nowhere"])


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write(tmp_path / "docs/a.md")
    (tmp_path / "docs/again").symlink_to(tmp_path / "docs")
    (tmp_path / "docs/self").symlink_to("self")
    assert names(tmp_path / "docs") == ["a.md"]
    assert "leads nowhere" in refusals(tmp_path / "docs")["self"]


def test_a_link_out_of_its_source_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret.txt")
    write(tmp_path / "private/b.txt")
    write(tmp_path / "docs/a.md")
    (tmp_path / "docs/file.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "docs/folder").symlink_to(tmp_path / "private")
    assert names(tmp_path / "docs") == ["a.md"]
    assert set(refusals(tmp_path / "docs")) == {"file.txt", "folder"}


def test_a_link_to_a_hidden_file_of_its_source_is_followed_once(tmp_path: Path) -> None:
    hidden = write(tmp_path / "docs/.store/0a1b")
    (tmp_path / "docs/a.md").symlink_to(hidden)
    (tmp_path / "docs/b.md").symlink_to(hidden)
    [source] = find_sources([tmp_path / "docs"])
    assert isinstance(source, Source) and (source.name, source.kind, source.path) == ("a.md", "markdown", hidden)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    write(tmp_path / "closed/b.md")
    (tmp_path / "closed").chmod(0)
    try:
        assert names(tmp_path) == ["a.md"]
        assert "Permission denied" in refusals(tmp_path)["closed"]
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "no regular file" in refusals(tmp_path)["pipe.txt"]


def test_names_that_are_no_text_stay_apart(tmp_path: Path) -> None:
    for name in (b"a\xff.txt", b"a\xfe.txt", b"b\n.txt"):
        (tmp_path / os.fsdecode(name)).write_text("x")
    assert names(tmp_path) == ["a\ufffd.txt", "a\ufffd.txt.2", "b\ufffd.txt"]


def test_folders_nested_without_end(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 400)
    write(deep / "a.md")
    assert len(names(tmp_path)) == 1


def test_an_index_in_a_source_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    write(tmp_path / "index/index.json")
    write(tmp_path / "index/generation-3/engine/meta.json")
    write(tmp_path / "site/index.json")
    write(tmp_path / "site/generation/b.md")
    assert sorted(names(tmp_path)) == ["a.md", "site/generation/b.md", "site/index.json"]
    assert not refusals(tmp_path)
