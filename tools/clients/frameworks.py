"""One agent of a Python framework, against the model and the MCP servers in the environment."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

MODEL, PROMPT = os.environ["MODEL"], os.environ["PROMPT"]
SERVERS = json.loads(os.environ["SERVERS"])


async def langchain():
    from langchain.agents import create_agent
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_openai import ChatOpenAI

    client = MultiServerMCPClient({name: {"transport": "stdio", **s} for name, s in SERVERS.items()})
    agent = create_agent(ChatOpenAI(model="scripted", base_url=MODEL + "/v1"), await client.get_tools())
    await agent.ainvoke({"messages": PROMPT}, {"recursion_limit": 100})


async def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(MCPServerStdio(s, name=name, client_session_timeout_seconds=60)) for name, s in SERVERS.items()]
        model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=MODEL + "/v1"))
        await Runner.run(Agent("agent", mcp_servers=servers, model=model), PROMPT, max_turns=50)


async def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    toolsets = [MCPToolset({"mcpServers": {name: s}}) for name, s in SERVERS.items()]
    agent = Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=MODEL + "/v1")), toolsets=toolsets)
    async with agent:
        await agent.run(PROMPT)


async def google_adk():
    from google.adk.agents import Agent
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from google.genai import types
    from mcp import StdioServerParameters

    toolsets = [McpToolset(connection_params=StdioConnectionParams(server_params=StdioServerParameters(**s), timeout=60)) for s in SERVERS.values()]
    runner = InMemoryRunner(agent=Agent(name="agent", model="gemini-2.5-pro", tools=toolsets), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user")
    async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=types.Content(role="user", parts=[types.Part(text=PROMPT)])):
        pass
    for toolset in toolsets:
        await toolset.close()


async def llama_index():
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = []
    for s in SERVERS.values():
        tools += await McpToolSpec(BasicMCPClient(s["command"], args=s["args"], env=s["env"])).to_tool_list_async()
    llm = OpenAILike(model="scripted", api_base=MODEL + "/v1", api_key="none", is_chat_model=True, is_function_calling_model=True, context_window=1000000)
    await FunctionAgent(tools=tools, llm=llm).run(PROMPT, max_iterations=100)


async def agent_framework():
    from agent_framework import Agent, MCPStdioTool
    from agent_framework.openai import OpenAIChatCompletionClient

    async with AsyncExitStack() as stack:
        tools = [await stack.enter_async_context(MCPStdioTool(name, load_prompts=False, **s)) for name, s in SERVERS.items()]
        await Agent(OpenAIChatCompletionClient("scripted", base_url=MODEL + "/v1"), tools=tools).run(PROMPT)


async def semantic_kernel():
    from openai import AsyncOpenAI
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai import FunctionChoiceBehavior
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.connectors.mcp import MCPStdioPlugin

    async with AsyncExitStack() as stack:
        plugins = [await stack.enter_async_context(MCPStdioPlugin(name, load_prompts=False, **s)) for name, s in SERVERS.items()]
        service = OpenAIChatCompletion("scripted", async_client=AsyncOpenAI(base_url=MODEL + "/v1"))
        behavior = FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=50)
        await ChatCompletionAgent(service=service, plugins=plugins, function_choice_behavior=behavior).get_response(PROMPT)


asyncio.run(globals()[sys.argv[1]]())
