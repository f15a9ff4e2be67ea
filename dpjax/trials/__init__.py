"""Trials: any callable many times in one program; estimates with intervals, search, store, resume."""
