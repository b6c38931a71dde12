"""Stands in for micropython-lib's `logging`: as much of it as the panel uses."""

INFO = 20
_loggers = {}


class Formatter:
    def __init__(self, fmt):
        self.fmt = fmt


class StreamHandler:
    def __init__(self, stream):
        self.stream = stream

    def setFormatter(self, formatter):
        self.formatter = formatter


class Logger:
    def __init__(self, name):
        self.name, self.handlers = name, []

    def setLevel(self, level):
        self.level = level

    def addHandler(self, handler):
        self.handlers.append(handler)

    def _log(self, level, text, parts):
        row = {"levelname": level, "name": self.name, "message": text % parts if parts else text}
        for handler in self.handlers:
            handler.stream.write(handler.formatter.fmt % row + "\n")

    def info(self, text, *parts):
        self._log("INFO", text, parts)

    def warning(self, text, *parts):
        self._log("WARNING", text, parts)

    def error(self, text, *parts):
        self._log("ERROR", text, parts)


def getLogger(name):
    return _loggers.setdefault(name, Logger(name))
