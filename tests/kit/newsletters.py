"""Newsletters as they are written: by tools with tables and comments for Outlook, by hand, and badly."""

# ruff: noqa: E501 - the lines are as their authors wrote them

from __future__ import annotations

from typing import Final

_OUTLOOK: Final = """<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<meta http-equiv="Content-Type" content="text/html; charset=utf-8" />
<!--[if gte mso 9]><xml><o:OfficeDocumentSettings><o:AllowPNG/></o:OfficeDocumentSettings></xml><![endif]-->
<style type="text/css">
  a:hover { color: #c00 !important } /* > "quoted" <a href="https://css.example"> */
  @media only screen and (max-width: 480px) { table[class="w320"] { width: 320px !important } }
</style>
<title>Tides & times <a href="https://title.example"></title>
</head>
<body style="margin:0;padding:0" bgcolor="#ffffff">
<div style="display:none;max-height:0;overflow:hidden">What the sea does this week&nbsp;&zwnj;&nbsp;</div>
<table border="0" cellpadding="0" cellspacing="0" width="100%"><tbody><tr><td align="center" valign="top">
<!--[if (gte mso 9)|(IE)]><table align="center" width="600"><tr><td width="600"><![endif]-->
<table class="w320" width="600"><tr><td><a href="https://harbor.example/?utm_source=news&amp;utm_medium=email&amp;utm_campaign=tides" target="_blank" style="text-decoration:none; font-family:'Segoe UI', Arial"><img src="https://img.harbor.example/logo.png?v=2&amp;w=600" alt='The "Harbor" <logo>' width="600" border="0" /></a></td></tr>
<tr><td>
<!--[if mso]><v:roundrect xmlns:v="urn:schemas-microsoft-com:vml" href="https://harbor.example/book" style="height:40px;v-text-anchor:middle;width:200px;" arcsize="10%" fillcolor="#d62828"><w:anchorlock/><center>Book</center></v:roundrect><![endif]-->
<!--[if !mso]><!--><a href="https://harbor.example/book?seats=2&copy=1" style="background-color:#d62828;display:inline-block;">Book &raquo;</a><!--<![endif]-->
</td></tr></table>
<!--[if (gte mso 9)|(IE)]></td></tr></table><![endif]-->
</td></tr></tbody></table>
<p><a href="mailto:help@harbor.example?subject=Hi%20there">Write</a> | <a href="tel:+4940123">Call</a> | <a href="#top">Top</a> | <a data-track="off" href="https://harbor.example/leave?u=1">Leave</a></p>
</body>
</html>
"""

_BY_HAND: Final = """<h1>Hello!</h1>
<p>We moved. See <a href=https://quay.example/map>the map</a>, or <A HREF = 'http://quay.example/plan'
   TITLE="a > b">the plan</A>.
<ul><li>One<li><a href="https://quay.example/one?a=1&b=2#x">two</a><li>5 < 6 & 7 > 2</ul>
<p>Yours,<br>Ann<hr><map name=m><area shape=rect coords=0,0,9,9 href="https://quay.example/area"></map>
"""

_BROKEN: Final = """<html><body><div><b><i>Sale</b></i><table><a href="https://a.example/1">outside</a><tr><td>
<a href="https://a.example/2">never closed<td><a href="https://a.example/3"><a href="https://a.example/4">nested</a></a>
<p <a href="https://a.example/5">in a tag</a></p><a href="https://a.example/6"">extra quote</a>
<a href="https://a.example/7"title="x">no blank</a><a/href="https://a.example/8">slash</a>
<a href="https://a.example/9" href="https://a.example/10">twice</a><a href=>empty</a><a href>none</a></table></div>
</p></font></body></body>after<a href="https://a.example/11">it</a></html>tail
"""

_HIDDEN: Final = """<body><!-- <a href="https://no.example"> --><!--> <a href="https://b.example/1">x</a> -->
<!---> <a href="https://b.example/2">x</a> --><!-- a --!> <a href="https://b.example/3">x</a>
<textarea><a href="https://no.example"></textarea><script>document.write('<a href="https://no.example">')</script>
<noscript><a href="https://b.example/4">plain</a></noscript><style>a{content:"</style >"}</style ><a href="https://b.example/5">y</a>
<svg width="9"><a href="https://no.example"><text>x</text></a></svg><iframe><a href="https://no.example"></iframe>
<?php echo '<a href="https://b.example/6">' ?><![CDATA[ <a href="https://b.example/7">x</a> ]]></body>
"""

_WORDS: Final = """<html lang="de"><body>
<p>Größe: <a href="https://bücher.example/süß?q=größe&amp;x=ä%20ö">Bücher</a> — <a href="https://例え.example/パス?クエリ=値#節">例え</a> 🌊
<a href="  https://c.example/blanks?a=b
 c  ">blanks</a> <a href="&#104;ttps://c.example/entity">entity</a> <a href="https://c.example/?a=&lt;b&gt;&quot;c&apos;">signs</a>
<a href="HTTPS://C.EXAMPLE/UPPER">upper</a> <a href="//c.example/relative">r</a> <a href="/path">p</a> <a href="javascript:alert(1)">j</a>
<a href="https://c.example/{{{not_filled}}}?a={{{b|c}}}">braces</a> <a href="https://user:pass@c.example:8443/?#">user</a></p>
</body></html>
"""

_EMPTY: Final = "<body></body>"
_NO_LINKS: Final = "<p>Only words, & no <b>links</b>.</p>\r\n<p>Two lines.</p>\r\n"
_LINES: Final = "<html>\r\n<body>\r\n<a\r\n\thref=\"https://d.example/1\"\r\n>one</a>\r<a href='https://d.example/2'>two</a>\r\n</body>\r\n</html>\r\n"

NEWSLETTERS: Final = {
    "a tool that writes for Outlook": _OUTLOOK,
    "by hand": _BY_HAND,
    "broken": _BROKEN,
    "what is no link": _HIDDEN,
    "words of many languages": _WORDS,
    "line ends of Windows": _LINES,
    "empty": _EMPTY,
    "no links": _NO_LINKS,
    "long": "<html><body>" + _BY_HAND * 200 + "</body></html>",
    "two together": _OUTLOOK + _BY_HAND,
}
