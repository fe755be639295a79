"""Pictures that are uploaded: written anew or refused, served to everybody, bounded, gone when removed."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections import Counter
from io import BytesIO

import pytest
from PIL import Image

from kit.people import Visit, a_person, logged_in, text_of
from kit.world import Team, World
from pillarbox.documents import images, pictures
from pillarbox.documents.pictures import PictureRefused, safe_picture
from pillarbox.people.roles import TeamRole
from pillarbox.teams.allowances import TooMany

HERE = "/dashboard/images"


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB") -> bytes:
    out = BytesIO()
    Image.new(mode, size, "teal").save(out, kind)
    return out.getvalue()


def bomb() -> bytes:
    """A PNG of a few octets that says to have 900 million pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0"))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (picture("PNG"), "png"),
        (picture("JPEG"), "jpg"),
        (picture("WEBP"), "png"),
        (picture("GIF", mode="P"), "png"),
        (picture("PNG", mode="RGBA"), "png"),
    ],
)
def test_a_picture_is_written_anew(data: bytes, kind: str) -> None:
    made = safe_picture(data + b"<script>alert(1)</script>")
    assert (made.kind, made.width, made.height) == (kind, 40, 30)
    assert b"script" not in made.data


@pytest.mark.parametrize(("kind", "made_of"), [("JPEG", "jpg"), ("GIF", "gif")])
def test_comments_of_the_file_go(kind: str, made_of: str) -> None:
    frames = [Image.new("RGB", (4, 4), color) for color in ("teal", "red")]
    out = BytesIO()
    more = {"save_all": True, "append_images": frames[1:]} if kind == "GIF" else {}
    frames[0].save(out, kind, comment=b"<script>alert(1)</script>", **more)
    assert b"script" in out.getvalue()
    made = safe_picture(out.getvalue())
    assert made.kind == made_of
    assert b"script" not in made.data


def test_metadata_that_cannot_be_read_is_refused() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "x"
    out = BytesIO()
    Image.new("RGB", (4, 4)).save(out, "JPEG", exif=exif)
    # The description says that it is the width, and is a text still.
    wrong = out.getvalue().replace(b"\x01\x0e\x00\x02", b"\x01\x00\x00\x02")
    assert wrong != out.getvalue()
    with pytest.raises(PictureRefused):
        safe_picture(wrong)


def test_metadata_goes_and_the_picture_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "taken at home"
    out = BytesIO()
    Image.new("RGB", (40, 30)).save(out, "JPEG", exif=exif)
    made = safe_picture(out.getvalue())
    assert (made.width, made.height) == (30, 40)
    assert b"taken at home" not in made.data


def test_a_moving_picture_moves_on() -> None:
    out = BytesIO()
    frames = [Image.new("RGB", (20, 20), color) for color in ("red", "green", "blue")]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=50)
    made = safe_picture(out.getvalue())
    assert made.kind == "gif"
    assert getattr(Image.open(BytesIO(made.data)), "n_frames", 1) == 3


def test_a_wide_picture_is_made_smaller() -> None:
    assert safe_picture(picture(size=(4800, 10))).width == pictures.WIDEST


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"GIF89a<script>",
        b"%PDF-1.7",
        picture("BMP"),
        picture("PNG")[:60],
        bomb(),
        b"\x89PNG" + b"\0" * pictures.LARGEST,
    ],
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(PictureRefused):
        safe_picture(data)


async def upload(browser: Visit, data: bytes, **fields: str) -> int:
    files = {"file": ("lantern.png", data, "image/png")}
    answer = await browser.ask(
        "POST",
        HERE,
        headers={"sec-fetch-site": "same-origin"},
        data={"csrf_token": browser.csrf, **fields},
        files=files,
    )
    return answer.status_code


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    person = await a_person(team, f"{role.value}-{team.id.hex[-6:]}@harbor.example", role)
    return await logged_in(team.world, person)


async def test_a_picture_is_uploaded_served_and_removed(pillarbox: World) -> None:
    team, quay = await pillarbox.team(), await pillarbox.team("Quay")
    ada, stranger = await browser(team), await browser(quay)
    assert "No picture yet" in text_of(await ada.get(HERE))
    assert await upload(ada, b"<svg/>", alt="x") == 422
    assert await upload(ada, picture()) == 422, "no text"
    assert await upload(ada, picture(), alt="A <b>lantern</b>") == 303
    assert (
        await team.db.value("SELECT what FROM audit_entries WHERE team_id = $1 ORDER BY id DESC LIMIT 1")
    ) == "image.added"
    [image] = await pillarbox.app.need(images.Images).newest(team.db)
    path = pillarbox.app.need(images.Images).address(image).removeprefix(pillarbox.url)
    assert "A <b>lantern</b>" in text_of(await ada.get(HERE))
    served = await pillarbox.client(None).get(path)
    assert (served.status_code, served.headers["content-type"]) == (200, "image/png")
    assert "immutable" in served.headers["cache-control"]
    assert "sandbox" in served.headers["content-security-policy"]
    await stranger.get(HERE)
    assert (await stranger.post(f"{HERE}/{image.id}/remove")).status_code == 404
    assert (await ada.post(f"{HERE}/{image.id}/remove")).status_code == 303
    assert (await pillarbox.client(None).get(path)).status_code == 404
    assert (await pillarbox.client(None).get("/i/../etc/passwd")).status_code == 404


async def test_a_name_with_a_nul_is_no_form(pillarbox: World) -> None:
    ada = await browser(await pillarbox.team())
    page = await ada.get(HERE)
    fields = {"alt": "A lantern", "csrf_token": page.text.split('name="csrf_token" value="')[1].split('"')[0]}
    data = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ).encode()
    data += (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a\0.png"\r\n\r\n'
        + picture()
        + b"\r\n--b--\r\n"
    )
    headers = {"content-type": "multipart/form-data; boundary=b", "sec-fetch-site": "same-origin"}
    assert (await ada.ask("POST", HERE, content=data, headers=headers)).status_code == 400


async def test_pictures_that_come_at_once_have_the_same_room(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two have room one at a time, and only one of them together."""
    team, store = await pillarbox.team(), pillarbox.app.need(images.Images)
    first = await store.add(team.db, "a.png", "A", picture())
    monkeypatch.setattr(images, "MOST_OCTETS", 2 * first.size)
    adding = [store.add(team.db, f"{name}.png", name, picture()) for name in "bcd"]
    found = await asyncio.gather(*adding, return_exceptions=True)
    assert Counter(type(one) for one in found) == {images.TeamImage: 1, TooMany: 2}


async def test_viewers_upload_nothing_and_a_team_has_its_share(
    pillarbox: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await pillarbox.team()
    ada, viewer = await browser(team), await browser(team, TeamRole.VIEWER)
    await viewer.get("/account")
    assert await upload(viewer, picture(), alt="x") == 403
    monkeypatch.setattr(images, "MOST", 1)
    await ada.get(HERE)
    assert await upload(ada, picture(), alt="One") == 303
    assert await upload(ada, picture(), alt="Two") == 403
