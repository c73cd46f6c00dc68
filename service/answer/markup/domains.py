"""Which dotted words are addresses: what a forum would turn into a link, and what only looks like it."""

import re
from typing import Literal

Verdict = Literal["remove", "code", "space", "keep"]

_COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz ca "
    "cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo "
    "fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it "
    "je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn "
    "mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps "
    "pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th "
    "tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
_GENERIC = (
    "com net org edu gov mil int arpa aero asia biz cat coop info jobs mobi museum name post pro tel travel xxx "
    "web app dev page blog wiki shop store site online website space tech cloud host hosting link click live news "
    "media video art bot chat club codes community company design digital direct email engineer events expert fun "
    "fyi games gay goog google group guru help how icu ink institute international land life lol ltd market "
    "marketing mov network ninja one onl onion party photo photos pics pink plus porn press promo pub red rent "
    "report reviews rip rocks run sale school science services sex sexy social software solutions spa stream "
    "studio style support systems team technology tips today tools top tours trade training tube uno vip voyage "
    "watch webcam win work works world wtf xyz zip zone ddd example test invalid localhost local internal lan "
    "home corp рф онлайн сайт москва бел укр 中国 中國 台湾 网址 公司 我爱你"
)
# Endings that are also those of file names, words that follow a full stop where a space is missing, and what
# programs and products are called.
_FILE_ENDINGS = "py sh rs pl pm md cc so ps mm ml mk ph gd ai st tf in zip mov app plus page"
_WORD_ENDINGS = "is it as at be by do in my no so to am et la ne ma sa il id us one how help run work works"
_OBJECT_NAMES = "self this system os math string array console window document microsoft"
_MEMBER_NAMES = "io net name me info id is in as to text"
_PRODUCT_NAMES = "asp.net vb.net ado.net ml.net paint.net socket.io"
ENDINGS = frozenset(_COUNTRIES.split()) | frozenset(_GENERIC.split())
_FILES, _WORDS = frozenset(_FILE_ENDINGS.split()), frozenset(_WORD_ENDINGS.split())
_OBJECTS, _MEMBERS = frozenset(_OBJECT_NAMES.split()), frozenset(_MEMBER_NAMES.split())
_PRODUCTS = frozenset(_PRODUCT_NAMES.split())

HOST = re.compile(
    r"(?<![\w@])(?P<host>(?:[\w-]{1,63}\.){1,8}(?P<ending>xn--[\w-]{1,59}|[^\W\d_]{2,24}))(?![^\W_]|-\w)\.?"
    r"(?P<port>:\d{1,5}(?!\d))?(?P<path>[/?#\\]\S{0,2000}+)?"
)


def verdict(match: re.Match[str]) -> Verdict:
    """What to do with a match of HOST: remove an address, make a file's name code, part two sentences, or nothing."""
    host, ending = match["host"], match["ending"]
    lower = ending.lower()
    if lower.startswith("xn--"):
        return "remove"
    if lower not in ENDINGS:
        return "keep"
    if match["path"] or match["port"] or host.lower().startswith("www."):
        return "remove"
    if host.lower() in _PRODUCTS or lower in _FILES:
        return "code"
    if host.count(".") == 1 and host.split(".")[0].lower() in _OBJECTS and lower in _MEMBERS:
        return "code"
    before = host[-len(ending) - 2]
    if (lower in _WORDS and host.count(".") == 1) or (ending.istitle() and before.islower() and len(ending) <= 3):
        return "space"
    return "remove"
