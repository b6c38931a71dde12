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
        "chat",
    ),
    "recall.depth": ("none", "shallow", "deep"),
    "said.correction": ("none", "correction", "rule"),
    "action.riskier": ("no", "yes"),
    "turn.end": ("unfinished", "finished"),
}
