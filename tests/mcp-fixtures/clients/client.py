"""The official Python client: lists, calls and confirms, over HTTP and stdio, in both revisions.

client.py URL TOOLWRIGHT ARGUMENT...
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


async def check(transport, server, mode):
    elicitations = []

    async def approve(context, params):
        elicitations.append(params.message)
        return ElicitResult(action="accept", content={})

    async with Client(server, mode=mode, elicitation_callback=approve) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"count_words", "send_note", "reg_describe"} <= set(names), names
        result = await client.call_tool("count_words", {"text": "one two three"})
        assert not result.is_error and result.structured_content == {"words": 3, "characters": 13}, result
        result = await client.call_tool("count_words", {"txt": "one"})
        assert result.is_error and "VALIDATION" in result.content[0].text, result
        result = await client.call_tool("send_note", {"text": "Bring the contract."})
        assert not result.is_error and result.structured_content == {"sent": True}, result
        assert len(elicitations) == 1 and "Bring the contract." in elicitations[0], elicitations
        document = await client.read_resource("tool://count_words/doc")
        assert "## Summary" in document.contents[0].text
        print(f"python {transport} {client.protocol_version}: lists, calls, confirms")
        return client.protocol_version


async def main():
    url, program, *arguments = sys.argv[1:]
    stdio = StdioServerParameters(command=program, args=arguments)
    revisions = set()
    for transport, server in (("http", url), ("stdio", stdio)):
        for mode in ("auto", "legacy"):
            revisions.add(await check(transport, server, mode))
    assert revisions == {"2026-07-28", "2025-11-25"}, revisions


asyncio.run(main())
