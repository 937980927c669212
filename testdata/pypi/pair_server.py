# A server of the pairings (docs/clients.md), on the SDK that its Python has: mcp 1 or 2, or
# FastMCP 3 or 4. The first argument is stdio, or http for streamable HTTP on a free port,
# whose URL it prints. PAIR_NAME makes its resource unique, PAIR_CANCELLED is the file that
# says which calls of the tool slow began, and which were cancelled, and which clients have
# heard of the progress of the tool progress, which goes on until then.
import os, socket, sys, threading

import anyio
import uvicorn
from pydantic import BaseModel

try:
    import fastmcp
    from fastmcp import Context, FastMCP
    major = int(fastmcp.__version__.split('.')[0])
    app = FastMCP('pair')
    web = lambda: app.http_app()
    modern = major >= 4
except ImportError:
    fastmcp = None
    try:
        from mcp.server.mcpserver import Context, MCPServer
        app, modern = MCPServer('pair'), True
    except ImportError:
        from mcp.server.fastmcp import Context, FastMCP
        app, modern = FastMCP('pair'), False
    web = lambda: app.streamable_http_app()
import mcp.types as types

thing = 'pair://' + os.environ['PAIR_NAME']


class Name(BaseModel):
    name: str


@app.resource(thing)
def read() -> str:
    return 'a thing'


@app.tool()
async def elicit(ctx: Context) -> str:
    answer = await ctx.elicit('Your name?', Name)
    return f'{answer.action} {answer.data.name}'


def question() -> list:
    return [types.SamplingMessage(role='user', content=types.TextContent(type='text', text='Your name?'))]


@app.tool()
async def sample(ctx: Context) -> str:
    answer = await ctx.session.create_message(question(), max_tokens=10, related_request_id=ctx.request_id)
    return answer.content.text


@app.tool()
async def roots(ctx: Context) -> str:
    answer = await ctx.session.list_roots()
    return str(answer.roots[0].uri)


@app.tool()
async def progress(ctx: Context, key: str) -> str:
    for i in range(600):
        if f'{key} heard' in noted():
            return 'done'
        await ctx.report_progress(i + 1, 600)
        await anyio.sleep(0.1)
    return 'not heard'


@app.tool()
def heard(key: str) -> str:
    note(key + ' heard')
    return 'noted'


def noted() -> list[str]:
    try:
        return open(os.environ['PAIR_CANCELLED']).read().split('\n')
    except FileNotFoundError:
        return []


def note(line: str):
    with open(os.environ['PAIR_CANCELLED'], 'a') as f:
        f.write(line + '\n')


@app.tool()
async def slow(key: str) -> str:
    note(key + ' began')
    try:
        await anyio.sleep_forever()
    except BaseException:
        note(key + ' cancelled')
        raise


@app.tool()
def cancelled(key: str) -> str:
    lines = noted()
    return next((state for state in ('cancelled', 'began') if f'{key} {state}' in lines), 'not called')


if modern and not fastmcp:
    @app.tool()
    async def touch(ctx: Context) -> str:
        await ctx.notify_resource_updated(thing)
        return 'touched'

if modern:
    # The same questions as results, which is how the modern era asks.
    def need(requests, ctx, answer):
        got = ctx.input_responses
        if got:
            return answer(got['q'])
        return types.InputRequiredResult(input_requests={'q': requests}, request_state='s')

    @app.tool()
    async def need_elicit(ctx: Context) -> str | types.InputRequiredResult:
        params = types.ElicitRequestFormParams(message='Your name?', requested_schema=Name.model_json_schema())
        return need(types.ElicitRequest(params=params), ctx, lambda a: f'{a.action} {a.content["name"]}')

    @app.tool()
    async def need_sample(ctx: Context) -> str | types.InputRequiredResult:
        params = types.CreateMessageRequestParams(messages=question(), max_tokens=10)
        return need(types.CreateMessageRequest(params=params), ctx, lambda a: a.content.text)

    @app.tool()
    async def need_roots(ctx: Context) -> str | types.InputRequiredResult:
        return need(types.ListRootsRequest(), ctx, lambda a: str(a.roots[0].uri))


if sys.argv[1] == 'stdio':
    if fastmcp:
        app.run(show_banner=False)
    else:
        app.run()
else:
    listener = socket.create_server(('127.0.0.1', 0))
    print(f'http://127.0.0.1:{listener.getsockname()[1]}/mcp', flush=True)

    def watch():
        sys.stdin.read()
        os._exit(0)  # whoever started it holds stdin open

    threading.Thread(target=watch, daemon=True).start()
    uvicorn.Server(uvicorn.Config(web(), log_level='error')).run(sockets=[listener])
