# A client that keeps its session, on version 1 or 2 of the SDK. Its argument is the URL. For each line on stdin it lists
# the tools, calls fake__echo with the line and prints {"tools", "text"}, or {"error"}.
import asyncio, json, os, sys
from contextlib import AsyncExitStack

try:
    from mcp import Client
except ImportError:
    Client = None


async def connect(stack):
    if Client:
        return await stack.enter_async_context(Client(sys.argv[1], mode='legacy'))
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client
    streams = await stack.enter_async_context(streamablehttp_client(sys.argv[1]))
    session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
    await session.initialize()
    return session


async def main():
    async with AsyncExitStack() as stack:
        client = await connect(stack)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                tools = [tool.name for tool in (await asyncio.wait_for(client.list_tools(), 60)).tools]
                result = await asyncio.wait_for(client.call_tool('fake__echo', {'text': line.strip()}), 60)
                answer = {'tools': tools, 'text': ' '.join(block.text for block in result.content)}
            except Exception as error:
                answer = {'error': repr(error)}
            print(json.dumps(answer), flush=True)
        os._exit(0)  # streams that are open are ended with the process


asyncio.run(main())
