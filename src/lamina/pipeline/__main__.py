"""``python -m lamina.pipeline``: the engine of one broker, told what to do on its standard input."""

from lamina.pipeline.engine import main

main()
