"""Texts of several orders, as people write and paste them, taken apart."""

import re
import unicodedata

from ..rules.reading import DASH, NATIONS

_MOST_OF_A_LINE = 2000
_BULLET = re.compile(r"(?m)^[ \t]*(?:[-*\u2022>#]|\(?\d{1,3}[.):])[ \t]+")
_UNIT_BEGINS = (
    rf"(?=\s*[(\[*'`\"]*(?:the\s+)?(?:(?:{NATIONS}):\s*)?"
    r"(?:[AF]|army|fleet|builds?|destroy|removes?)[\s(])"
)
_BETWEEN = re.compile(  # a comma in brackets is part of a remark, unless another unit follows
    rf"\n|[;,](?![^()\[\]]{{0,100}}[)\]])|[;,]{_UNIT_BEGINS}|\s(?=[(\[]){_UNIT_BEGINS}|\s{{3,}}"
    rf"|\s(?:and|[&/])\s{_UNIT_BEGINS}|\s\s(?=\S){_UNIT_BEGINS}|(?<=[\w)*\]])[.]\s{_UNIT_BEGINS}"
    r"|(?<=[a-z])(?:(?=Build (?:army|fleet) at )|The +at .*)",  # webDiplomacy glues sentences
    re.IGNORECASE,
)


def order_texts(text: str) -> list[str]:
    """Return the orders of a text, without list marks and signs around them. They stand between
    line ends, commas, semicolons, wide gaps or full stops. Remarks such as results stay with their
    order; `read_order` steps over them."""
    lines = _BULLET.sub("", without_symbols(text[:_MOST_OF_A_LINE]).replace("**", ""))
    parts = (part.strip(" \t`'\"_~{}<>") for part in _BETWEEN.split(lines))
    return [part for part in parts if part]


def without_symbols(text: str) -> str:
    """Return a text with wide gaps for pictures, ticks and crosses; what is an arrow stays."""
    if text.isascii():
        return text
    joined = re.sub("[\u200b-\u200d\u20e3\ufe0e\ufe0f]", "", text)
    return "".join(
        sign if unicodedata.category(sign) != "So" or DASH.match(sign) else "   " for sign in joined
    )
