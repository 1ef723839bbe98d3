"""The columns in which batches lie between Python and compiled code, one row of integers a batch; and where the fields
of a batch header are."""

POSITION = 0
SIZE = 1
BASE_OFFSET = 2
LAST_OFFSET = 3
ATTRIBUTES = 4
BASE_TIMESTAMP = 5
MAX_TIMESTAMP = 6
PRODUCER_ID = 7
PRODUCER_EPOCH = 8
RECORD_COUNT = 9
PAYLOAD_START = 10
PAYLOAD_END = 11
"""Where its records lie: in the file itself, or in a buffer when they were compressed."""
BATCH_COLUMNS = 12

MIN_RECORD_BYTES = 7

HEADER_BYTES = 61
LOG_OVERHEAD_BYTES = 12
LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
COVERED_AT = 21
"""Where the bytes begin that the CRC covers: at the attributes."""
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
RECORD_COUNT_AT = 57
