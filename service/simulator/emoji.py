"""Emoji as Discourse writes them: `:shortcode:` and characters become images with the shortcode as title."""

import re
import unicodedata
from html import escape

NAMED: dict[str, str] = {
    "smile": "😄", "slight_smile": "🙂", "grin": "😁", "grinning": "😀", "laughing": "😆", "joy": "😂",
    "rofl": "🤣", "wink": "😉", "blush": "😊", "heart_eyes": "😍", "thinking": "🤔", "sweat_smile": "😅",
    "sweat": "😓", "cry": "😢", "sob": "😭", "scream": "😱", "confused": "😕", "frowning": "😦",
    "rage": "😡", "sunglasses": "😎", "upside_down": "🙃", "roll_eyes": "🙄", "shrug": "🤷",
    "facepalm": "🤦", "pray": "🙏", "clap": "👏", "wave": "👋", "ok_hand": "👌", "muscle": "💪",
    "+1": "👍", "-1": "👎", "point_up": "☝", "point_right": "👉", "eyes": "👀", "heart": "❤",
    "tada": "🎉", "sparkles": "✨", "star": "⭐", "fire": "🔥", "bulb": "💡", "warning": "⚠", "x": "❌",
    "white_check_mark": "✅", "heavy_check_mark": "✔", "question": "❓", "exclamation": "❗",
    "rocket": "🚀", "bug": "🐛", "snail": "🐌", "seedling": "🌱", "herb": "🌿", "leaves": "🍃",
    "maple_leaf": "🍁", "tomato": "🍅", "eggplant": "🍆", "hot_pepper": "🌶", "carrot": "🥕",
    "corn": "🌽", "potato": "🥔", "garlic": "🧄", "onion": "🧅", "cucumber": "🥒", "strawberry": "🍓",
    "lemon": "🍋", "apple": "🍎", "cherry_blossom": "🌸", "sunflower": "🌻", "rose": "🌹", "tulip": "🌷",
    "bee": "🐝", "lady_beetle": "🐞", "butterfly": "🦋", "worm": "🪱", "bird": "🐦", "cat": "🐱",
    "dog": "🐶", "sunny": "☀", "cloud": "☁", "cloud_with_rain": "🌧", "snowflake": "❄",
    "droplet": "💧", "sweat_drops": "💦", "rainbow": "🌈", "thermometer": "🌡", "beers": "🍻",
    "coffee": "☕", "robot": "🤖",
}  # fmt: skip
CHARACTERS = {char: name for name, char in NAMED.items()}
IN_TEXT = re.compile(r"(?<![\w:]):([a-z0-9_+-]{1,40}):(?::?t[1-6]:)?|([\u2600-\u27bf\U0001f300-\U0001faff])\ufe0f?")


def character(name: str) -> str | None:
    """The emoji of this shortcode: our list first, then Unicode's own names."""
    if name in NAMED:
        return NAMED[name]
    try:
        found = unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return None
    return found if IN_TEXT.fullmatch(found) else None


def shortcode(char: str) -> str | None:
    """The shortcode of an emoji character."""
    name = CHARACTERS.get(char) or unicodedata.name(char, "").lower().replace(" ", "_")
    return name if name and character(name) == char else None


def image(name: str, base_path: str) -> str:
    source = escape(f"{base_path}/images/emoji/twitter/{name}.png?v=14")
    title = escape(f":{name}:")
    return f'<img src="{source}" title="{title}" class="emoji" alt="{title}" loading="lazy" width="20" height="20">'
