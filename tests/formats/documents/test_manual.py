"""Manual pages."""

import gzip
from pathlib import Path

from tests.formats.documents.reading import extract_of, refusal_of

from rechain.formats.documents import SplitSettings

PAGE = r""".\" a comment
.TH PIER 1 "June 2001" "Harbour"
.SH NAME
pier \- land ships
.SH OPTIONS
.TP
\fB\-b\fR, \fB\-\-berth\fR=\fINUMBER\fR
Land at this berth.
.IP
It may be \(aqfree\(aq.
.TP
.B \-\-fast
Hurry. See
.BR crane (1).
.SH EXAMPLES
Land at the third:
.PP
.nf
pier \-b 3
  done
.fi
.TS
l l.
Code	Meaning
1	full
.TE
"""


def test_a_page_of_man(tmp_path: Path) -> None:
    extract = extract_of(tmp_path / "pier.1.gz", gzip.compress(PAGE.encode()))
    assert [passage.title for passage in extract.passages] == ["pier(1)"]
    assert extract.text == (
        "NAME\n\npier - land ships\n\nOptions\n\n-b, --berth=NUMBER\n  Land at this berth.\n\n  It may be 'free'.\n"
        "--fast\n  Hurry. See crane(1).\n\nExamples\n\nLand at the third:\n\npier -b 3\n  done\n\n"
        "Code | Meaning\n1 | full"
    )


def test_a_page_of_mdoc(tmp_path: Path) -> None:
    page = ".Dd June 2001\n.Dt PIER 1\n.Sh NAME\n.Nm pier\n.Nd land ships\n.Sh SYNOPSIS\n.Nm\n.Op Fl b Ar berth\n"
    extract = extract_of(tmp_path / "pier.1", f"{page}.Bl -tag\n.It Fl b\nSee\n.Xr crane 1 .\n.El\n")
    assert extract.text == ("NAME\n\npier - land ships\n\nSynopsis\n\npier [-b berth]\n\n  -b\n    See crane(1).")


def test_a_page_that_only_refers_to_another(tmp_path: Path) -> None:
    assert refusal_of(tmp_path / "quay.1", ".so man1/pier.1\n").message == "quay.1 only refers to man1/pier.1."


def test_a_text_with_such_a_name_is_plain(tmp_path: Path) -> None:
    assert extract_of(tmp_path / "notes.1", ". Not a page\nbut notes").text == ". Not a page\nbut notes"


def test_long_definitions_keep_their_term_in_the_title(tmp_path: Path) -> None:
    page = ".TH PIER 1\n.SH OPTIONS\n.TP\n.B \\-\\-fast\n" + "Ships land at high tide in the north of the bay.\n" * 20
    extract = extract_of(tmp_path / "pier.1", page, SplitSettings(passage_words=40))
    titles = [passage.title for passage in extract.passages]
    assert titles[0] == "PIER(1) > Options" and set(titles[1:]) == {"PIER(1) > Options > --fast"}


def test_hostile_pages_are_read_to_their_end(tmp_path: Path) -> None:
    for number, part in enumerate((".TP\n", ".RS\n", ".de x\n", "\\(", "\\*[", "x\\\n", ".Op Op Op\n", '.B "" "\n')):
        path = tmp_path / f"{number}.1"
        path.write_text(".TH A 1\n.SH B\nText.\n" + part * 100_000)
        assert extract_of(path, path.read_bytes()).passages[0].text.startswith("Text.")
