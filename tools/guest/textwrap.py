"""Textwrap for tools in the sandbox: lines of words, cut where a word is too long."""


def wrap(text, width=70, initial_indent="", subsequent_indent=""):
    lines, line, indent = [], "", initial_indent
    for word in text.split():
        while word:
            room = width - len(indent)
            if line and len(line) + 1 + len(word) <= room:
                line, word = line + " " + word, ""
            elif line:
                if len(word) > width - len(subsequent_indent):  # a part of it fits on this line
                    free = room - len(line) - 1
                    if free > 0:
                        line, word = line + " " + word[:free], word[free:]
                lines.append(indent + line)
                line, indent = "", subsequent_indent
            elif len(word) > room:
                lines.append(indent + word[:room])
                word, indent = word[room:], subsequent_indent
            else:
                line, word = word, ""
    if line:
        lines.append(indent + line)
    return lines


def fill(text, width=70, **more):
    return "\n".join(wrap(text, width, **more))


def shorten(text, width, placeholder=" [...]"):
    words = text.split()
    whole = " ".join(words)
    if len(whole) <= width:
        return whole
    while words and len(" ".join(words) + placeholder) > width:
        words.pop()
    return " ".join(words) + placeholder if words else placeholder.lstrip()


def indent(text, prefix, predicate=None):
    test = predicate or (lambda line: line.strip())
    return "".join((prefix + line) if test(line) else line for line in _lines(text))


def dedent(text):
    lines = text.split("\n")
    told = [line for line in lines if line.strip()]
    margin = None
    for line in told:
        here = line[: len(line) - len(line.lstrip(" \t"))]
        if margin is None:
            margin = here
        while not here.startswith(margin):
            margin = margin[:-1]
    size = len(margin or "")
    return "\n".join(line[size:] if line.strip() else "" for line in lines)


def _lines(text):
    rows = text.split("\n")
    made = [row + "\n" for row in rows[:-1]]
    return made + ([rows[-1]] if rows[-1] else [])
