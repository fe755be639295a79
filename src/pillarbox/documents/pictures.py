"""Pictures as they may stand in mail: what was uploaded is decoded and written anew, or refused.

The kind is told by the octets, never by the name. What is written holds no metadata, so neither a place nor a
camera is told to readers, and nothing of a file that is two kinds at once is left.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any, Final, NamedTuple

from pillarbox.kernel.wire.problems import InvalidField

LARGEST: Final = 5 * 1024 * 1024
"""Octets of a file."""
MOST_PIXELS: Final = 16_000_000
"""Pixels of a picture, of all frames together where it moves."""
MOST_FRAMES: Final = 100
WIDEST: Final = 2400
"""A picture that is wider is made smaller: twice the width of the widest mail, and some."""
FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
MEDIA: Final = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif"}
QUALITY: Final = 85
BROKEN: Final = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    ArithmeticError,
    struct.error,
)
"""Exceptions of Pillow for files that are damaged."""


class PictureRefused(InvalidField):
    """The file is no picture that may stand in a mail (422)."""

    def __init__(self, reason: str) -> None:
        super().__init__("file", reason)


class SafePicture(NamedTuple):
    """A picture that was written anew; `kind` is a key of MEDIA."""

    kind: str
    data: bytes
    width: int
    height: int


def safe_picture(data: bytes) -> SafePicture:
    """Return the picture written anew; raises PictureRefused."""
    # Loaded with the first picture: most processes never see one.
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not data:
        raise PictureRefused("Choose a file.")
    if len(data) > LARGEST:
        raise PictureRefused("A picture may have 5 MB.")
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            _check_size(image)
            if getattr(image, "n_frames", 1) > 1 and image.format == "GIF":
                return _moving(image)
            still = ImageOps.exif_transpose(image)
            if still.width > WIDEST:
                still = still.resize((WIDEST, max(1, round(still.height * WIDEST / still.width))))
            return _still(still, is_photo=image.format == "JPEG")
    except PictureRefused:
        raise
    except (UnidentifiedImageError, Image.DecompressionBombError, *BROKEN):
        raise PictureRefused("Use a PNG, JPEG, GIF or WebP picture.") from None


def _check_size(image: Any) -> None:
    """Refuse a picture that would need much memory, before any of it is decoded."""
    frames = getattr(image, "n_frames", 1)
    if frames > MOST_FRAMES or image.width * image.height * frames > MOST_PIXELS:
        raise PictureRefused("The picture has too many pixels: at most 16 million.")


def _still(image: Any, *, is_photo: bool) -> SafePicture:
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    out = BytesIO()
    if is_photo and not has_alpha:
        _bare(image, "RGB").save(out, "JPEG", quality=QUALITY, optimize=True, progressive=True)
        return SafePicture("jpg", out.getvalue(), image.width, image.height)
    clean = _bare(image, "RGBA" if has_alpha else "RGB")
    clean.save(out, "PNG", optimize=True)
    return SafePicture("png", out.getvalue(), clean.width, clean.height)


def _moving(image: Any) -> SafePicture:
    from PIL import ImageSequence

    frames = [_bare(frame, "RGBA") for frame in ImageSequence.Iterator(image)]
    duration = max(20, int(image.info.get("duration") or 100))
    out = BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], loop=0, duration=duration, disposal=2)
    return SafePicture("gif", out.getvalue(), image.width, image.height)


def _bare(image: Any, mode: str) -> Any:
    """Return the pixels alone: Pillow would write comments and profiles of the old file into the new one."""
    pixels = image.convert(mode)
    pixels.info.clear()
    return pixels
