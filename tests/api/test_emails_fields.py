"""The fields of a send request (emails.md 1 to 1.3, 1.6, 1.7): what is taken, what each refusal says."""

from __future__ import annotations

from typing import Any

from kit.client import error
from kit.dumps import counts
from kit.world import Team, World, mail

VALIDATION = (422, "validation_error")
MISSING = (422, "missing_required_field")
FORMAT = "`user@host` or `Name <user@host>`"
UUID = "0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44"

REFUSED: list[tuple[dict[str, Any], tuple[int, str], str]] = [
    # Required fields: absent, null and "" are the same.
    ({"from_": None}, MISSING, "Missing `from` field."),
    ({"from_": ""}, MISSING, "Missing `from` field."),
    ({"to": None}, MISSING, "Missing `to` field."),
    ({"to": []}, MISSING, "Missing `to` field."),
    ({"to": ""}, MISSING, "Missing `to` field."),
    ({"subject": None}, MISSING, "Missing `subject` field."),
    ({"subject": ""}, MISSING, "Missing `subject` field."),
    ({"html": None}, MISSING, "Missing `html` or `text` field."),
    ({"html": "", "text": ""}, MISSING, "Missing `html` or `text` field."),
    # Types: nothing is coerced.
    ({"from_": 7}, VALIDATION, "Invalid `from` field. "),
    ({"from_": ["a@harbor.example"]}, VALIDATION, "Invalid `from` field. "),
    ({"to": {"email": "a@quay.example"}}, VALIDATION, "Invalid `to` field. "),
    ({"to": [None]}, VALIDATION, "Invalid `to` field. "),
    ({"to": ["a@quay.example", True]}, VALIDATION, "Invalid `to` field. "),
    ({"subject": 12}, VALIDATION, "Invalid `subject` field. "),
    ({"html": 1}, VALIDATION, "Invalid `html` field. "),
    ({"text": ["a"]}, VALIDATION, "Invalid `text` field. "),
    ({"headers": []}, VALIDATION, "Invalid `headers` field. "),
    ({"headers": {"X-A": 1}}, VALIDATION, "Invalid `headers.X-A` field. "),
    ({"tags": {}}, VALIDATION, "Invalid `tags` field. "),
    ({"attachments": {}}, VALIDATION, "Invalid `attachments` field. "),
    ({"scheduled_at": 5}, VALIDATION, "Invalid `scheduled_at` field. "),
    ({"template": "welcome"}, VALIDATION, "Invalid `template` field. "),
    # Lengths.
    ({"subject": "x" * 999}, VALIDATION, "Invalid `subject` field. "),
    ({"html": "x" * (10 * 1024 * 1024 + 1)}, VALIDATION, "Invalid `html` field. "),
    ({"html": "é" * (5 * 1024 * 1024), "text": "x"}, VALIDATION, "Invalid `html` field. "),
    ({"headers": {"X-" + "a" * 75: "v"}}, VALIDATION, "Invalid `headers.X-a"),
    ({"headers": {"X-A": "v" * 2001}}, VALIDATION, "Invalid `headers.X-A` field. "),
    ({"headers": {f"X-{n}": "v" for n in range(51)}}, VALIDATION, "Invalid `headers` field. "),
    ({"tags": [{"name": f"t{n}", "value": "v"} for n in range(51)]}, VALIDATION, "Invalid `tags` field. "),
    ({"tags": [{"name": "a" * 257, "value": "v"}]}, VALIDATION, "Invalid `tags[0].name` field. "),
    # Injection (TRAP-01): no line break and no NUL in anything that becomes a header.
    ({"subject": "Hi\r\nBcc: x@evil.example"}, VALIDATION, "Invalid `subject` field. "),
    ({"subject": "Hi\nthere"}, VALIDATION, "Invalid `subject` field. "),
    ({"subject": "Hi\x85there"}, VALIDATION, "Invalid `subject` field. "),
    ({"subject": "Hi\u2028there"}, VALIDATION, "Invalid `subject` field. "),
    ({"subject": "a\0b"}, VALIDATION, "The request body may not contain NUL characters."),
    ({"from_": "A\r\nBcc: x@evil.example <a@harbor.example>"}, VALIDATION, "Invalid `from` field. "),
    ({"from_": '"A\r\n" <a@harbor.example>'}, VALIDATION, "Invalid `from` field. "),
    ({"from_": "=?utf-8?q?a=0D=0ABcc=3A?= <a@harbor.example>"}, VALIDATION, "Invalid `from` field. "),
    ({"to": "a@quay.example\r\nBcc: x@evil.example"}, VALIDATION, "Invalid `to` field. "),
    ({"reply_to": "A\n <a@quay.example>"}, VALIDATION, "Invalid `reply_to` field. "),
    ({"headers": {"X-A": "v\r\nBcc: x@evil.example"}}, VALIDATION, "Invalid `headers.X-A` field. "),
    ({"headers": {"X-A": "v\n"}}, VALIDATION, "Invalid `headers.X-A` field. "),
    ({"headers": {"X-A\r\nBcc": "x@evil.example"}}, VALIDATION, "Invalid `headers.X-A__Bcc` field. "),
    ({"headers": {"X A": "v"}}, VALIDATION, "Invalid `headers.X A` field. "),
    ({"headers": {"X:A": "v"}}, VALIDATION, "Invalid `headers.X:A` field. "),
    ({"headers": {"Ünicode": "v"}}, VALIDATION, "Invalid `headers.Ünicode` field. "),
    ({"headers": {"": "v"}}, VALIDATION, "Invalid `headers.` field. "),
    ({"headers": {"From": "v\r\n"}}, VALIDATION, "Invalid `headers.From` field. "),
    ({"headers": {"Reply-To": "nobody"}}, VALIDATION, "Invalid `headers.Reply-To` field. "),
    # Tags.
    ({"tags": ["a"]}, VALIDATION, "Invalid `tags[0]` field. "),
    ({"tags": [{"name": "a"}]}, MISSING, "Missing `tags[0].value` field."),
    ({"tags": [{"name": "a", "value": "b"}, {"value": "v"}]}, MISSING, "Missing `tags[1].name` field."),
    ({"tags": [{"name": "a b", "value": "v"}]}, VALIDATION, "Invalid `tags[0].name` field. "),
    ({"tags": [{"name": "a", "value": "é"}]}, VALIDATION, "Invalid `tags[0].value` field. "),
    ({"tags": [{"name": "a", "value": "v\n"}]}, VALIDATION, "Invalid `tags[0].value` field. "),
    ({"tags": [{"name": "a", "value": 1}]}, VALIDATION, "Invalid `tags[0].value` field. "),
    # References (contract decisions 3 and 37).
    ({"topic_id": "news"}, (422, "invalid_parameter"), "The `topic_id` must be a valid UUID."),
    ({"topic_id": UUID}, (404, "not_found"), "Topic not found"),
    ({"html": None, "template": {"id": "welcome"}}, (404, "not_found"), "Template not found"),
    ({"html": None, "template": {"id": UUID}}, (404, "not_found"), "Template not found"),
    (
        {"html": None, "from_": None, "subject": None, "template": {"id": "welcome"}},
        (404, "not_found"),
        "Template not found",
    ),
    ({"html": None, "template": {"variables": {}}}, MISSING, "Missing `template.id` field."),
    ({"template": {"id": "welcome"}}, VALIDATION, "Use either `template` or `html` and `text`, not both."),
    ({"html": None, "to": None, "template": {"id": "welcome"}}, MISSING, "Missing `to` field."),
]

NO_MAILBOX = [
    "nobody",
    "a@localhost",
    "a@quay",
    "@quay.example",
    "a@",
    "a@[192.0.2.1]",
    "a@192.0.2.1",
    "a b@quay.example",
    "a@quay.example, b@quay.example",
    "a@quay.example;",
    "Team: a@quay.example, b@quay.example;",
    "<@relay.example:a@quay.example>",
    "a@quay.example (comment)",
    "Ann <a@quay.example> trailing",
    "Doe, John <a@quay.example>",
    "Ann <<a@quay.example>>",
    "Ann <a@quay.example",
    '"Ann <a@quay.example>',
    "a..b@quay.example",
    ".a@quay.example",
    "a@-quay.example",
    "a@quay..example",
    "x" * 65 + "@quay.example",
    "a@" + "b" * 64 + ".example",
    "a@" + ".".join(["c" * 60] * 5) + ".example",
    "   ",
    "a@quay.example\0",
]

MAILBOXES = [
    "ada@quay.example",
    "  ada@quay.example  ",
    "Ada <ada@quay.example>",
    "<ada@quay.example>",
    '"Lovelace, Ada" <ada@quay.example>',
    '"Ada \\"the first\\" L." <ada@quay.example>',
    "J. O'Neil & Co. [Berlin] <j@quay.example>",
    "Zoë Ångström <zoe@quay.example>",
    "=?utf-8?q?Zo=C3=AB?= <zoe@quay.example>",
    "日本語 <a@quay.example>",
    "ada@münchen.example",
    "ädä@quay.example",
    '"odd local"@quay.example',
    "x" * 64 + "@quay.example",
    "a+b.c_d-e@QUAY.Example",
]


async def test_each_violation_has_its_answer_and_writes_nothing(pillarbox: World) -> None:
    """Conventions section 5: status, name and message pattern; nothing is stored, never a 500."""
    team = await pillarbox.team()
    before = await counts(pillarbox.pool)
    for fields, expected, message in REFUSED:
        status, name, said = error(await team.post("/emails", mail(**fields)))
        shown = str(fields)[:80]
        assert (status, name) == expected, shown
        assert said.startswith(message), (shown, said)
    assert await counts(pillarbox.pool) == before


async def test_what_is_no_mailbox_is_refused_in_every_field(pillarbox: World) -> None:
    """Section 1.1: the message names the field and the accepted forms."""
    team = await pillarbox.team()
    for text in NO_MAILBOX:
        for field in ("to", "cc", "bcc", "reply_to"):
            answer = await team.post("/emails", mail(**{field: [text]}))
            assert_refused(answer, field, text)
        assert_refused(await team.post("/emails", mail(from_=text)), "from", text)
        assert_refused(await team.post("/emails", mail(to=text)), "to", text)


def assert_refused(answer: Any, field: str, text: str) -> None:
    status, name, message = error(answer)
    assert (status, name) == VALIDATION, text
    if "\0" not in text:
        assert message.startswith(f"Invalid `{field}` field. "), (text, message)
        assert FORMAT in message


async def test_mailboxes_are_kept_as_they_were_given(pillarbox: World) -> None:
    """Section 1.1: stored and returned as given after trimming."""
    team = await pillarbox.team()
    for text in MAILBOXES:
        email = await team.send(from_=text, to=text, cc=[text], bcc=text, reply_to=[text])
        found = await team.email(email)
        assert found["from"] == text.strip()
        for field in ("to", "cc", "bcc", "reply_to"):
            assert found[field] == [text.strip()], text


async def test_fifty_recipients_in_each_list_and_not_one_more(pillarbox: World) -> None:
    team = await pillarbox.team()
    fifty = {field: [f"{field}{n}@quay.example" for n in range(50)] for field in ("to", "cc", "bcc")}
    email = await team.send(**fifty, reply_to=fifty["to"])
    assert await _recipients(team, email) == 150
    before = await counts(pillarbox.pool)
    for field in ("to", "cc", "bcc", "reply_to"):
        many = [f"x{n}@quay.example" for n in range(51)]
        status, name, message = error(await team.post("/emails", mail(**{field: many})))
        assert (status, name) == VALIDATION
        assert message == f"Invalid `{field}` field. Use at most 50 addresses."
    assert await counts(pillarbox.pool) == before


async def test_an_address_in_several_lists_gets_the_mail_once(pillarbox: World) -> None:
    """Section 1.1: compared without case, to wins over cc over bcc, the lists stay as they are."""
    team = await pillarbox.team()
    email = await team.send(
        to=["Ada@Quay.example", "ada@quay.example", "b@münchen.example"],
        cc=["ADA <ada@quay.EXAMPLE>", "c@quay.example"],
        bcc=["c@quay.example", "B@xn--mnchen-3ya.example", "d@quay.example"],
    )
    rows = await pillarbox.pool.fetch("SELECT role, mailbox FROM recipients ORDER BY position")
    assert [tuple(row) for row in rows] == [
        ("to", "Ada@quay.example"),
        ("to", "b@xn--mnchen-3ya.example"),
        ("cc", "c@quay.example"),
        ("bcc", "d@quay.example"),
    ]
    found = await team.email(email)
    assert found["to"] == ["Ada@Quay.example", "ada@quay.example", "b@münchen.example"]
    assert found["cc"] == ["ADA <ada@quay.EXAMPLE>", "c@quay.example"]
    assert len(found["bcc"]) == 3


async def test_optional_fields_that_are_null_or_empty_are_absent(pillarbox: World) -> None:
    team = await pillarbox.team()
    body = mail(region="eu-west-1", react="<x/>", unknown={"a": [1]})
    for field in ("cc", "bcc", "reply_to", "text", "headers", "attachments", "tags", "scheduled_at"):
        body[field] = None
    body |= {"topic_id": None, "template": None}
    assert (await team.post("/emails", body)).status_code == 200
    email = await team.send(cc=[], bcc="", reply_to=[], headers={}, attachments=[], tags=[])
    found = await team.email(email)
    assert [found[name] for name in ("cc", "bcc", "reply_to", "tags")] == [None, None, None, []]
    assert found["scheduled_at"] is None


async def test_the_limits_themselves_are_allowed(pillarbox: World) -> None:
    team = await pillarbox.team()
    for fields in (
        {"subject": "\N{GRINNING FACE}" * 998},
        {"subject": "tab\tin between"},
        {"html": None, "text": "é" * (5 * 1024 * 1024)},
        {"headers": {"X-" + "a" * 74: "v" * 900, "X-Empty": ""}},
        {"headers": {"X-Long": "word " * 400}},
        {"headers": {f"X-{n}": "v" for n in range(50)}},
        {"tags": [{"name": "a" * 256, "value": "Z_-9" * 64}] * 50},
        {"to": [f"x{n}@quay.example" for n in range(50)]},
    ):
        answer = await team.post("/emails", mail(**fields))
        assert answer.status_code == 200, (str(fields)[:60], answer.text)


async def test_the_aliases_are_the_same_endpoint(pillarbox: World) -> None:
    team = await pillarbox.team()
    for path in ("/email", "/emails/sending", "/email/sending", "/emails/"):
        answer = await team.post(path, mail())
        assert (answer.status_code, list(answer.json())) == (200, ["id"]), path
        assert error(await team.post(path, {}))[0] == 422


async def _recipients(team: Team, email: str) -> int:
    found: int = await team.db.value(
        "SELECT count(*) FROM recipients WHERE team_id = $1 AND email_id = $2", email
    )
    return found
