# A client of the pairings (docs/clients.md), on the SDK that its Python has: mcp 1 or 2, or
# FastMCP 3 or 4. Its arguments: the era (legacy, modern), stdio or http, and the command or
# the URL. PAIR_CLIENT is its name, with which it answers whatever it is asked; PAIR_TARGETS
# are the servers behind the connection, as JSON: [{"Server", "Prefix", "Thing"}]. It tries
# what each of them can do and prints a line for each: {"server", "results": {check: "ok" or
# what came instead}}.
import asyncio, json, os, sys, time
from contextlib import AsyncExitStack

import mcp.types as types

name = os.environ['PAIR_CLIENT']
targets = json.loads(os.environ['PAIR_TARGETS'])
era, over, *target = sys.argv[1:]

try:
    import fastmcp
except ImportError:
    fastmcp = None
try:
    from mcp import Client as Client2
except ImportError:
    Client2 = None

patience = 60  # seconds, for whatever must come
heard = set()
got_progress = 0


async def elicited(*_args):
    return types.ElicitResult(action='accept', content={'name': name})


async def sampled(*_args):
    return types.CreateMessageResult(model='m', role='assistant', content=types.TextContent(type='text', text='sampled by ' + name))


async def rooted(*_args):
    return types.ListRootsResult(roots=[types.Root(uri='file:///home/' + name, name=name)])


async def on_progress(*_args):
    global got_progress
    got_progress += 1


async def on_message(message):
    message = getattr(message, 'root', message)
    if getattr(message, 'method', '') == 'notifications/resources/updated':
        heard.add(str(message.params.uri))


class Sessions:
    """Version 1 of the SDK."""

    async def open(self, stack):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamablehttp_client
        if over == 'stdio':
            streams = await stack.enter_async_context(stdio_client(StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))))
        else:
            streams = await stack.enter_async_context(streamablehttp_client(target[0]))
        self.session = await stack.enter_async_context(ClientSession(
            streams[0], streams[1], elicitation_callback=elicited, sampling_callback=sampled, list_roots_callback=rooted,
            message_handler=on_message, client_info=types.Implementation(name=name, version='1')))
        await self.session.initialize()

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, tool, arguments):
        return await self.session.call_tool(tool, arguments, progress_callback=on_progress)

    async def cancel(self, tool, arguments, began):
        session = self.session
        request = session._request_id  # the one that the task is about to take
        call = asyncio.create_task(session.call_tool(tool, arguments))
        await asyncio.sleep(0)
        await began()
        await session.send_notification(types.ClientNotification(types.CancelledNotification(
            method='notifications/cancelled', params=types.CancelledNotificationParams(requestId=request))))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def subscribe(self, uri, stack):
        await self.session.subscribe_resource(uri)


class Clients:
    """Version 2 of the SDK."""

    async def open(self, stack):
        from mcp import StdioServerParameters
        to = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ)) if over == 'stdio' else target[0]
        self.client = await stack.enter_async_context(Client2(
            to, mode='legacy' if era == 'legacy' else '2026-07-28', elicitation_callback=elicited, sampling_callback=sampled,
            list_roots_callback=rooted, message_handler=on_message, client_info=types.Implementation(name=name, version='1')))

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool, arguments):
        return await self.client.call_tool(tool, arguments, progress_callback=on_progress)

    async def cancel(self, tool, arguments, began):
        call = asyncio.create_task(self.client.call_tool(tool, arguments))
        await began()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def subscribe(self, uri, stack):
        if era == 'legacy':
            await self.client.subscribe_resource(uri)
            return
        changes = await stack.enter_async_context(self.client.listen(resource_subscriptions=[uri]))

        async def read():
            async for event in changes:
                if getattr(event, 'uri', None):
                    heard.add(str(event.uri))
        self.reading = asyncio.create_task(read())


class FastMCPs(Sessions if fastmcp and fastmcp.__version__.startswith('3') else Clients):
    async def open(self, stack):
        from fastmcp.client.transports import StdioTransport
        to = StdioTransport(command=target[0], args=target[1:], env=dict(os.environ)) if over == 'stdio' else target[0]

        async def elicit(message, response_type, params, context):
            return response_type(name=name)

        async def sample(messages, params, context):
            return 'sampled by ' + name
        options = {} if fastmcp.__version__.startswith('3') else {'mode': 'legacy' if era == 'legacy' else '2026-07-28'}
        self.client = await stack.enter_async_context(fastmcp.Client(
            to, elicitation_handler=elicit, sampling_handler=sample, roots=['file:///home/' + name],
            message_handler=on_message, client_info=types.Implementation(name=name, version='1'), **options))
        self.session = self.client.session

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool, arguments):
        return await self.client.call_tool(tool, arguments, progress_handler=on_progress, raise_on_error=False)

    async def subscribe(self, uri, stack):
        if era == 'legacy':
            await self.session.subscribe_resource(uri)
            return
        from mcp.client.subscriptions import listen
        changes = await stack.enter_async_context(listen(self.session, resource_subscriptions=[uri]))

        async def read():
            async for event in changes:
                if getattr(event, 'uri', None):
                    heard.add(str(event.uri))
        self.reading = asyncio.create_task(read())


async def until(came):
    late = time.monotonic() + patience
    while not await came():
        if time.monotonic() > late:
            return False
        await asyncio.sleep(0.05)
    return True


def text(result):
    return ' '.join(getattr(block, 'text', '') for block in result.content)


async def check(client, stack, tools, server):
    results = {}
    has = lambda tool: server['Prefix'] + tool in tools
    call = lambda tool, arguments: asyncio.wait_for(client.call(server['Prefix'] + tool, arguments), patience)

    async def attempt(key, what, wanted):
        try:
            came = await what()
            results[key] = 'ok' if wanted in came else came
        except Exception as error:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            results[key] = repr(error)[:300]

    for kind, wanted in (('elicit', f'accept {name}'), ('sample', f'sampled by {name}'), ('roots', f'file:///home/{name}')):
        for tool in (kind, 'need_' + kind):
            if has(tool):
                async def ask():
                    return text(await call(tool, {}))
                await attempt(tool, ask, wanted)

    async def progress():
        global got_progress
        got_progress = 0
        key = f'{name}-{server["Server"]}-{time.time_ns()}'
        working = asyncio.create_task(call('progress', {'key': key}))

        async def came():
            return got_progress or working.done()
        await until(came)
        heard = got_progress
        await call('heard', {'key': key})
        await working
        return 'it came' if heard else 'nothing'
    await attempt('progress', progress, 'it came')

    async def cancel():
        key = f'{name}-{server["Server"]}-{time.time_ns()}'
        state = lambda wanted: lambda: says(wanted)

        async def says(wanted):
            return wanted in text(await call('cancelled', {'key': key}))
        await client.cancel(server['Prefix'] + 'slow', {'key': key}, lambda: until(state('began')))
        return 'the server heard' if await until(state('cancelled')) else 'nothing'
    await attempt('cancel', cancel, 'the server heard')

    async def updates():
        await client.subscribe(server['Thing'], stack)

        async def came():
            await call('touch', {})
            return server['Thing'] in heard
        return 'heard' if await until(came) else 'nothing'
    if has('touch'):
        await attempt('updates', updates, 'heard')
    return results


async def main():
    client = FastMCPs() if fastmcp else Clients() if Client2 else Sessions()
    async with AsyncExitStack() as stack:
        await client.open(stack)
        tools = await client.tools()
        for server in targets:
            results = await check(client, stack, tools, server)
            print(json.dumps({'server': server['Server'], 'results': results}), flush=True)
        os._exit(0)  # streams that are open are ended with the process


asyncio.run(main())
