"""The list of exports. A new one is a module that ends with its EXPORT, and one line here."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rechain.exports.joining import FileExport, LineExport

# What `rechain export --help` says; a module is loaded when it is chosen, as the help should come at once.
EXPORTS = {
    "hotpotqa": "predictions for HotpotQA's evaluation",
    "triplets": "training data of sentence-transformers",
    "paths": "training data of Beam Retriever, as MuSiQue has it",
    "mdr": "training data of MDR",
    "parquet": "a table of all chains",
}


def load_export(name: str) -> "LineExport | FileExport":
    """Return the export of a name, from the module of that name in this package."""
    export: LineExport | FileExport = import_module(f"rechain.exports.{name}").EXPORT
    return export
