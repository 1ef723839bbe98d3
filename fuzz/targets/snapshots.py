"""Producer snapshots: refused with a sentence, or the state in them is restored and written again alike."""

from fuzz.choices import Choices
from fuzz.sealing import seal_snapshot
from lamina.log.producer_states import ProducerStates
from lamina.log.snapshots import pack_snapshot, unpack_snapshot


def one(data: bytes) -> None:
    choices = Choices(data)
    is_sealed = choices.flag()
    content = choices.rest()
    try:
        producers = unpack_snapshot(seal_snapshot(content) if is_sealed else content)
    except ValueError as error:
        assert str(error).startswith("a producer snapshot")
        return
    assert unpack_snapshot(pack_snapshot(producers)) == producers
    states = ProducerStates()
    for producer in producers:
        states.note_id(producer.producer_id)
        states.restore(producer)
    states.high_watermark_moved(choices.number(8))
