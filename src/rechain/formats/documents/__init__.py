"""Documents and collections: from the files of a folder to passages that know where they stand."""

from rechain.formats.documents.read import Extract, read_source, repeat_key
from rechain.formats.documents.source_files import Refusal, Source, find_sources
from rechain.formats.documents.splitting import SplitSettings

__all__ = ["Extract", "Refusal", "Source", "SplitSettings", "find_sources", "read_source", "repeat_key"]
