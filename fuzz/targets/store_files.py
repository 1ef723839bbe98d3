"""The SQLite file of the metadata: one sentence for a file that cannot be used, whatever is in it."""

from fuzz.files import scratch
from lamina.store.interface import Create, StoreError
from lamina.store.metadata import MetadataStore
from lamina.store.sqlite import SqliteStore

_NAME = "metadata.db"


def one(data: bytes) -> None:
    with scratch({_NAME: data}) as root:
        path = str(root / _NAME)
        try:
            store = SqliteStore(path)
        except StoreError as error:
            assert path in str(error)
            return
        try:
            MetadataStore(store, "cluster")
            store.transact([Create("/new", b"1")])
        except StoreError:
            pass
        finally:
            store.close()
