"""A new export is one module and one line in EXPORTS, and one in the help."""

import subprocess
import sys

from rechain.cli.export import _MEANINGS
from rechain.formats.exports import EXPORTS


def test_the_help_lists_every_export() -> None:
    assert list(_MEANINGS) == list(EXPORTS)


def test_the_help_loads_no_export() -> None:
    code = "import sys, rechain.cli.main; print([name for name in sys.modules if '.exports' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
