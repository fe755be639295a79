"""Small XLSX files, as bytes, and what is wrong with some of them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any, Final
from xml.sax.saxutils import escape

OFFICE: Final = "http://schemas.openxmlformats.org"
MAIN: Final = f"{OFFICE}/spreadsheetml/2006/main"
LINKS: Final = f"{OFFICE}/package/2006/relationships"
KIND: Final = f"{OFFICE}/officeDocument/2006/relationships"
MEDIA: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS: Final = {
    "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{MEDIA}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{MEDIA}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{LINKS}"><Relationship Id="rId1" Type="{KIND}/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{KIND}"><sheets><sheet name="People" sheetId="1" '
    'r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{LINKS}"><Relationship Id="rId1" '
    f'Type="{KIND}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def workbook(*rows: Sequence[Any]) -> bytes:
    """Return a workbook with one sheet of these rows."""
    return sheet_of("".join(f"<row>{''.join(_cell(value) for value in row)}</row>" for row in rows))


def sheet_of(rows: str) -> bytes:
    """Return a workbook whose sheet has these rows of XML."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in PARTS.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
        sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, (int, float)):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
