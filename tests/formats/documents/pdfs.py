"""A writer of small PDFs for tests: pages of lines, with a title and bookmarks."""

from collections.abc import Sequence

Bookmark = tuple[str, int]
"""words, and the number of the page from 0"""


CODE = "\t"
"""before a line: it is set in Courier"""


def make_pdf(pages: Sequence[Sequence[str]], title: str = "", bookmarks: Sequence[Bookmark] = ()) -> bytes:
    """Return a PDF of pages of lines in Latin-1."""
    first_page = 6
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(pages)))
    objects = {
        1: f"<< /Type /Catalog /Pages 2 0 R{' /Outlines 5 0 R' if bookmarks else ''} >>",
        2: f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        4: f"<< /Title ({title}) >>",
    }
    typewriter = first_page + 2 * len(pages)
    for number, lines in enumerate(pages):
        key = first_page + 2 * number
        resources = f"/Resources << /Font << /F1 3 0 R /F2 {typewriter} 0 R >> >>"
        objects[key] = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} /Contents {key + 1} 0 R >>"
        objects[key + 1] = stream(show(lines))
    objects[typewriter] = "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
    first_mark = typewriter + 1
    for number, (words, page) in enumerate(bookmarks):
        following = f" /Next {first_mark + number + 1} 0 R" if number + 1 < len(bookmarks) else ""
        target = f"/Dest [{first_page + 2 * page} 0 R /Fit]"
        objects[first_mark + number] = f"<< /Title ({words}) /Parent 5 0 R {target}{following} >>"
    last_mark = first_mark + len(bookmarks) - 1
    objects[5] = f"<< /Type /Outlines /First {first_mark} 0 R /Last {last_mark} 0 R >>" if bookmarks else "null"
    return assemble(objects)


def show(lines: Sequence[str]) -> str:
    """Return the content of a page: lines from its top to its bottom."""
    fonts = ("/F2 11 Tf" if line.startswith(CODE) else "/F1 11 Tf" for line in lines)
    escaped = (line.lstrip(CODE).replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in lines)
    return (
        "BT /F1 11 Tf 14 TL 50 750 Td "
        + " ".join(f"{font} ({line}) Tj T*" for font, line in zip(fonts, escaped, strict=True))
        + " ET"
    )


def stream(content: str, entries: str = "") -> str:
    return f"<< /Length {len(content.encode('latin-1'))} {entries} >>\nstream\n{content}\nendstream"


def assemble(objects: dict[int, str], trailer: str = "") -> bytes:
    """Return a file of numbered objects."""
    content, offsets = b"%PDF-1.5\n", {}
    for key in sorted(objects):
        offsets[key] = len(content)
        content += f"{key} 0 obj\n{objects[key]}\nendobj\n".encode("latin-1")
    start, size = len(content), max(objects) + 1
    rows = (f"{offsets.get(key, 0):010d} 00000 {'n' if key in offsets else 'f'} \n" for key in range(size))
    content += f"xref\n0 {size}\n{''.join(rows)}".encode()
    content += f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R {trailer} >>\n".encode()
    return content + f"startxref\n{start}\n%%EOF\n".encode()
