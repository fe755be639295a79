"""A slice that brings one of everything, for `test_plugins`.

It imports itself by relative names, because a test copies it into the program, as a slice is added.
"""
