"""Plain twins: slow and obviously correct programs for the same laws as the algorithms of dpjax, in plain Python and exact numbers.

Nothing is vectorised, padded or compiled, and each function reads like its step in the paper. The tests compare the algorithms with them.
"""
