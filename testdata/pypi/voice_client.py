# The client of a voice assistant at an endpoint of an agent, whose URL is the first argument: it sends the whole handshake at once,
# follows cursors with the same id, and then makes the calls in the other arguments, {"name", "arguments"}, all at once. It prints
# {"server", "tools", "results", "ping"}.
import asyncio, json, sys
import websockets


async def main():
    waiting = {}
    seen = {}

    async with websockets.connect(sys.argv[1]) as socket:
        def send(method, params=None, id=None):
            message = {'jsonrpc': '2.0', 'method': method}
            if id is not None:
                message['id'] = id
                waiting[id] = asyncio.get_running_loop().create_future()
            if params is not None:
                message['params'] = params
            return socket.send(json.dumps(message))

        async def listen():
            async for text in socket:
                message = json.loads(text)
                if 'method' in message:
                    continue
                id = int(message['id'])
                seen[id] = seen.get(id, 0) + 1
                assert ('result' in message) != ('error' in message), text
                waiting[id].set_result(message)

        listener = asyncio.create_task(listen())
        await send('initialize', {
            'protocolVersion': '2024-11-05', 'capabilities': {'roots': {'listChanged': True}, 'sampling': {}},
            'clientInfo': {'name': 'VoiceClient', 'version': '1.0.0'}}, 1)
        await send('notifications/initialized', {})
        await send('tools/list', None, 2)
        server = (await waiting[1])['result']['serverInfo']
        tools, pages = [], 1
        while True:
            listed = (await waiting[2])['result']
            tools += listed['tools']
            if not listed.get('nextCursor'):
                break
            pages += 1
            await send('tools/list', {'cursor': listed['nextCursor']}, 2)
        for tool in tools:
            assert tool['inputSchema'].get('type') == 'object', tool
        for at, call in enumerate(sys.argv[2:]):
            await send('tools/call', json.loads(call), 3 + at)
        results = [(await waiting[3 + at]) for at in range(len(sys.argv) - 2)]
        await send('ping', {}, 0)
        ping = await waiting[0]
        listener.cancel()
    assert seen.pop(2) == pages and all(n == 1 for n in seen.values()), seen
    print(json.dumps({'server': server['name'], 'tools': sorted(tool['name'] for tool in tools), 'ping': ping.get('result'),
                      'results': [r['result']['content'][0]['text'] if 'result' in r else r['error']['message'] for r in results]}))


asyncio.run(asyncio.wait_for(main(), 60))
