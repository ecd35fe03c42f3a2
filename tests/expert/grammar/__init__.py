"""Random tasks, by kind of operator. Each rule of a module makes a whole task from a Draw.

    rules()              name -> function(Draw) -> Task
    draw(seed, number)   (name of the rule, text of the task)

The same seed and number always make the same task.
"""
import random

from . import attention, convolution, maps, product, rows, windows
from .drawing import Draw

MODULES = (attention, convolution, maps, product, rows, windows)
# How often tasks come from a module, of the sum of all.
SHARES = {attention: 4, convolution: 5, maps: 3, product: 5, rows: 5, windows: 3}


def rules():
    return {"%s.%s" % (m.__name__.rsplit(".", 1)[1], f.__name__): f
            for m in MODULES for f in m.RULES}


def draw(seed, number, only=None):
    """A task of a rule whose name begins with `only`."""
    chance = random.Random("%s/%d" % (seed, number))
    known = rules()
    if only:
        name = chance.choice(sorted(n for n in known if n.startswith(only)))
    else:
        module = chance.choices(MODULES, [SHARES[m] for m in MODULES])[0]
        rule = chance.choice(module.RULES)
        name = next(n for n, f in known.items() if f is rule)
    task = known[name](Draw(chance))
    title = "drawn_%s_%d" % (name.replace(".", "_"), number)
    return name, task.text(title, "%s, number %d of seed %s" % (name, number, seed))
