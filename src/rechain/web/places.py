"""Where a passage stands: in which document of an index, on which stretch of its text."""

from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from rechain.schema import Passage
from rechain.text.passages import HEADINGS

_STEP = " › "
"""between a document and the headings above a passage, for people"""


class Place(BaseModel):
    """A stretch of a document's text."""

    model_config = ConfigDict(frozen=True)

    source: str
    """the document, by its name in the index"""
    start: int
    end: int
    page: int | None = None
    """of a PDF, from 1"""

    def path(self, title: str) -> str:
        """Return the document and the headings above a passage in one line; a title may be the document's own name."""
        headings = [] if title == PurePosixPath(self.source).stem else title.split(HEADINGS)
        return _STEP.join(part for part in (self.source, *headings) if part)

    @property
    def words(self) -> str:
        """The page, where it is known, and the characters, in words."""
        page = "" if self.page is None else f"page {self.page}, "
        return f"{page}characters {self.start:,}–{self.end:,}"


def place_of(passage: Passage) -> Place | None:
    """Return where a passage of an index stands in its document; None for one of a collection, which has no document.

    Rows of a collection may have fields of the same names that mean anything, so that all must fit together.
    """
    fields = passage.model_extra or {}
    source, start, end, page = (fields.get(name) for name in ("source", "start", "end", "page"))
    if not (isinstance(source, str) and type(start) is int and type(end) is int):
        return None
    if start < 0 or end - start != len(passage.text) or not passage.id.startswith(f"{source}#"):
        return None
    return Place(source=source, start=start, end=end, page=page if type(page) is int else None)
