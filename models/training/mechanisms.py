"""The questions that the shipped heads answer, with their answers in order. The core asks by these names."""

MECHANISMS = {
    "request.kind": (
        "question",
        "command",
        "note",
        "correction",
        "rule",
        "small_talk",
        "out_of_scope",
    ),
    "recall.depth": ("none", "some", "deep"),
    "said.correction": ("neither", "correction", "rule"),
    "action.riskier": ("no", "yes"),
    "turn.end": ("unfinished", "finished"),
}
