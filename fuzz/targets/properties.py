"""Java's properties text: refused with the line's number, or written in ASCII and read again alike."""

from lamina.settings.properties import PropertiesError, dump, load


def one(data: bytes) -> None:
    try:
        properties = load(data)
    except PropertiesError as error:
        assert str(error).startswith("line ")
        return
    text = dump(properties, ["a comment", *list(properties)[:1]])
    assert text.isascii()
    assert load(text) == properties
