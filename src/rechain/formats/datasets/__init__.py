"""Questions from files: one reader per format, recognised by itself, one question at a time."""

from rechain.formats.datasets.questions import Entry, read_entries, read_questions

__all__ = ["Entry", "read_entries", "read_questions"]
