"""Whether the sidecar of an output file says what is true, found without the package's own reader."""

import hashlib
import json
from pathlib import Path


def check_sidecar(out: Path, is_finished: bool) -> list[str]:
    """Return what is wrong with the sidecar of an output file; of a killed run, its last line may be half."""
    content = out.read_bytes() if out.exists() else b""
    if not content:
        return []
    sidecar = out.with_name(f"{out.name}.provenance")
    if not sidecar.exists():
        return [f"{out.name} has no sidecar"]
    lines = sidecar.read_bytes().split(b"\n")[:-1]
    seal = ""
    for number, line in enumerate(lines, start=1):
        text, _, end = line.rpartition(b',"seal":"')
        seal = hashlib.sha256(seal.encode() + text + b"}").hexdigest()
        if end != seal.encode() + b'"}':
            return [f"line {number} of the sidecar is not sealed"]
    return _check_facts(content, [json.loads(line) for line in lines], is_finished)


def _check_facts(content: bytes, facts: list[dict[str, object]], is_finished: bool) -> list[str]:
    """Compare a sidecar with its output: the digest at every checkpoint and, in the end, that of the whole."""
    digest, end = hashlib.sha256(), 0
    for fact in facts:
        if "records" in fact:
            start, end = end, int(str(fact["size"]))
            digest.update(content[start:end])
            if end > len(content) or digest.hexdigest() != fact["sha256"]:
                return [f"the sidecar does not fit the first {end} bytes of {len(content)}"]
    if not is_finished:
        return []
    whole = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    last = facts[-1].get("output") if facts else None
    if not isinstance(last, dict) or "ended" not in facts[-1] or {name: last[name] for name in whole} != whole:
        return ["the sidecar of a finished file does not end with its digest"]
    is_cut = b'"bad_json"' in content.splitlines()[-1]  # perhaps half a record, whose chunk has no checkpoint yet
    return [] if is_cut or end in (0, len(content)) else [f"the last checkpoint is at byte {end} of {len(content)}"]
