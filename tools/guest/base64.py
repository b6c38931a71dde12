"""Base64 (RFC 4648) for tools in the sandbox: the functions of CPython's module that tools use."""

from binascii import a2b_base64, b2a_base64, hexlify, unhexlify


def b64encode(data):
    return b2a_base64(data)[:-1]


def b64decode(text):
    return a2b_base64(text.encode() if isinstance(text, str) else text)


def urlsafe_b64encode(data):
    return b64encode(data).replace(b"+", b"-").replace(b"/", b"_")


def urlsafe_b64decode(text):
    raw = text.encode() if isinstance(text, str) else text
    return b64decode(raw.replace(b"-", b"+").replace(b"_", b"/"))


def b16encode(data):
    return hexlify(data).upper()


def b16decode(text):
    return unhexlify(text)
