"""``python -m lamina.broker.metrics`` prints docs/metrics.md."""

from lamina.broker.metrics.document import page

print(page(), end="")
