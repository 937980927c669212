# A server of the official Python SDK over WebSocket, on a free port, whose URL it prints.
import asyncio, socket, sys
import uvicorn
from mcp.server.fastmcp import FastMCP
from mcp.server.websocket import websocket_server

app = FastMCP("socket")

@app.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers"""
    return a + b

async def serve(scope, receive, send):
    async with websocket_server(scope, receive, send) as (reads, writes):
        server = app._mcp_server
        await server.run(reads, writes, server.create_initialization_options())

listener = socket.create_server(("127.0.0.1", 0))
print(f"ws://127.0.0.1:{listener.getsockname()[1]}/ws", flush=True)
uvicorn.Server(uvicorn.Config(serve, log_level="error", lifespan="off")).run(sockets=[listener])
