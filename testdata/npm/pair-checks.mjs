// What both versions of the client try: see ../pypi/pair_client.py. A client has tools(),
// call(tool, arguments, { onprogress, signal }), subscribe(uri) and heard, a set of URIs.
const name = process.env.PAIR_CLIENT;
const targets = JSON.parse(process.env.PAIR_TARGETS);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const text = (result) => result.content.map((block) => block.text ?? '').join(' ');

export const answers = {
  elicit: { action: 'accept', content: { name } },
  sample: { model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled by ' + name } },
  roots: { roots: [{ uri: 'file:///home/' + name, name }] },
};

async function check(client, tools, { Server, Prefix, Thing }) {
  const results = {};
  const call = (tool, args, options) => client.call(Prefix + tool, args, { timeout: 20_000, ...options });
  const attempt = async (key, wanted, what) => {
    try {
      const came = await what();
      results[key] = came.includes(wanted) ? 'ok' : came;
    } catch (error) {
      results[key] = String(error).slice(0, 300);
    }
  };
  for (const [kind, wanted] of Object.entries({ elicit: 'accept ' + name, sample: 'sampled by ' + name, roots: 'file:///home/' + name })) {
    for (const tool of [kind, 'need_' + kind]) {
      if (tools.includes(Prefix + tool)) await attempt(tool, wanted, async () => text(await call(tool, {})));
    }
  }
  await attempt('progress', 'came', async () => {
    let n = 0;
    await call('progress', {}, { onprogress: () => n++ });
    return n > 0 ? 'came' : 'nothing came';
  });
  await attempt('cancel', 'yes', async () => {
    const key = `${name}-${Server}-${Date.now()}`;
    await call('slow', { key }, { signal: AbortSignal.timeout(1000) }).catch(() => {});
    for (let i = 0; i < 20; i++) {
      if (text(await call('cancelled', { key })).includes('yes')) return 'yes';
      await sleep(250);
    }
    return 'the server heard nothing';
  });
  if (tools.includes(Prefix + 'touch')) {
    await attempt('updates', 'heard', async () => {
      await client.subscribe(Thing);
      for (let i = 0; i < 12; i++) {
        await call('touch', {});
        await sleep(250);
        if (client.heard.has(Thing)) return 'heard';
      }
      return 'nothing came';
    });
  }
  return results;
}

export async function run(client) {
  const tools = await client.tools();
  for (const target of targets) {
    process.stdout.write(JSON.stringify({ server: target.Server, results: await check(client, tools, target) }) + '\n');
  }
  process.exit(0);
}
