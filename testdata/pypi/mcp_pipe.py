# Joins a stdio server to a WebSocket, as the public mcp_pipe scripts do: the environment variable MCP_ENDPOINT has the URL, the
# arguments are the command. Whenever the connection ends, the server is ended too, and both are started again after a pause.
import asyncio, os, sys
import websockets


async def from_socket(socket, server):
    async for message in socket:
        server.stdin.write((message if isinstance(message, bytes) else message.encode()) + b'\n')
        await server.stdin.drain()
    raise ConnectionError('the connection has ended')


async def to_socket(socket, server):
    while line := await server.stdout.readline():
        await socket.send(line.decode())
    raise ConnectionError('the server has ended')


async def once():
    async with websockets.connect(os.environ['MCP_ENDPOINT']) as socket:
        print('connected', flush=True)
        server = await asyncio.create_subprocess_exec(
            *sys.argv[1:], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24)
        try:
            await asyncio.gather(from_socket(socket, server), to_socket(socket, server))
        finally:
            server.terminate()
            await server.wait()


async def main():
    pause = 0.1
    while True:
        try:
            await once()
        except Exception as error:
            print('lost:', type(error).__name__, flush=True)
        await asyncio.sleep(pause)
        pause = min(2 * pause, 5)


asyncio.run(main())
