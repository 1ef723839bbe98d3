"""A JAAS entry: refused with a sentence that shows no value, or read, with a flag that there is."""

from lamina.security.jaas import FLAGS, JaasError, read_jaas


def one(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        entry = read_jaas(text)
    except JaasError as error:
        assert len(str(error)) < 200
        return
    assert entry.flag in FLAGS
    assert entry.login_module
    assert all(value not in repr(entry) for value in entry.options.values() if len(value) > len(repr(entry)))
