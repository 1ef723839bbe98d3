"""An engine that takes every log for a large one: what a cluster does with 256 MB, shown with less."""

from lamina.pipeline import compact
from lamina.pipeline.engine import main

if __name__ == "__main__":
    compact._DISTRIBUTED_BYTES = 1
    main()
