"""The admin listener: what a person or a monitor asks a running broker over HTTP (docs/admin.md).

``listening`` and ``token`` are all that a broker's start imports; the rest, with Starlette and uvicorn, comes with the
first connection.
"""
