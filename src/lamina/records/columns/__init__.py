"""Record batches as columns, parsed by code that numba compiles: the one native reader of records.

``headers`` turns a buffer into rows of integers, one a batch; ``numbers`` reads the records; ``filling`` puts them into
columns, and ``arrow`` makes Arrow of these; ``checking`` only says whether they are as they should be. Importing a
module of this package imports numba and compiles, or loads from numba's cache on disk: so jobs and readers do, never a
broker at its start. What is wrong in words is said by the plain modules of ``records``. A cached kernel is good only
for the sources that it was compiled from, and numba looks at one file alone; so every kernel closes over
``sources.STAMP``, which is part of the cache's key.
"""
