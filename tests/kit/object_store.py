"""An S3 store over real HTTP, as much of it as a blob store uses: objects, ranges, listing and multipart
uploads."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class ObjectStore:
    """Buckets in memory. `silent` makes it take requests and answer none of them; `tls` makes it HTTPS."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.buckets: dict[str, dict[str, bytes]] = {"mail": {}}
        self.silent = False
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.released = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def environment(self) -> Mapping[str, str]:
        """What leads a process to this store."""
        return {
            "AWS_ENDPOINT_URL": f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ALLOW_INVALID_CERTIFICATES": "true",
            "AWS_ACCESS_KEY_ID": "harbor",
            "AWS_SECRET_ACCESS_KEY": "berth-twelve",
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        """Listen; after a stop on the same port."""
        handler = type("Handler", (_Handler,), {"store": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    store: ObjectStore

    def log_message(self, *_: Any) -> None:
        return

    def _split(self) -> tuple[dict[str, bytes] | None, str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        return self.store.buckets.get(bucket), key, parse_qs(parts.query, keep_blank_values=True)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        if self.store.silent:
            self.store.released.wait(60)
            self.close_connection = True
            return
        if self.store._server is None:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self, code: str) -> None:
        self._answer(404, f"<Error><Code>{code}</Code><Message>none</Message></Error>".encode())

    def do_GET(self) -> None:
        bucket, key, query = self._split()
        if bucket is None:
            self._missing("NoSuchBucket")
        elif "list-type" in query:
            self._list(bucket, query.get("prefix", [""])[0])
        elif key not in bucket:
            self._missing("NoSuchKey")
        else:
            self._send(bucket[key])

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, data: bytes) -> None:
        headers = {
            "ETag": f'"{hashlib.md5(data).hexdigest()}"',
            "Last_Modified": format_datetime(datetime.now(UTC), usegmt=True),
        }
        wanted = self.headers.get("Range")
        if wanted is None:
            self._answer(200, data, **headers)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last) + 1 if last else len(data), len(data))
        if start >= len(data):
            self._answer(416, b"")
            return
        self._answer(206, data[start:end], Content_Range=f"bytes {start}-{end - 1}/{len(data)}", **headers)

    def _list(self, bucket: dict[str, bytes], prefix: str) -> None:
        at = "2020-01-01T00:00:00.000Z"
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{at}</LastModified><ETag>&quot;1&quot;</ETag>"
            f"<Size>{len(data)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for key, data in sorted(bucket.items())
            if key.startswith(prefix)
        )
        self._answer(
            200,
            (
                f'<ListBucketResult xmlns="{NAMESPACE}"><IsTruncated>false</IsTruncated>'
                f"{found}</ListBucketResult>"
            ).encode(),
        )

    def do_PUT(self) -> None:
        data = self._body()
        bucket, key, query = self._split()
        if bucket is None:
            self._missing("NoSuchBucket")
            return
        if "uploadId" in query:
            self.store.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = data
        else:
            bucket[key] = data
        self._answer(200, ETag=f'"{hashlib.md5(data).hexdigest()}"')

    def do_POST(self) -> None:
        self._body()
        bucket, key, query = self._split()
        if bucket is None:
            self._missing("NoSuchBucket")
            return
        if "uploads" in query:
            upload = str(len(self.store.uploads) + 1)
            self.store.uploads[upload] = {}
            tag, content = "InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"
        else:
            parts = self.store.uploads[query["uploadId"][0]]
            bucket[key] = b"".join(parts[number] for number in sorted(parts))
            tag, content = "CompleteMultipartUploadResult", "<ETag>&quot;1&quot;</ETag>"
        self._answer(200, f'<{tag} xmlns="{NAMESPACE}"><Key>{escape(key)}</Key>{content}</{tag}>'.encode())

    def do_DELETE(self) -> None:
        bucket, key, _ = self._split()
        if bucket is not None:
            bucket.pop(key, None)
        self._answer(204)


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Yield a store with the bucket `mail`, listening on loopback for as long as the block runs."""
    made = ObjectStore()
    made.start()
    try:
        yield made
    finally:
        made.released.set()
        made.stop()
