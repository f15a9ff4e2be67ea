"""Laws to optimise through and relaxations to embed: budgets, worst data, soft mechanisms, learned noise and audits."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
