"""The route table: what `@route` writes down, and which route a path means (conventions section 1)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote, unquote

from pillarbox.kernel.http.request import Failures, Reply, Request
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Access, InboxRight, TokenScope
from pillarbox.kernel.wire.problems import MethodNotAllowed, Problem

__all__ = [
    "Access",
    "BodyMode",
    "Failures",
    "InboxRight",
    "Route",
    "RouteTable",
    "TokenScope",
    "UnknownRoute",
    "collect",
    "route",
]

Handler = Callable[..., Coroutine[Any, Any, Reply]]
H = TypeVar("H", bound=Handler)
Screen = Callable[[Request, Problem], Reply]
Resolve = Callable[[TeamDb, str], Awaitable[str | None]]
"""From a name in a path to the id of what it names; None where it names nothing."""

MIB = 1024 * 1024
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})
METHODS = WRITES | {"GET"}
ATTRIBUTE = "pillarbox_routes"

SHARED = {"access-control-allow-origin": "*"}
PREFLIGHT = {
    **SHARED,
    "access-control-allow-headers": "Authorization, Content-Type, MCP-Protocol-Version",
    "access-control-max-age": "86400",
}

_PARAMETER = re.compile(r"\{([a-z_]+)\}")


class BodyMode(Enum):
    """The form in which a handler gets the request body."""

    JSON = "json"
    ARRAY = "json, an array at the top allowed"
    RAW = "left as bytes on the request: forms and multipart"
    STREAM = "left on the connection: the handler reads it while it comes (kernel.http.multipart)"


class UnknownRoute(Problem):
    status, name = 404, "not_found"

    def __init__(self) -> None:
        super().__init__("The requested endpoint does not exist.")


class WrongHost(UnknownRoute):
    """The name in the header `Host` is not for this path; pages are not there either."""


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint, with all that the OpenAPI document says about it.

    `reply` is what it answers with `status` and those of `also`; `problems` are statuses of errors besides
    those that follow from the rest, and `pages` those of errors that it answers as a page. Scripts of all
    sites may call what is `shared` and read its answers (CORS). `needs` is
    what an API key must be, `token_scope` what an access token must have. A key for one inbox needs all of
    `inbox_rights`; None, which is the default, lets no such key in. `named` says what parameters mean
    that take a name in place of an id. `screen` shows a problem to a browser that asked for a page: of the
    pages below this segment of paths, and where there is nothing. The body of one that
    `parses_first` is parsed as `body` before the transaction, a large one in a thread; its handler finds it
    as `wanted`.
    """

    method: str
    path: str
    handler: Handler
    needs: Access
    summary: str
    status: int = 200
    body: Any = None
    reply: Any = None
    limit: int = MIB
    aliases: tuple[str, ...] = ()
    idempotent: bool = False
    salt: Callable[[Request], str] | None = None
    transaction: bool = False
    intake: BodyMode = BodyMode.JSON
    media: str = "application/json"
    also_media: tuple[str, ...] = ()
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    path_types: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[int, ...] = ()
    problems: tuple[int, ...] = ()
    pages: tuple[int, ...] = ()
    logged: bool = True
    failures: Failures | None = None
    shared: bool = False
    token_scope: TokenScope = TokenScope.FULL
    inbox_rights: frozenset[InboxRight] | None = None
    by_name: bool = False
    named: Mapping[str, Resolve] = field(default_factory=dict)
    screen: Screen | None = None
    parses_first: bool = False
    parameters: tuple[str, ...] = field(init=False)
    uuids: tuple[str, ...] = field(init=False)
    scope: str = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(_PARAMETER.findall(self.path))
        object.__setattr__(self, "parameters", names)
        object.__setattr__(self, "uuids", tuple(name for name in names if name.endswith("_id")))
        object.__setattr__(self, "scope", f"{self.method} {self.path}")
        unknown = set(names) - set(self.uuids) - set(self.named)
        if self.idempotent and unknown:
            raise TypeError(f"{self.scope}: an Idempotency-Key counts for ids; what is {unknown.pop()}?")

    def scope_of(self, values: Sequence[str]) -> str:
        """Return the scope of an idempotency key: the method, and the path with its parameters' values."""
        return " ".join([self.scope, *[quote(value.lower(), safe="@") for value in values]])

    async def resolved(self, db: TeamDb, values: Sequence[str]) -> list[str]:
        """Return the values of its parameters with ids in place of names; a name of nothing stays as
        it is."""
        return [
            await self.named[name](db, value) or value if name in self.named else value
            for name, value in zip(self.parameters, values, strict=True)
        ]

    @property
    def takes_body(self) -> bool:
        """False where a body is read and ignored."""
        return self.method not in WITHOUT_BODY


def route(
    method: str,
    path: str,
    *,
    needs: Access,
    summary: str = "",
    status: int = 200,
    body: Any = None,
    limit: int = MIB,
    aliases: Iterable[str] = (),
    idempotent: bool = False,
    salt: Callable[[Request], str] | None = None,
    transaction: bool | None = None,
    array: bool = False,
    multipart: bool = False,
    streamed: bool = False,
    media: str | None = None,
    also_media: Iterable[str] = (),
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, Any] | None = None,
    path_types: Mapping[str, Any] | None = None,
    also: Iterable[int] = (),
    problems: Iterable[int] = (),
    pages: Iterable[int] = (),
    logged: bool = True,
    failures: Failures | None = None,
    shared: bool = False,
    token_scope: TokenScope = TokenScope.FULL,
    inbox_rights: Iterable[InboxRight] | None = None,
    by_name: bool = False,
    named: Mapping[str, Resolve] | None = None,
    screen: Screen | None = None,
    parses_first: bool = False,
) -> Callable[[H], H]:
    """Mark a function as the handler of an endpoint; it fails at import without `needs`, and where its
    annotation does not say what it answers (`-> Reply[wire.Email]`).

    `query`, `headers` and `path_types` give the types of parameters, with `RequiredParameter` around one that
    must be there. `media` is the type of a body that is not JSON, `also_media` are others that it may have;
    `also` further statuses of success, `problems` statuses of errors that only the handler knows of, `pages`
    those of errors that are answered as a page.

    A handler is called as `(request, db)`, a public one as `(request)`. Unless `transaction` says
    otherwise, POST, PUT, PATCH and DELETE run in one transaction that is committed before the answer.
    The body of a `streamed` route is multipart and is read by the handler, which has no transaction for it.
    `idempotent` makes the Idempotency-Key count, with `salt(request)` as part of its fingerprint. Requests
    are kept in the log of requests where they authenticate, unless `logged` is False. `failures`, `shared`
    and `parses_first` are as in `Route`. `token_scope` is what an access token must have (oauth.md 1), and
    `inbox_rights` what a key for one inbox must have; with `()` each key of the inbox is let in. The
    parameter of a route that is `by_name` is a name that people choose, which may be a word of the API in
    paths of other methods.
    What is `idempotent` has a `named` for each parameter that is no id, so that one thing has one scope.
    """
    if not isinstance(needs, Access) or method not in METHODS:
        raise TypeError(f"{method} {path}: a route needs a method and an Access")
    intake = BodyMode.RAW if multipart else BodyMode.ARRAY if array else BodyMode.JSON
    if streamed:
        intake, multipart, transaction = BodyMode.STREAM, True, False

    def mark(handler: H) -> H:
        made = Route(
            method=method,
            path=path,
            handler=handler,
            needs=needs,
            summary=summary or (handler.__doc__ or "").strip().split("\n")[0],
            status=status,
            body=body,
            reply=_answer_of(handler),
            limit=limit,
            aliases=tuple(aliases),
            idempotent=idempotent,
            salt=salt,
            transaction=needs is not Access.PUBLIC
            and (method in WRITES if transaction is None else transaction),
            intake=intake,
            media=media or ("multipart/form-data" if multipart else "application/json"),
            also_media=tuple(also_media),
            query=query or {},
            headers=headers or {},
            path_types=path_types or {},
            also=tuple(also),
            problems=tuple(problems),
            pages=tuple(pages),
            logged=logged,
            failures=failures,
            shared=shared,
            token_scope=token_scope,
            inbox_rights=None if inbox_rights is None else frozenset(inbox_rights),
            by_name=by_name,
            named=named or {},
            screen=screen,
            parses_first=parses_first,
        )
        handler.__dict__.setdefault(ATTRIBUTE, []).append(made)
        return handler

    return mark


def _answer_of(handler: Handler) -> Any:
    """Return the `Email` of a handler's `-> Reply[Email]`."""
    made = get_type_hints(handler, include_extras=True).get("return")
    if get_origin(made) is not Reply:
        raise TypeError(
            f"{handler.__qualname__}: a handler says what it answers, as in `-> Reply[wire.Email]`"
        )
    return get_args(made)[0]


def collect(*modules: ModuleType) -> list[Route]:
    """Return every route that the modules' own functions were marked with, in the order of the source."""
    found: list[Route] = []
    for module in modules:
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                found += getattr(value, ATTRIBUTE, [])
    return found


def names_among_words(routes: Iterable[Route]) -> list[tuple[str, Route]]:
    """Return the paths of other routes that routes by name mean as well: `send` is a word of the API in `POST
    /events/send`, and a name in `GET /events/send`."""
    listed = list(routes)
    return [
        (other.path, entry)
        for entry in listed
        if entry.by_name
        for other in listed
        if other.path != entry.path and "{" not in other.path and _matches(entry.path, other.path)
    ]


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(_PARAMETER.sub("[^/]+", pattern), path) is not None


class _Node:
    __slots__ = ("literals", "methods", "parameter")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, Route] = {}


class RouteTable:
    """Finds the route of a path: literal segments before parameters, one trailing slash ignored."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)
        self._root = _Node()
        self._fixed: dict[str, _Node] = {}
        self._screens: dict[str, Screen] = {}
        for entry in self.routes:
            for path in (entry.path, *entry.aliases):
                self._add(path, entry)
            if entry.screen is not None:
                self._screens[entry.path.split("/")[1]] = entry.screen

    def match(self, method: str, raw_path: str) -> tuple[Route, list[str]]:
        """Return the route and the values of its parameters in order; HEAD means GET. Raises 404 or 405."""
        wanted = "GET" if method == "HEAD" else method
        node, values = self._node(raw_path)
        found = node.methods.get(wanted)
        if found is None and (other := self._node_with(wanted, raw_path)) is not None:
            node, values = other
            found = node.methods[wanted]
        if found is None:
            raise MethodNotAllowed(
                f"The method {method[:20]} is not allowed for this endpoint.",
                {"allow": self.allowed(raw_path)},
            )
        return found, values

    def options(self, raw_path: str) -> dict[str, str]:
        """Return the headers of the answer to OPTIONS: `Allow`, and for what is shared those of CORS; raises
        404 when there is nothing under the path."""
        allowed = self.allowed(raw_path)
        if not self.is_shared(raw_path):
            return {"allow": allowed}
        return {"allow": allowed, "access-control-allow-methods": allowed, **PREFLIGHT}

    def is_shared(self, raw_path: str) -> bool:
        """Return whether scripts of all sites may read answers under the path; raises 404 where there
        is nothing."""
        return any(entry.shared for entry in self._node(raw_path)[0].methods.values())

    def screen(self, raw_path: str) -> Screen | None:
        """Return the screen for problems under this path; None where only programs are answered."""
        segments = _segments(raw_path)
        found = self._screens.get(segments[0] if segments else "")
        try:
            node, _ = self._node(raw_path)
        except UnknownRoute:
            # A person has mistyped it, or followed an old link: a program does not ask for HTML.
            return found or next(iter(self._screens.values()), None)
        if found is None:
            return None
        return found if any(entry.pages for entry in node.methods.values()) else None

    def allowed(self, raw_path: str) -> str:
        """Return the `Allow` header of a path; raises 404 when there is none."""
        methods = set(self._node(raw_path)[0].methods)
        methods |= {method for method in METHODS if self._node_with(method, raw_path) is not None}
        if "GET" in methods:
            methods.add("HEAD")
        return ", ".join(sorted(methods))

    def _node(self, raw_path: str) -> tuple[_Node, list[str]]:
        fixed = self._fixed.get(raw_path)
        if fixed is not None:
            return fixed, []
        values: list[str] = []
        node = _descend(self._root, _segments(raw_path), 0, values)
        if node is None:
            raise UnknownRoute
        return node, values

    def _node_with(self, method: str, raw_path: str) -> tuple[_Node, list[str]] | None:
        """Return the node of a route by name with this method, where the first one that the path means has
        others: `send` is a word of the API in `POST /events/send`, and a name in `GET /events/send`."""
        values: list[str] = []
        node = _descend(self._root, _segments(raw_path), 0, values, method)
        return (node, values) if node is not None and node.methods[method].by_name else None

    def _add(self, path: str, entry: Route) -> None:
        if tuple(_PARAMETER.findall(path)) != entry.parameters:
            raise ValueError(f"{path} does not have the parameters of {entry.path}")
        node = self._root
        for segment in path.split("/")[1:]:
            if _PARAMETER.fullmatch(segment):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        if entry.method in node.methods:
            raise ValueError(f"two routes for {entry.method} {path}")
        node.methods[entry.method] = entry
        if "{" not in path:
            self._fixed[path] = self._fixed[path.rstrip("/") + "/"] = node


def _segments(raw_path: str) -> list[str]:
    segments = raw_path.split("/")[1:]
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    return [unquote(segment) for segment in segments] if "%" in raw_path else segments


def _descend(
    node: _Node, segments: list[str], index: int, values: list[str], method: str | None = None
) -> _Node | None:
    """Return the first node that the path means, of those with this method where one is given."""
    if index == len(segments):
        return node if (node.methods if method is None else method in node.methods) else None
    literal = node.literals.get(segments[index])
    if literal is not None:
        found = _descend(literal, segments, index + 1, values, method)
        if found is not None:
            return found
    if node.parameter is None or not segments[index]:
        return None
    values.append(segments[index])
    found = _descend(node.parameter, segments, index + 1, values, method)
    if found is None:
        values.pop()
    return found
