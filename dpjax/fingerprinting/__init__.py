"""Fingerprinting codes and the attack on private learners that they make (MULTI §5)."""
