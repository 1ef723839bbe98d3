"""What all brokers of a cluster know, and nobody who logs in to them.

Owns ``/lamina/login_secret``, which whoever looks first makes. Must not know what is made of it.
"""

from lamina.store.entries import create_missing, create_path
from lamina.store.interface import Store, StoreError

LOGIN_SECRET = "/lamina/login_secret"


def login_secret(store: Store, new: bytes) -> bytes:
    """That of the cluster in this store, which becomes ``new`` where there was none."""
    if store.get(LOGIN_SECRET) is None:
        create_path(store, LOGIN_SECRET.rpartition("/")[0])
        create_missing(store, LOGIN_SECRET, new)
    found = store.get(LOGIN_SECRET)
    if found is None or not found.value:
        raise StoreError(f"{LOGIN_SECRET} in the metadata store is empty, or has just been deleted")
    return found.value
