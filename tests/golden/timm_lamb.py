"""timm.optim.Lamb, without the rest of timm, which needs torchvision."""
import importlib
import importlib.util
import sys
import types

places = importlib.util.find_spec("timm").submodule_search_locations
for name, path in (("timm", places[0]), ("timm.optim", places[0] + "/optim")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
Lamb = importlib.import_module("timm.optim.lamb").Lamb
timm_version = importlib.import_module("timm.version").__version__
