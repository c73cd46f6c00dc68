"""Whether a text is in the language it ought to be in, by its script and its function words."""

import re
from unicodedata import name

_FUNCTION_WORDS = {
    "en": "the of and to in is that it for with was this are you be have not from they which their there when what if",
    "fr": "le la les des du une est et dans que qui pour pas sur avec vous cette ces sont mais plus être ou aux où il",
    "de": "der die das und ist nicht ein eine mit den auf für sich dem auch als wird sind zu werden oder aber wenn",
    "es": "el los las una que es por con para del se como pero más su está son cuando hay muy también lo",
    "it": "il gli che è una per con non del della sono come più anche nel alla questo ma quando",
    "pt": "os uma que não para com por mais do da em são como mas também você isso ao quando",
    "nl": "het een van en is dat niet met voor zijn op deze ook aan als maar wordt je",
}
_WORDS = {lang: frozenset(words.split()) for lang, words in _FUNCTION_WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+")
_FEWEST_WORDS = 3


def is_foreign(text: str, lang: str) -> bool:
    """Whether `text` is clearly not in `lang`: another script, or another language's function words prevailing.

    A text too short to tell, and one whose language has no word list here, is taken for what it ought to be.
    """
    own = _WORDS.get(lang)
    if own is None:
        return False
    letters = [char for char in text if char.isalpha()]
    if letters and sum(not _is_latin(char) for char in letters) > len(letters) / 2:
        return True
    words = [word.lower() for word in _WORD.findall(text)]
    counts = {each: sum(word in known for word in words) for each, known in _WORDS.items()}
    most = max(counts.values())
    return most >= _FEWEST_WORDS and most > 2 * counts[lang]


def _is_latin(char: str) -> bool:
    return char < "\u0250" or "LATIN" in name(char, "")
