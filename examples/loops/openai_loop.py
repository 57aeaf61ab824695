"""An agent loop on PyPI `openai`; Toolwright declares the tools and runs the calls.

    pip install openai
    toolwright serve &                       # in this directory
    OPENAI_API_KEY=… MODEL=… python openai_loop.py "Where is order 7? Refund it, please."
"""

import os
import sys

from openai import OpenAI
from toolwright_rest import Session, ask_at_terminal

client = OpenAI()
session = Session("openai-chat")
messages = [{"role": "system", "content": session.prompt}, {"role": "user", "content": sys.argv[1]}]
session.begin_turn()
while True:
    response = client.chat.completions.create(
        model=os.environ.get("MODEL", "gpt-5"), messages=messages, tools=session.tools
    )
    message = response.choices[0].message.model_dump(exclude_none=True)
    messages.append(message)
    results = session.run_calls(message, ask_at_terminal)
    if not results:
        print(message.get("content"))
        break
    messages += results
