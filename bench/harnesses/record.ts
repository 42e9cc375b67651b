import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { begin, type Ground, must, transcriptOf, untilEnded } from './ground.ts';

const folder = path.join(import.meta.dirname, '../../packages/agent/test/sessions');
const maxLine = 4_000;

/** Members that the recording leaves out, because their values differ between runs or describe the program instead of the session. */
const leftOut = new Set(['configOptions', 'models', 'modes', 'availableCommands', 'authMethods', '_zed', 'icons']);

/**
 * Returns a function that replaces each id in a text by a number, in the order in which ids appear, and times, ports and keys by fixed
 * values.
 */
function scrubber(): (text: string) => string {
  const ids = new Map<string, string>();
  const idOf = (id: string) => {
    if (!ids.has(id)) ids.set(id, `id-${ids.size + 1}`);
    return ids.get(id) ?? '';
  };
  return (text) =>
    text
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, idOf)
      .replace(/\b(?:ses|msg|prt)_[0-9A-Za-z]{10,}\b/g, idOf)
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '2026-01-01T00:00:00Z')
      .replace(/\b1[78]\d{11}\b/g, '1780000000000')
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:1')
      .replace(/Chunk ID: [0-9a-f]+/g, 'Chunk ID: 000001')
      .replace(/(chunk_id\W+)[0-9a-f]+/g, (_, name: string) => `${name}000001`)
      .replace(/(wall_time_seconds\W+|Wall time:? )[\d.e-]+/g, (_, name: string) => `${name}0.1`)
      .replace(/Process Group PGID: \d+/g, 'Process Group PGID: 1')
      .replace(/sk-runyard-[\w-]+/g, 'sk-runyard-key');
}

function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !leftOut.has(name))
      .map(([name, member]) => [name, without(member)]),
  );
}

/** Records a session for the tests of the normaliser: a turn in which a command fails and a file is created. */
export async function recordSession(ground: Ground): Promise<string> {
  const id = await begin(ground, [{ shell: 'echo hello; exit 3' }, { write: '/workspace/a.txt', text: 'one\ntwo\n' }]);
  must((await untilEnded(ground, id)).state === 'SUCCEEDED', 'the run failed');
  const scrub = scrubber();
  const lines = (await transcriptOf(ground, id)).split('\n').flatMap((line) => {
    if (!line.startsWith('{"')) return [];
    const message = JSON.parse(line) as { params?: { update?: { sessionUpdate?: string } } };
    if (message.params?.update?.sessionUpdate === 'available_commands_update') return [];
    const text = scrub(JSON.stringify(without(message)));
    return text.length <= maxLine ? [text] : [];
  });
  writeFileSync(path.join(folder, `${ground.preset.type}.jsonl`), `${lines.join('\n')}\n`);
  return `${lines.length} messages`;
}
