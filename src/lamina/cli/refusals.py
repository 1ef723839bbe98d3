"""What the operating system refused, in a sentence that says what to do."""

_REMEDIES: dict[type, str] = {
    FileNotFoundError: ": check the name",
    PermissionError: ": run it as the user that the broker runs as",
    NotADirectoryError: ": name a directory",
}


def describe(error: OSError) -> str:
    """A sentence for what the system refused, with what to do."""
    return f"{error.filename or 'the output'}: {(error.strerror or str(error)).lower()}{_REMEDIES.get(type(error), '')}"
