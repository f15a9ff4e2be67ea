"""Private learners: a module or a folder for each concept class."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
