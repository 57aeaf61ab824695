"""An agent loop on PyPI `anthropic`; Toolwright declares the tools and runs the calls.

    pip install anthropic
    toolwright serve &                       # in this directory
    ANTHROPIC_API_KEY=… MODEL=… python anthropic_loop.py "Where is order 7? Refund it, please."
"""

import os
import sys

from anthropic import Anthropic
from toolwright_rest import Session, ask_at_terminal

client = Anthropic()
session = Session("anthropic")
messages = [{"role": "user", "content": sys.argv[1]}]
session.begin_turn()
while True:
    response = client.messages.create(
        model=os.environ.get("MODEL", "claude-sonnet-5"),
        max_tokens=1024,
        system=session.prompt,
        tools=session.tools,
        messages=messages,
    )
    message = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in response.content]}
    messages.append(message)
    results = session.run_calls(message, ask_at_terminal)
    if not results:
        print("".join(block.text for block in response.content if block.type == "text"))
        break
    messages += results
