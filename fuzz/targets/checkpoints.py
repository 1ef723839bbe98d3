"""Offset and leader-epoch checkpoints: refused with a sentence, or written again alike."""

from lamina.log.checkpoints import CheckpointError, format_offsets, parse_offsets
from lamina.log.epochs import format_epochs, parse_epochs


def one(data: bytes) -> None:
    try:
        offsets = parse_offsets(data)
    except CheckpointError:
        pass
    else:
        assert parse_offsets(format_offsets(offsets)) == offsets
    try:
        epochs = parse_epochs(data)
    except CheckpointError:
        return
    assert parse_epochs(format_epochs(epochs)) == epochs
