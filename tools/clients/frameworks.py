"""One agent of a Python framework, against the model and the MCP servers in the environment."""

import asyncio
import json
import os
import sys

MODEL, PROMPT = os.environ["MODEL"], os.environ["PROMPT"]
SERVERS = json.loads(os.environ["SERVERS"])


async def langchain():
    from langchain.agents import create_agent
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_openai import ChatOpenAI

    client = MultiServerMCPClient({name: {"transport": "stdio", **s} for name, s in SERVERS.items()})
    agent = create_agent(ChatOpenAI(model="scripted", base_url=MODEL + "/v1"), await client.get_tools())
    await agent.ainvoke({"messages": PROMPT}, {"recursion_limit": 100})


asyncio.run(globals()[sys.argv[1]]())
