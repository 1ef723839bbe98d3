"""One number for all that is compiled into the kernels of a pass."""

from lamina.records.columns.sources import stamp_of

STAMP = stamp_of("lamina.cleaning.kernels", "lamina.compaction")
