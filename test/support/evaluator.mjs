/**
 * Prints what `node -pe SCRIPT` prints, for many scripts in one process: `node evaluator.mjs SOCKET`, then per script a POST of the
 * script, a zero byte, and the standard input. For tests whose shell commands would start Node a hundred times.
 */
import fs from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { buffer } from 'node:stream/consumers';
import { format } from 'node:util';
import vm from 'node:vm';

// A script of `node -pe` has `require`, and its standard input as file 0.
globalThis.require = createRequire(import.meta.url);
const { readFileSync } = fs;
let input = Buffer.alloc(0);
fs.readFileSync = (file, encoding) => {
  if (file !== 0) return readFileSync(file, encoding);
  return encoding === undefined ? input : input.toString(encoding);
};

const server = createServer(async (request, response) => {
  const sent = await buffer(request);
  const end = sent.indexOf(0);
  input = sent.subarray(end + 1);
  try {
    response.end(`${format(vm.runInThisContext(sent.toString('utf8', 0, end)))}\n`);
  } catch (error) {
    response.writeHead(500).end(`${error.stack}\n`);
  }
});
server.listen(process.argv[2], () => console.log('ready'));
