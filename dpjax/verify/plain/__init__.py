"""Plain twins: slow and obviously right programs of the same laws as the algorithms of dpjax, in plain Python and exact numbers.

Nothing is vectorised, padded or compiled, and each function reads like its step in the paper. The tests hold the algorithms to them.
"""
