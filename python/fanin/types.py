"""A class for each table of a scenario, with the documentation, default and range of each key.

Each is a frozen dataclass (``LeafSpine(leaves=4)``). Wherever one is accepted, so is a plain dictionary.

>>> from fanin.types import SingleSwitch
>>> SingleSwitch(hosts=3).to_dict()
{'kind': 'single_switch', 'hosts': 3}
"""

from fanin._scenario_types import *  # noqa: F403
from fanin._scenario_types import __all__  # noqa: F401
