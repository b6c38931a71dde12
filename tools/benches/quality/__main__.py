"""`python -m exo.tools.benches.quality`: measures, and puts the figures into core/retrieve/QUALITY.md."""

from __future__ import annotations

import sys

from exo.tools.benches.quality import main

sys.exit(main())
