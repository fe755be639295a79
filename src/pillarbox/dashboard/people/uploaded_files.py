"""Forms with files (RFC 7578), read from octets that are all there already."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pillarbox.kernel.http.multipart import boundary_of

MOST_PARTS: Final = 20
MOST_HEADERS: Final = 20


class UploadedFile(NamedTuple):
    """A file of a form: the field, the name that the browser gave, and its octets."""

    field: str
    name: str
    data: bytes


class _UploadedParts:
    """Collects the parts of a form; raises ValueError where there are too many."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []
        self.files: list[UploadedFile] = []
        self._header = b""
        self._value = b""
        self._disposition = b""
        self._data: list[bytes] = []
        self._begun = self._headers = 0

    def part_begin(self) -> None:
        self._begun += 1
        if self._begun > MOST_PARTS:
            raise ValueError("too many parts")
        self._disposition, self._data, self._headers = b"", [], 0

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self._headers += 1
        if self._headers > MOST_HEADERS:
            raise ValueError("too many headers")
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def part_end(self) -> None:
        from python_multipart.multipart import parse_options_header

        _, options = parse_options_header(self._disposition)
        name, data = options.get(b"name", b"").decode(), b"".join(self._data)
        if b"filename" in options:
            file_name = options[b"filename"].decode("utf-8", "replace")
            self.files.append(UploadedFile(name, file_name, data))
        else:
            self.fields.append((name, data.decode()))


def parts_of(content_type: str, body: bytes) -> tuple[list[tuple[str, str]], list[UploadedFile]] | None:
    """Return fields and files of a multipart form; None where the body is none."""
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import MultipartParser

    boundary = boundary_of(content_type.encode("latin-1", "replace"))
    if boundary is None:
        return None
    parts = _UploadedParts()
    callbacks: Any = {
        "on_part_begin": parts.part_begin,
        "on_header_field": parts.header_field,
        "on_header_value": parts.header_value,
        "on_header_end": parts.header_end,
        "on_part_data": parts.part_data,
        "on_part_end": parts.part_end,
    }
    try:
        parser = MultipartParser(boundary, callbacks)
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError):
        return None
    return parts.fields, parts.files
