"""The process that runs the built-in model: xllamacpp, serving the OpenAI protocol on a loopback port.

It is a process of its own because loading the weights holds Python's lock for seconds, in which the terminal would be
dead. Started as a file, with its settings as one JSON object on the command line; writes one JSON line when it is
ready; lives as long as its standard input is open, so it dies with the one who started it, however that one dies.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any


def main() -> None:
    """Serves until standard input ends. The line it writes is {"url": ...} or {"error": ...}."""
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever llama.cpp prints goes to the log
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        server = _serve(json.loads(sys.argv[1]))
        said = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001  the one who started us shows it, whatever it is
        server, said = None, {"error": f"{type(error).__name__}: {error}"}
    os.write(answer, (json.dumps(said) + "\n").encode())
    os.close(answer)
    if server is not None:
        threading.Event().wait()


def _die_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


def _serve(settings: Mapping[str, Any]) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.n_ctx = settings["n_ctx"]
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = settings["batch"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.ui = False
    params.verbosity = 0
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
