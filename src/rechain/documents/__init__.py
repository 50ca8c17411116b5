"""Documents and collections: from the files of a folder to passages that know where they stand."""

from rechain.documents.reading import Extract, read_source
from rechain.documents.sources import Refusal, Source, find_sources
from rechain.documents.splitting import SplitSettings

__all__ = ["Extract", "Refusal", "Source", "SplitSettings", "find_sources", "read_source"]
