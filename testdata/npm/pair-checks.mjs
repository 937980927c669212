// What both versions of the client try: see ../pypi/pair_client.py. A client has tools(),
// call(tool, arguments, { onprogress, signal }), subscribe(uri) and heard, a set of URIs.
const name = process.env.PAIR_CLIENT;
const targets = JSON.parse(process.env.PAIR_TARGETS);
const patience = 60_000; // ms, for whatever must come
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (came) => {
  for (const late = Date.now() + patience; !(await came()); await sleep(50)) if (Date.now() > late) return false;
  return true;
};
const text = (result) => result.content.map((block) => block.text ?? '').join(' ');

export const answers = {
  elicit: { action: 'accept', content: { name } },
  sample: { model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled by ' + name } },
  roots: { roots: [{ uri: 'file:///home/' + name, name }] },
};

async function check(client, tools, { Server, Prefix, Thing }) {
  const results = {};
  const call = (tool, args, options) => client.call(Prefix + tool, args, { timeout: patience, ...options });
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
  await attempt('progress', 'it came', async () => {
    let n = 0;
    let over = false;
    const key = `${name}-${Server}-${Date.now()}`;
    const working = call('progress', { key }, { onprogress: () => n++ }).finally(() => (over = true));
    working.catch(() => {});
    await until(() => n > 0 || over);
    const heard = n > 0;
    await call('heard', { key });
    await working;
    return heard ? 'it came' : 'nothing';
  });
  await attempt('cancel', 'the server heard', async () => {
    const key = `${name}-${Server}-${Date.now()}`;
    const says = (state) => until(async () => text(await call('cancelled', { key })).includes(state));
    const abort = new AbortController();
    const slow = call('slow', { key }, { signal: abort.signal }).catch(() => {});
    await says('began');
    abort.abort();
    await slow;
    return (await says('cancelled')) ? 'the server heard' : 'nothing';
  });
  if (tools.includes(Prefix + 'touch')) {
    await attempt('updates', 'heard', async () => {
      await client.subscribe(Thing);
      const came = async () => (await call('touch', {})) && client.heard.has(Thing);
      return (await until(came)) ? 'heard' : 'nothing';
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
