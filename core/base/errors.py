"""The errors that a person can meet.

ExoError                       what failed, on what: why; what to do
├── HomeError                  a home folder or a file of it
│   ├── StorageError           a disk that is full, read-only or failing      (OSError)
│   └── AlreadyRunning         another process holds the home                 (OSError)
├── SettingError               a setting that does not exist or does not fit  (ValueError)
├── ServiceError               a process of ours that does not start or answer
├── ProtocolError              a command that was refused, with its typed code (ValueError)
├── ModelError                 a model that does not answer
│   ├── ModelMissing           its file is not here or is not whole           (FileNotFoundError)
│   ├── ContextOverflow        the request does not fit its window            (ValueError)
│   ├── ModelBusy              too many requests wait already
│   └── ModelGone              its server went away or broke off              (ConnectionError)
│       └── ModelSilent        it said nothing for too long
└── BoardError                 a panel, a button, a microphone, a speaker

A message reads: what failed, on what: why; what to do.
"""

from __future__ import annotations

import errno


class ExoError(Exception):
    """Base of all errors here. `code` is the stable word that clients compare."""

    code = "internal"

    def __init__(self, what: str, why: str = "", do: str = "", *, code: str = "") -> None:
        text = f"{what}: {why}" if why else what
        super().__init__(f"{text}; {do}" if do else text)
        self.what, self.why, self.do = what, why, do
        self.code = code or type(self).code


class HomeError(ExoError):
    code = "home"


class StorageError(HomeError, OSError):
    code = "storage"


class AlreadyRunning(HomeError, OSError):
    code = "already_running"


class SettingError(ExoError, ValueError):
    code = "bad_setting"


class ServiceError(ExoError):
    code = "service"


class ProtocolError(ExoError, ValueError):
    code = "bad_request"


class ModelError(ExoError):
    """`retryable` says whether the same request may succeed when it is sent again, `retry_after` in how
    many seconds (None: not said), `status` is the HTTP status (None: there was no answer)."""

    code = "model_error"
    retryable = False
    retry_after: float | None = None
    status: int | None = None


class ModelMissing(ModelError, FileNotFoundError):
    code = "model_missing"


class ContextOverflow(ModelError, ValueError):
    code = "context_overflow"


class ModelBusy(ModelError):
    code = "model_busy"
    retryable = True


class ModelGone(ModelError, ConnectionError):
    code = "model_gone"
    retryable = True


class ModelSilent(ModelGone):
    pass


class BoardError(ExoError):
    code = "board"


_STORAGE = {
    errno.ENOSPC: ("the disk is full", "free some space, then try again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, then try again"),
    errno.EROFS: ("the disk is read-only", "mount it writable, or set EXO_HOME to another folder"),
    errno.EACCES: ("no permission", "give this user the folder, or set EXO_HOME to another one"),
    errno.EPERM: ("no permission", "give this user the folder, or set EXO_HOME to another one"),
    errno.EIO: ("the disk reports an input/output error", "save what you can, change the card"),
}


def storage_error(what: str, error: OSError) -> StorageError:
    """Return the readable form of `error`, met while doing `what` (verb and path)."""
    why, do = _STORAGE.get(error.errno or 0, (error.strerror or str(error), "run `exo doctor`"))
    return StorageError(what, why, do)
