"""A text as a QR code, for cameras of phones."""

from __future__ import annotations


def qr_picture(text: str) -> str:
    """The address of the picture, which holds all of it; dark on light, whatever the page is."""
    # Loaded with the first picture: most processes never draw one.
    import segno

    code = segno.make_qr(text, error="m")
    return str(code.svg_data_uri(light="#fff", dark="#000", border=4, scale=5))
