"""Makes `lamina.wire.message_table` from kio's schemas: `make schemas`.

Development only. Nothing in `src/` may import this package or kio: a broker reads the committed table.
"""
