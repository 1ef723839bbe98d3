"""Who may ask what: the authorizer, and for each API the check that stands before its handler. Without an authorizer
nothing of it stands in anybody's way: handlers are called as they are.
"""
