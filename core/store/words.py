"""What a sentence says of itself, by rules and not by a model: its kind, a title, when it applies; and when
two texts or two addresses are the same. English and German. Knows no file."""

from __future__ import annotations

import datetime
import hashlib
import re
import tomllib
import unicodedata
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from exo.core.retrieve.document import TRUST

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_WHEN = re.compile(_DATA["when"], re.I)


def trust_of(channel: str) -> str:
    """How far what came by `channel` (or from a source of an import) is trusted; unknown: untrusted."""
    return str(_DATA["channels"].get(channel, "untrusted"))


def worst(*trusts: str) -> str:
    """The least of them; a word that is no trust counts as untrusted."""
    return min((each if each in TRUST else TRUST[0] for each in trusts), key=TRUST.index)


def clean(text: str) -> str:
    """`text` as a file can hold it: no NUL, no lone surrogates, ends trimmed."""
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()


def one_line(text: str, most: int = 400) -> str:
    """`text` on one line without control characters, cut at a word."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[:most].rsplit(" ", 1)[0].rstrip(",;:") + "…"


def guess(text: str) -> dict[str, object]:
    """Fields of a node made of `text`: type, domain, title, summary, load_when."""
    line = one_line(text, 10_000)
    kind = next((kind for kind, rule in _DATA["kinds"] if re.search(rule, line, re.I)), "fact")
    title = re.split(r"(?<=[.!?])\s", line, maxsplit=1)[0].rstrip(".")
    when = _WHEN.match(line)
    return {
        **{"type": kind, "domain": _DATA["labels"][kind], "title": one_line(title, 70)},
        **{"summary": one_line(line, 200), "load_when": [when["when"]] if when else []},
    }


def norm(text: str) -> str:
    """The hash under which a text is found again: case, spaces and closing marks do not count."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!?… ")
    return hashlib.sha256(folded.encode("utf-8", "replace")).hexdigest()


def milliseconds(created: str) -> int:
    """ms UTC of an ISO time with its zone; 0 for anything else."""
    with suppress(ValueError, OverflowError):
        at = datetime.datetime.fromisoformat(created)
        return max(0, round(at.timestamp() * 1000)) if at.tzinfo else 0
    return 0


def same_url(url: str) -> str:
    """An address as it is compared: host small, no fragment, no trackers, no closing slash."""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return url.strip()
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [pair for pair in pairs if not re.match(r"utm_|fbclid$|gclid$", pair[0], re.I)]
    host = (parts.hostname or "") + port
    return urlunsplit(
        (parts.scheme.lower(), host, parts.path.rstrip("/"), urlencode(sorted(kept)), "")
    )
