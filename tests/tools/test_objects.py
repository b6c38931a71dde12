"""JSON objects that are handed to commands: one reader, and what it refuses."""

import pytest
from exo.core.base.errors import ExoError
from exo.tools.objects import json_object


@pytest.mark.parametrize("text", ['{"a": "ä"}', '{"a": "ä"}\n'.encode()])
def test_an_object_is_read(text: str | bytes) -> None:
    assert json_object(text, "an object") == {"a": "ä"}


@pytest.mark.parametrize("text", ["", "{", b"\xff{}", "[" * 100_000, "1" * 10_000, "[]", "null"])
def test_anything_else_is_told_with_where_it_stands_and_what_is_wanted(text: str | bytes) -> None:
    with pytest.raises(ExoError, match=r"^read --with: .*an object is wanted$"):
        json_object(text, "an object is wanted", "--with")
    with pytest.raises(ExoError) as found:
        json_object(text, "an object is wanted")
    assert len(found.value.what) < 100
