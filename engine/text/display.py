"""How a token is shown: every token has a form that can be seen, also a blank, a control character or a lone accent."""

import regex

EMPTY = "∅"
_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}
_CONTROLS = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
_NAMES = {
    **dict(enumerate(_CONTROLS.split(" "))),
    0x7F: "DEL",
    0x85: "NEL",
    0xA0: "NBSP",
    0xAD: "SHY",
    0x61C: "ALM",
    0x180E: "MVS",
    0x2000: "NQSP",
    0x2001: "MQSP",
    0x2002: "ENSP",
    0x2003: "EMSP",
    0x2007: "FIGSP",
    0x2009: "THSP",
    0x200A: "HSP",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LSEP",
    0x2029: "PSEP",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x202F: "NNBSP",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0x3000: "IDSP",
    0xFEFF: "BOM",
    **{0xFE00 + k: f"VS{k + 1}" for k in range(16)},
}
_CLUSTER = regex.compile(r"\X")
# Nothing to see: separators, controls, unassigned, private, default-ignorable (joiners, selectors, fillers), blank braille.
_UNSEEN = regex.compile(r"[\p{Z}\p{C}\p{Default_Ignorable_Code_Point}\u2800--\p{Prepended_Concatenation_Mark}]", regex.V1)
_MARK = regex.compile(r"\p{M}")


def graphemes(text: str) -> list[str]:
    """The user-perceived characters of a text (extended grapheme clusters, Unicode Standard Annex 29)."""
    clusters: list[str] = _CLUSTER.findall(text)
    return clusters


def visible(token: str) -> str:
    """The form in which a token is shown; never empty, and never wider than one line.

    Blank ``␣``, newline ``↵``, tabulator ``⇥``; other unseen characters by their short name, ``‹ZWJ›`` or ``‹U+E000›``;
    an accent without a letter on ``◌``. Joined emoji and accented letters stay whole.
    """
    if token.isascii() and token.isprintable() and " " not in token:
        return token or EMPTY
    return "".join(_visible_cluster(cluster) for cluster in graphemes(token))


def shorten(token: str, limit: int) -> str:
    """At most `limit` user-perceived characters, the last one ``…`` when something was left out."""
    if limit < 1:
        raise ValueError(f"a label needs room for at least 1 character, got {limit}")
    clusters = graphemes(token)
    return token if len(clusters) <= limit else "".join(clusters[: limit - 1]) + "…"


def _visible_cluster(cluster: str) -> str:
    start = next((at for at, character in enumerate(cluster) if not _UNSEEN.match(character)), len(cluster))
    body = cluster[start:]
    named = "".join(map(_by_name, cluster[:start]))
    if _MARK.match(body):
        return named + "◌" + body
    # A joiner that joins nothing would leave "a" and "a + joiner" looking alike.
    seen = body.rstrip("\u200c\u200d")
    return named + seen + "".join(map(_by_name, body[len(seen) :]))


def _by_name(character: str) -> str:
    sign = _SIGNS.get(character)
    return sign or f"‹{_NAMES.get(ord(character)) or f'U+{ord(character):04X}'}›"
