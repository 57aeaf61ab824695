"""A model behind OpenAI's Chat Completions API, on the CPU. usage: serve.py MODEL.gguf TEMPLATE.jinja
Prints its address, and runs until it is ended."""
import os
import signal
import socket
import sys

import xllamacpp

model, template = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {"real"}
params.n_ctx, params.n_parallel, params.use_jinja = 16384, 1, True
params.chat_template = open(template).read()
params.sampling.temp, params.sampling.seed = 0.0, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 2
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    params.port = free.getsockname()[1]
params.hostnames = ["127.0.0.1"]
server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
signal.pause()
