"""``python -m lamina.settings`` prints docs/settings.md."""

from lamina.settings.document import page

print(page(), end="")
