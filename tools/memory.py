"""`exo recall | remember | rule | forget | why`: through the exod that runs, else on the files themselves."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.errors import AlreadyRunning, ExoError, ProtocolError, ServiceError
from exo.core.base.files import ProcessLock
from exo.core.base.home import Home, models_folder
from exo.core.base.unix import reachable
from exo.core.protocol.codec import sendable
from exo.core.retrieve.document import Embedder
from exo.tools.objects import json_object
from exo.tools.transcript import visible

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
WAIT = 30.0  # seconds to wait for another that forgets
READ = 20.0  # seconds that a recall may spend on embedding what is new


def recall(options: argparse.Namespace) -> int:
    """Search; with --stdin one question a line, in and out: one that fails is answered by its error."""
    failed = 0
    given = {"k": options.k, "at": options.at, "min_trust": options.min_trust}
    if not options.stdin and not options.query:
        do = "give one, or use --stdin"
        raise ExoError("recall", "there is no question", do, code="usage")
    with _memory(Home.find(options.home)) as ask:
        if not options.stdin:
            _show(ask("recall", {"query": options.query, **given}), options.json)
            return 0
        for line in filter(bytes.strip, sys.stdin.buffer):
            asked: dict[str, Any] = {}
            try:
                asked = json_object(line, "one JSON object a line is wanted")
                extra = {"at": asked["at"]} if asked.get("at") else {}
                found = ask("recall", {"query": asked.get("query", ""), **given, **extra})
            except ExoError as error:
                found, failed = {"error": str(error)}, 1
            answer = json.dumps({"id": asked.get("id"), **found}, ensure_ascii=False)
            print(sendable(answer), flush=True)
    return failed


def remember(options: argparse.Namespace) -> int:
    """Keep a sentence; its id on stdout."""
    args = {"text": options.text} | ({"supersedes": options.replaces} if options.replaces else {})
    return _kept("remember", args, options)


def rule(options: argparse.Namespace) -> int:
    """Keep a standing rule; its id on stdout."""
    return _kept("rule", {"text": options.text}, options)


def forget(options: argparse.Namespace) -> int:
    """Forget something for good."""
    home = Home.find(options.home)
    with _memory(home) as ask:
        gone = ask("forget", {"id": options.id})["forgotten"]
    if options.json:
        print(json.dumps({"forgotten": gone}))
    else:
        print(f"forgotten: {options.id} ({len(gone)} entries of the record)")
    return 0


def why(options: argparse.Namespace) -> int:
    """Where a belief comes from."""
    with _memory(Home.find(options.home)) as ask:
        found = ask("why", {"id": options.id})
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    print(visible(found["title"] or options.id))
    for each in found["evidence"]:
        when = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(each["ts"] / 1000))
        print(f"  {when}  {each['kind']:9} {each['id'][:12]}  {visible(each['text'])}")
    return 0


def _kept(verb: str, args: dict[str, Any], options: argparse.Namespace) -> int:
    with _memory(Home.find(options.home)) as ask:
        kept = ask(verb, args)
    print(json.dumps(kept, ensure_ascii=False) if options.json else kept["id"])
    return 0


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    if found["abstain"]:
        print("nothing is known about that", file=sys.stderr)
    for hit in found["hits"]:
        by = "+".join(hit["found_by"])
        print(f"{hit['score']:.2f}  {hit['id']}  [{by}, {hit['trust']}]  {visible(hit['title'])}")


@contextlib.contextmanager
def _memory(home: Home) -> Iterator[Ask]:
    """How to ask the memory of this home. Without exod this process holds its lock where it must: two
    that forget at once would take each other's rows for lost."""
    home.make()
    if reachable(home.exod_socket):
        client = Client(home.exod_socket, 600.0)

        def ask(verb: str, args: dict[str, Any]) -> dict[str, Any]:
            try:
                return dict(client.call("memory.query", verb=verb, args=args)["result"])
            except ProtocolError as error:
                raise ExoError(error.why or str(error)) from error

        yield ask
        return
    from exo.core.retrieve.memory import Memory

    memory = Memory(home, SystemClock(), embedder(home))
    try:

        def here(verb: str, args: dict[str, Any]) -> dict[str, Any]:
            if verb == "forget":
                return {"forgotten": _forget_here(memory, home, str(args["id"]))}
            if verb == "recall" and memory.embedder is not None:
                _read(memory)
            return memory.query(verb, args)

        yield here
    finally:
        memory.close()


def _forget_here(memory: Any, home: Home, id_: str) -> list[str]:
    from exo.core.engine.erase import erase
    from exo.core.engine.sessions import Sessions, open_database
    from exo.core.retrieve.forget import Needles
    from exo.core.retrieve.forget import forget as forget_all
    from exo.core.server.hub import Hub
    from exo.tools.tasks.table import Table

    lock = _locked(home)
    database = open_database(home.sessions_db)
    tasks = Table(home.state / "tasks.sqlite", SystemClock())
    try:
        hub = Hub(database, SystemClock(), sys.maxsize)
        outbox = Sessions(database, SystemClock()).outbox
        # what was said is in the record before it is asked what else says it
        while rows := outbox.rows():
            memory.write(rows)
            outbox.done(rows)
        tasks.take_over(home.sessions_db)

        def everywhere(needles: Needles) -> None:
            tasks.erase(needles)
            erase(database, hub, needles)

        gone: list[str] = forget_all(memory, home, id_, everywhere)
        return gone
    finally:
        tasks.close()
        database.close()
        lock.release()


def _locked(home: Home) -> ProcessLock:
    """The place of exod; waits while another forgets."""
    end = time.monotonic() + WAIT
    while True:
        try:
            return ProcessLock(home.lock_file("exod"), "exod")
        except AlreadyRunning:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _read(memory: Any) -> None:
    """Embed what is new, for a while; a model that fails leaves keywords."""
    memory.refresh()
    end, told = time.monotonic() + READ, 0.0
    try:
        while (left := memory.index.pending()) and time.monotonic() < end:
            if left > 256 and time.monotonic() - told > 1:
                told = time.monotonic()
                print(f"exo: reading what is new, {left} texts left", file=sys.stderr)
            memory.index.embed_some(memory.embedder, 64)
    except ExoError as error:
        print(f"exo: by keywords alone: {error}", file=sys.stderr)


def embedder(home: Home) -> Embedder | None:
    """The embedding model: that of the running exo-models, else loaded here, else none."""
    if reachable(home.models_socket):
        from exo.core.retrieve.embedder import SocketEmbedder

        return SocketEmbedder(home.models_socket)
    try:
        return LocalEmbedder()
    except (ImportError, ServiceError, ExoError):
        return None


class LocalEmbedder:
    """The embedding model in this process: a command needs no server for one question. Its name is that
    of the catalog, as exo-models says it, so that both use the same vectors."""

    def __init__(self) -> None:
        """Raises ModelMissing, ModelCorrupt, ImportError."""
        from exo.models.catalog import Catalog
        from exo.models.embed import Embedder as Model

        catalog = Catalog(models_folder())
        row = catalog.resolve("embedding")
        self.name = row.name
        if row.format != "onnx":
            raise ImportError(f"{row.name} is {row.format}")
        self._model = Model(catalog.require(row), row.file(".onnx"), row.window, 2)
        self.width = len(self._model.embed(["width"]).vectors[0])

    def embed(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed(texts).vectors
