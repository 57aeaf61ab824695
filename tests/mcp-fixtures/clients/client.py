"""The official Python client lists, calls and confirms, over HTTP and over a pipe, in both eras.

client.py URL TOOLWRIGHT ARGUMENT...
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


async def check(what, server, mode):
    asked = []

    async def person(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async with Client(server, mode=mode, elicitation_callback=person) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"count_words", "send_note", "reg_describe"} <= set(names), names
        result = await client.call_tool("count_words", {"text": "one two three"})
        assert not result.is_error and result.structured_content == {"words": 3, "characters": 13}, result
        result = await client.call_tool("count_words", {"txt": "one"})
        assert result.is_error and "VALIDATION" in result.content[0].text, result
        result = await client.call_tool("send_note", {"text": "Bring the contract."})
        assert not result.is_error and result.structured_content == {"sent": True}, result
        assert len(asked) == 1 and "Bring the contract." in asked[0], asked
        document = await client.read_resource("tool://count_words/doc")
        assert "## Summary" in document.contents[0].text
        print(f"python {what} {client.protocol_version}: lists, calls, confirms")
        return client.protocol_version


async def main():
    url, program, *arguments = sys.argv[1:]
    pipe = StdioServerParameters(command=program, args=arguments)
    spoken = set()
    for what, server in (("http", url), ("stdio", pipe)):
        for mode in ("auto", "legacy"):
            spoken.add(await check(what, server, mode))
    assert spoken == {"2026-07-28", "2025-11-25"}, spoken


asyncio.run(main())
