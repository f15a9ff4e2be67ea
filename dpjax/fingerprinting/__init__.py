"""Fingerprinting codes and the attack on private learners that they make (MULTI §5)."""

from dpjax.fingerprinting import pirates
from dpjax.fingerprinting.boneh_shaw import boneh_shaw
from dpjax.fingerprinting.codes import Accusation
from dpjax.fingerprinting.pirates import feasible
from dpjax.fingerprinting.tardos import tardos

__all__ = ["Accusation", "boneh_shaw", "feasible", "pirates", "tardos"]
