"""Fingerprinting codes and the attack on private learners that they make (MULTI §5).

>>> import jax, jax.numpy as jnp
>>> from dpjax import fingerprinting
>>> code = fingerprinting.boneh_shaw(6, xi=0.05)
>>> book = code.generate(jax.random.key(0))
>>> coalition = jnp.array([0, 1, 0, 1, 1, 0], bool)
>>> word = fingerprinting.pirates.majority(jax.random.key(1), book.bits, coalition)
>>> bool(fingerprinting.feasible(book.bits, word, coalition)), code.trace(book, word).accused.astype(int).tolist()
(True, [0, 0, 0, 1, 0, 0])
"""

from dpjax.fingerprinting import forms, necessary, pirates
from dpjax.fingerprinting.attack import Attack, Evidence, Report, against, attack, audit, implied_epsilon, trial
from dpjax.fingerprinting.boneh_shaw import boneh_shaw
from dpjax.fingerprinting.codes import Accusation
from dpjax.fingerprinting.pirates import feasible
from dpjax.fingerprinting.tardos import tardos

__all__ = [
    "Accusation",
    "Attack",
    "Evidence",
    "Report",
    "against",
    "attack",
    "audit",
    "boneh_shaw",
    "feasible",
    "forms",
    "implied_epsilon",
    "necessary",
    "pirates",
    "tardos",
    "trial",
]
