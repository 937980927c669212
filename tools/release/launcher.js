#!/usr/bin/env node
// Starts the mcpx binary of this platform with the arguments, streams and signals of
// this process, and ends as it ends.
'use strict';
const {spawn} = require('node:child_process');

const own = require('./package.json').name;
const name = `${own}-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/mcpx${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  console.error(`mcpx: error: there is no binary for ${process.platform} on ${process.arch}: the package ${name} is not installed`);
  console.error(`mcpx: hint: npm leaves it out with --omit=optional or --no-optional; install ${own} without that`);
  process.exit(1);
}
const child = spawn(binary, process.argv.slice(2), {stdio: 'inherit'});
// A terminal sends Ctrl-C to both.
const forward = (signal) => signal === 'SIGINT' && process.stdin.isTTY || child.kill(signal);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, forward);
}
child.on('error', (err) => {
  console.error(`mcpx: error: starting ${binary}: ${err.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeListener(signal, forward);
  process.kill(process.pid, signal);
});
