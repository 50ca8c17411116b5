"""Text for people: control characters in data are shown on a terminal, never executed by it."""

import re
import sys

# Control characters, which move the cursor, set a title or begin such a sequence (C0, DELETE, C1); characters that turn
# the direction of text around, so that it reads as something else (CVE-2021-42574); invisible separators of
# lines; halves of surrogate pairs, by which Python names files that are not UTF-8 and which cannot be printed.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE = re.compile(f"[{_UNSAFE}]")
_IN_A_TEXT = re.compile(f"(?![\n\t])[{_UNSAFE}]")
_PICTURES = 0x2400  # of control characters in Unicode: U+241B is that of ESCAPE
_DELETE, _SPACE = 0x7F, 0x20
_LONGEST = 2000
"""characters of a line for people; a name that it quotes may be a whole text"""


def printable(text: object, *, keep_lines: bool = False) -> str:
    """Return a text of the same length in which every control character is replaced by a picture.

    So are line ends and tabs, unless `keep_lines`: a name must not look like another line of output.
    """
    return (_IN_A_TEXT if keep_lines else _IN_A_LINE).sub(_picture, str(text))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == _DELETE:
        return "\u2421"
    return chr(_PICTURES + code) if code < _SPACE else "\ufffd"


def note(text: object) -> None:
    """Print a line for people on standard error; a very long line is shortened in the middle."""
    line, half = printable(text), _LONGEST // 2
    write_line(line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}")


def write_line(line: str) -> None:
    """Write a line to standard error at once, so that no other process or thread can write into it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def print_records(lines: str) -> None:
    """Print lines of JSON: exactly, but on a terminal with control characters as JSON escapes."""
    if sys.stdout.isatty():
        lines = _IN_A_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", lines)
    sys.stdout.write(lines)
