"""What is looked for does not depend on the process that looks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index

PROGRAM = """
import sys; from pathlib import Path
from exo.core.retrieve.candidates import Question
from exo.core.retrieve.index import Index
print(Question(Index(Path(sys.argv[1])), "abcde").expression())
"""


def test_near_words_are_the_same_in_every_process(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    index = Index(path)
    words = ("abcdx", "abcxe", "abxde", "axcde", "bacde", "bbcde")
    index.put(Document(id=word, kind="item", title=word) for word in words)
    index.close()
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 7)
    }
    assert len(found) == 1 and "abc" in found.pop()
