"""A class for each table of a scenario, with the documentation, default and range of each key.

Each table has two forms: a frozen dataclass (``LeafSpine(leaves=4)``) and a TypedDict (``LeafSpineDict``, for plain dictionaries).

>>> from fanin.types import SingleSwitch
>>> SingleSwitch(hosts=3).to_dict()
{'kind': 'single_switch', 'hosts': 3}
"""

from fanin._scenario_types import *  # noqa: F403
from fanin._scenario_types import __all__  # noqa: F401
