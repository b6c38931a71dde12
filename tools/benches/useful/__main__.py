"""`python -m exo.tools.benches.useful [PART]`: measures; without a part it writes REPORT.md; `near`: the lines that are near alone."""

from __future__ import annotations

import sys

from exo.tools.benches.useful import main

sys.exit(main(sys.argv[1:]))
